"""The threshold rule samples its own law: counts over many seeds against exact enumeration, by chi-square.

The law is written out from the rule: the positions of a step depend on the noise-free confidences alone, and their
tokens are independent draws from softmax(logits / T).
"""

from itertools import product

import pytest

from sweeps.spec import DecodeSpec, Noise
from tests.drafters import ready
from tests.toys import RandomStepsDrafter
from tests.unit.decoding.test_law import ALPHA, LENGTH, MASK, TARGET, TOKENS, Block, Law, Outcome, outcomes, p_value
from workers.decoding.loop import decode
from workers.drafters.base import Drafter

SEEDS = 400


def rule(noise: Noise) -> DecodeSpec:
    return DecodeSpec(
        max_new_tokens=LENGTH, block_length=LENGTH, temperature=2.0, noise=noise, commit="threshold", tau=0.63
    )


def exact_law(spec: DecodeSpec, block: Block = (MASK,) * LENGTH, order: tuple[int, ...] = ()) -> Law:
    """Probability of every (order, output)."""
    open = [place for place, token in enumerate(block) if token == MASK]
    if not open:
        return {(order, block): 1.0}
    logits_LV = TARGET.logits(TARGET.row((), block))
    p_L, drawn_LV = logits_LV.softmax(-1).amax(-1).tolist(), (logits_LV / spec.temperature).softmax(-1).tolist()
    sure = [place for place in open if p_L[place] > spec.tau]
    step, law = sure or [max(open, key=p_L.__getitem__)], dict[Outcome, float]()
    for tokens in product(TOKENS, repeat=len(step)):
        after, chance = list(block), 1.0
        for place, token in zip(step, tokens, strict=True):
            after[place], chance = token, chance * drawn_LV[place][token]
        for outcome, further in exact_law(spec, tuple(after), (*order, *step)).items():
            law[outcome] = law.get(outcome, 0.0) + chance * further
    return law


def drafter_of(kind: str, spec: DecodeSpec, seed: int) -> Drafter:
    return RandomStepsDrafter(seed, 4) if kind == "random steps" else ready(kind, TARGET, [], spec, seed, budget=4)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["coupled", "independent"])
@pytest.mark.parametrize("kind", ["none", "freedave", "spiffy", "spot-sets", "random steps"])
def test_every_drafter_keeps_the_law(kind: str, noise: Noise) -> None:
    spec = rule(noise)
    runs = [decode(TARGET, drafter_of(kind, spec, seed), [], spec=spec, seed=seed) for seed in range(SEEDS)]
    law = exact_law(spec)
    assert sum(law.values()) == pytest.approx(1.0)
    assert p_value(outcomes(runs), law) > ALPHA
    assert {size for run in runs for size in run.steps} > {1}, "some step is a set"
    if kind != "none":
        assert sum(sum(run.counters.accepted) for run in runs) > SEEDS / 20


def test_another_tau_has_another_law() -> None:
    """The statistic is not blind to the rule: runs of one tau do not have the law of another."""
    spec = rule("independent")
    runs = [decode(TARGET, drafter_of("none", spec, seed), [], spec=spec, seed=seed) for seed in range(200)]
    orders = {order for order, _ in exact_law(spec)}
    other = DecodeSpec(
        max_new_tokens=LENGTH, block_length=LENGTH, temperature=2.0, noise="independent", commit="threshold", tau=0.7
    )
    assert {order for order, _ in exact_law(other)} != orders
    assert {run.order for run in runs} <= orders
