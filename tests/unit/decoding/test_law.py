"""Both noise modes sample the target's own distribution: counts over many seeds against the exact law, by chi-square.

Four positions and two tokens can be enumerated: the exact probability of every (order, output) is written out from the
rule. Seeds are fixed, so a test here passes always or never; right code would have failed once in 10,000 at the time of
writing. That the statistic can fail at all is shown on decoders that are biased on purpose.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from sweeps.spec import DecodeSpec
from tests.drafters import ready
from tests.toys import RandomDrafter, RandomOrderDrafter, ToyTarget, WrongDrafter, commits_of, tree_of
from workers.decoding.loop import decode
from workers.decoding.noise import TARGET_STREAM, gumbel, mixed
from workers.decoding.rule import Verdict
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.decoding.tally import Generation
from workers.decoding.tree import DraftTree
from workers.decoding.verification import Verification
from workers.decoding.walk import Walk
from workers.drafters.base import Drafter
from workers.drafters.none import NoDrafter

LENGTH, TOKENS, MASK = 4, (0, 1), 3
ALPHA = 1e-4
SEEDS = 600
Block = tuple[int, ...]
Outcome = tuple[tuple[int, ...], Block]
Law = dict[Outcome, float]
Make = Callable[[int, DecodeSpec], Drafter]


class SmallTarget(ToyTarget):
    """A toy target that makes each of its few states once."""

    def __init__(self) -> None:
        super().__init__(seed=3, vocab_size=MASK + 1, drift=0.3, scale=1.0)
        self.rows: dict[Block, Tensor] = {}

    def row(self, prefix: Block, block: Block) -> Tensor:
        if block not in self.rows:
            self.rows[block] = super().row(prefix, block)
        return self.rows[block]


TARGET = SmallTarget()


def rule(temperature: float, noise: str, confidence: str = "top1") -> DecodeSpec:
    return DecodeSpec(
        max_new_tokens=LENGTH,
        block_length=LENGTH,
        temperature=temperature,
        noise=noise,  # type: ignore[arg-type]
        confidence=confidence,  # type: ignore[arg-type]
    )


def next_commits(block: Block, spec: DecodeSpec) -> dict[Commit, float]:
    """Probability of every commit in a state, when every open position draws anew from softmax(logits / T)."""
    open = [place for place, token in enumerate(block) if token == MASK]
    logits_LV = TARGET.logits(TARGET.row((), block))
    p_LV, tempered_LV = logits_LV.softmax(-1).tolist(), (logits_LV / spec.temperature).softmax(-1).tolist()
    law: dict[Commit, float] = {}
    if spec.confidence == "top1":
        place = max(open, key=lambda place: max(p_LV[place]))
        return {Commit(place, token): tempered_LV[place][token] for token in TOKENS}
    for drawn in product(TOKENS, repeat=len(open)):
        chance = 1.0
        for place, token in zip(open, drawn, strict=True):
            chance *= tempered_LV[place][token]
        commit = max(map(Commit, open, drawn), key=lambda commit: tempered_LV[commit.position][commit.token])
        law[commit] = law.get(commit, 0.0) + chance
    return law


def exact_law(spec: DecodeSpec, block: Block = (MASK,) * LENGTH, order: tuple[int, ...] = ()) -> Law:
    """Probability of every (order, output)."""
    if MASK not in block:
        return {(order, block): 1.0}
    law: Law = {}
    for (place, token), chance in next_commits(block, spec).items():
        after = (*block[:place], token, *block[place + 1 :])
        for outcome, further in exact_law(spec, after, (*order, place)).items():
            law[outcome] = law.get(outcome, 0.0) + chance * further
    return law


def p_value(counts: Counter[Outcome], law: Law) -> float:
    """Chance of a chi-square this large; rare outcomes are pooled until 5 of each pool are expected."""
    assert set(counts) <= set(law)
    pools: list[tuple[float, float]] = []
    seen = expected = 0.0
    for outcome in sorted(law, key=law.__getitem__):
        seen, expected = seen + counts[outcome], expected + counts.total() * law[outcome]
        if expected >= 5:
            pools.append((seen, expected))
            seen = expected = 0.0
    assert expected == 0.0, "the most frequent outcome fills a pool of its own"
    square = sum((seen - expected) ** 2 / expected for seen, expected in pools)
    half = torch.tensor([(len(pools) - 1) / 2, square / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


def sample(make: Make, spec: DecodeSpec, seeds: int = SEEDS) -> list[Generation]:
    return [decode(TARGET, make(seed, spec), [], spec=spec, seed=seed) for seed in range(seeds)]


def outcomes(runs: list[Generation]) -> Counter[Outcome]:
    return Counter((run.order, run.output_ids) for run in runs)


def accepted(runs: list[Generation]) -> float:
    """Accepted drafts a run."""
    return sum(sum(run.counters.accepted) for run in runs) / len(runs)


def named(kind: str, **options: object) -> Make:
    return lambda seed, spec: ready(kind, TARGET, [], spec, seed, budget=4, **options)


DRAFTERS: dict[str, Make] = {
    "none": lambda seed, spec: NoDrafter(),
    "ssd": named("ssd"),
    "blockspec": named("blockspec"),
    "spiffy": named("spiffy"),
    "spot": named("spot", hedge=1.0),
    "oracle": named("oracle_joint"),  # with independent noise: of another sample's future
    "random": lambda seed, spec: RandomDrafter(seed, 4),
    "random order": lambda seed, spec: RandomOrderDrafter(seed, 4, merge_states=False),
    "wrong": lambda seed, spec: WrongDrafter(TARGET.never, 4),
}


def test_the_exact_law_is_a_law() -> None:
    for confidence in ("top1", "sampled"):
        law = exact_law(rule(0.7, "coupled", confidence))
        assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    assert len(exact_law(rule(0.7, "coupled"))) == 2**LENGTH
    assert len({order for order, _ in exact_law(rule(0.7, "coupled"))}) == 3  # the order depends on the draws


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "temperature"), [*((name, 2.0) for name in DRAFTERS), ("none", 0.7), ("ssd", 0.7), ("spot", 0.7)]
)
def test_independent_noise_samples_the_targets_distribution(name: str, temperature: float) -> None:
    spec = rule(temperature, "independent")
    runs = sample(DRAFTERS[name], spec)
    assert p_value(outcomes(runs), exact_law(spec)) > ALPHA
    assert (accepted(runs) > 0.3) == (name not in ("none", "wrong")), "else nothing was speculated and nothing is shown"


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.7, 2.0])
def test_coupled_noise_samples_the_targets_distribution_with_every_drafter(temperature: float) -> None:
    """A drafter changes no draw, so all counts are those of draft-free decoding, which are tested."""
    spec = rule(temperature, "coupled")
    free = sample(DRAFTERS["none"], spec, 4 * SEEDS)
    assert p_value(outcomes(free), exact_law(spec)) > ALPHA
    for name, make in DRAFTERS.items():
        runs = sample(make, spec, 100)
        assert outcomes(runs) == outcomes(free[:100]), name
        assert (accepted(runs) > 0.3) == (name not in ("none", "wrong")), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["none", "ssd", "random order"])
def test_independent_noise_where_the_position_depends_on_the_draws(name: str) -> None:
    spec = rule(2.0, "independent", "sampled")
    assert p_value(outcomes(sample(DRAFTERS[name], spec)), exact_law(spec)) > ALPHA


def test_one_shared_table_is_another_sampler_where_the_position_depends_on_the_draws() -> None:
    """With `confidence: sampled` a position that was passed over keeps its unlikely draw, where fresh noise draws anew.

    Coupled decoding is then lossless against its own draft-free runs, but these do not follow the law of fresh draws.
    """
    spec = rule(2.0, "coupled", "sampled")
    assert p_value(outcomes(sample(DRAFTERS["none"], spec)), exact_law(spec)) < 1e-12


class Zeros:
    """A chain in stale order, all of token 0."""

    budget = 4

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        order = sorted(root.open, key=lambda place: -float(stale.logodds_L[place]))
        commits = [Commit(place, 0) for place in order[:-1]]
        return tree_of(root, [tuple(commits[: depth + 1]) for depth in range(len(commits))])


def blind_walk(self: Verification, tree: DraftTree, judge_node: Callable[[int], Verdict], spec: DecodeSpec) -> Walk:
    """Follows a chain of drafts as long as their positions are right, whatever the target draws there."""
    nodes, verdicts = [0], [judge_node(0)]
    for node, commit in enumerate(commits_of(tree), start=1):
        if commit.position != verdicts[-1].commit.position:
            break
        verdicts[-1] = replace(verdicts[-1], step=(commit,))
        nodes.append(node)
        verdicts.append(judge_node(node))
    steps = tuple(verdict.step for verdict in verdicts)
    return Walk(nodes=tuple(nodes), verdicts=tuple(verdicts), steps=steps)


@pytest.mark.parametrize("noise", ["coupled", "independent"])
def test_a_walk_that_accepts_drafts_of_another_token_is_found_out(noise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = rule(2.0, noise)
    assert p_value(outcomes(sample(lambda seed, spec: Zeros(), spec, 300)), exact_law(spec)) > ALPHA
    monkeypatch.setattr(Verification, "walk", blind_walk)
    assert p_value(outcomes(sample(lambda seed, spec: Zeros(), spec, 300)), exact_law(spec)) < ALPHA


class Peeking:
    """Knows the target's noise, as no drafter may: drafts a state only if the next forward would draw a 1 there.

    What it leaves undrafted is decided by the next forward's noise, which it has looked at.
    """

    budget = 2

    def __init__(self, seed: int, spec: DecodeSpec) -> None:
        self.seed, self.spec, self.forward = seed, spec, 0

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        self.forward += 1
        states, steps = [root], list[tuple[Commit, ...]]([()])
        for (place, token), chance in next_commits(root.tokens, self.spec).items():
            after = root.fill(Commit(place, token))
            if chance and not after.full and self.next_draw(after) == 1:
                states.append(after)
                steps.append((Commit(place, token),))
        nodes = len(states)
        parents = (-1, *(0 for _ in range(nodes - 1)))
        return DraftTree(states=tuple(states), parents=parents, steps=tuple(steps), masses=(1.0,) * nodes)

    def next_draw(self, state: BlockState) -> int:
        """The token of the next forward, should it be made for this state."""
        ((place, _), _) = next(iter(next_commits(state.tokens, self.spec).items()))
        noise_V = gumbel(mixed(self.seed, TARGET_STREAM, self.forward + 1, 0), torch.tensor([place]), MASK + 1)[0]
        logits_V = TARGET.logits(TARGET.row((), state.tokens))[place]
        return int((logits_V / self.spec.temperature + noise_V).argmax())


def test_a_drafter_that_has_seen_the_targets_noise_is_found_out() -> None:
    """This is why the drafter has a stream of its own. A shared table has nothing to choose from: no harm is done."""
    independent, coupled = rule(2.0, "independent"), rule(2.0, "coupled")
    assert p_value(outcomes(sample(Peeking, independent)), exact_law(independent)) < ALPHA
    assert outcomes(sample(Peeking, coupled, 100)) == outcomes(sample(DRAFTERS["none"], coupled, 100))
