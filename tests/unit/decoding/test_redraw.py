"""A verdict made again draws with the noise of the first: drawing anew only where a draw was close bends the law.

The target here keeps its positions apart by far more than the margin, so a verdict is doubtful only where its draw was
close: the bias that fresh noise would bring in is then as large as it can be, and a simple count of tokens shows it.
"""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from sweeps.spec import DecodeSpec, Noise
from tests.drafters import ready
from tests.toys import RandomDrafter, ToyTarget
from workers.decoding import active
from workers.decoding.active import ActiveBlock
from workers.decoding.loop import BlockRounds, decode
from workers.decoding.noise import BlockNoise
from workers.decoding.rule import Verdict, judge
from workers.decoding.tally import Generation
from workers.decoding.tree import DraftTree, root_alone
from workers.decoding.verification import Verification
from workers.decoding.verify import verify
from workers.decoding.walk import Walk
from workers.drafters.base import Drafter

LENGTH, T, MARGIN = 8, 20.0, 1.5
SEEDS, SIGMAS = 400, 4.0
LEADS = [T + 3.0 * place for place in range(LENGTH)]  # of token 0's logit over token 1's: 1 to 2.05 over T, 3 apart
MAKERS: dict[str, Callable[[ToyTarget, DecodeSpec, int], Drafter]] = {
    "random": lambda target, spec, seed: RandomDrafter(seed, 4),
    "ssd": lambda target, spec, seed: ready("ssd", target, [], spec, seed, budget=4),
    "spot": lambda target, spec, seed: ready("spot", target, [], spec, seed, budget=4, hedge=1.0),
}


def leading(logits_LV: Tensor) -> Tensor:
    """Two tokens; the first one leads by `LEADS`."""
    apart_LV = torch.zeros_like(logits_LV)
    apart_LV[:, 0] = torch.tensor(LEADS, dtype=apart_LV.dtype)
    return apart_LV


TARGET = ToyTarget(vocab_size=4, shape_logits=leading)


def rule(noise: Noise = "independent") -> DecodeSpec:
    return DecodeSpec(max_new_tokens=LENGTH, block_length=LENGTH, temperature=T, noise=noise)


def sample(name: str) -> list[Generation]:
    make, spec = MAKERS[name], rule()
    return [
        decode(TARGET, make(TARGET, spec, seed), [], spec=spec, seed=seed, verification=Verification(margin=MARGIN))
        for seed in range(SEEDS)
    ]


def sigmas(runs: list[Generation]) -> float:
    """How far the count of token 0 is from the law's: every position draws it with chance sigmoid(lead / T)."""
    chances = [1 / (1 + math.exp(-lead / T)) for lead in LEADS]
    count = sum(run.output_ids.count(0) for run in runs)
    expected = len(runs) * math.fsum(chances)
    return (count - expected) / math.sqrt(len(runs) * math.fsum(p * (1 - p) for p in chances))


class Fresh:
    """Noise of another forward: what a verdict made again must not draw with."""

    def __init__(self, noise: BlockNoise) -> None:
        self.noise = noise

    def target(self, forward: int, node: int, open: tuple[int, ...]) -> Tensor | None:
        return self.noise.target(forward, node + 1000, open)


def with_fresh_noise(self: BlockRounds, tree: DraftTree, walked: Walk, block: ActiveBlock) -> Walk:
    """What `BlockRounds.judged_again` would be if it drew anew."""
    node = walked.nodes[-1]
    hidden_1LH = verify(self.session, root_alone(tree.states[node]), "cpu")
    redrawn = copy(block)
    redrawn.__dict__["noise"] = Fresh(block.noise)
    verdict = redrawn.forwarded(tree.states[node], self.tally.turn, node, hidden_1LH[0]).judge(self.target)
    return replace(walked, verdicts=(*walked.verdicts[:-1], verdict), steps=(*walked.steps[:-1], verdict.step))


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_verdicts_made_again_keep_the_law(name: str) -> None:
    runs = sample(name)
    recomputes, rounds = (sum(getattr(run.counters, field) for run in runs) for field in ("recomputes", "rounds"))
    assert len(runs) < recomputes < 0.8 * rounds, "else none, or all, were made again, and no draw decided which"
    assert abs(sigmas(runs)) < SIGMAS


def test_drawing_anew_where_a_draw_was_close_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BlockRounds, "judged_again", with_fresh_noise)
    assert sigmas(sample("ssd")) > SIGMAS


@pytest.mark.parametrize("noise", ["independent", "coupled"])
@pytest.mark.parametrize("name", MAKERS)
def test_both_verdicts_of_a_node_see_the_same_noise(name: str, noise: Noise, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every judgement is listened to: one in a batch, then, where that was close, one of the state alone."""
    target, spec = ToyTarget(seed=7, rounding=0.05), replace(rule(noise), temperature=0.8, max_new_tokens=24)
    heard: list[tuple[tuple[int, ...], Tensor, Tensor]] = []
    again: list[int] = []
    judged_again = BlockRounds.judged_again

    def listening(logits_RV: Tensor, noise_RV: Tensor, open: tuple[int, ...], spec: DecodeSpec) -> Verdict:
        heard.append((open, noise_RV, logits_RV))
        return judge(logits_RV, noise_RV, open, spec)

    def marking(self: BlockRounds, tree: DraftTree, walked: Walk, block: ActiveBlock) -> Walk:
        again.append(len(heard))
        return judged_again(self, tree, walked, block)

    monkeypatch.setattr(active, "judge", listening)
    monkeypatch.setattr(BlockRounds, "judged_again", marking)
    out = decode(target, MAKERS[name](target, spec, 3), [], spec=spec, seed=3, verification=Verification(margin=0.5))
    assert len(again) == out.counters.recomputes > 0
    assert len(heard) == len(out.output_ids) + len(again)
    for place in again:
        (open, first_RV, batch_RV), (open_again, second_RV, alone_RV) = heard[place - 1 : place + 1]
        assert open == open_again
        assert torch.equal(first_RV, second_RV), "drawn anew"
        assert not torch.equal(batch_RV, alone_RV), "nothing was rounded: it was no forward of its own"
    if noise == "independent":  # and every other verdict draws afresh: no number decides two commits
        once = [noise_RV for place, (_, noise_RV, _) in enumerate(heard) if place not in again]
        numbers = [number for noise_RV in once for number in noise_RV.flatten().tolist()]
        assert len(set(numbers)) == len(numbers)
