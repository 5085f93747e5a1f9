"""Drafts that go on in the next block, against the naive decoder: output, order, steps, counts, over targets and rules.

A random drafter crosses with right and wrong blocks in front, a knowing one with right ones alone. Nothing that either
does may show in what is decoded; only the forwards may become fewer.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise, product
from math import prod
from pathlib import Path
from tempfile import mkdtemp

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sweeps.bound import steps_floor
from sweeps.spec import CommitRule, Confidence, DecodeSpec, Noise
from tests.spying import Asked, SpyTarget
from tests.tiny_checkpoints import write_checkpoint
from tests.toys import KnowingStepsDrafter, RandomStepsDrafter, ToyTarget, coarse_target, const_target, flat_target
from tests.unit.decoding.test_law import ALPHA, p_value
from workers.decoding.loop import decode
from workers.decoding.reference import reference
from workers.decoding.seen import Seen
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.decoding.tally import Generation
from workers.decoding.tree import DraftTree, root_alone
from workers.decoding.verification import Verification
from workers.drafters.base import Drafter
from workers.drafters.none import NoDrafter
from workers.targets.base import Target
from workers.targets.load import load_target

PLAIN = Verification()
CROSSING, REFRESHED = (Verification(cross_block=True, refresh=refresh) for refresh in (False, True))
Future = dict[tuple[int, BlockState], tuple[Commit, ...]]


@cache
def checkpoint(family: str) -> Target:
    """A random checkpoint whose head makes some confidences high, so that steps of all sizes come up."""

    def sharpen(tensors: dict[str, Tensor]) -> None:
        tensors["lm_head.weight"] *= 30

    folder = write_checkpoint(Path(mkdtemp()) / family, family=family, tied=False, weights=sharpen)
    return load_target(folder, dtype="float64")


@st.composite
def specs(draw: st.DrawFn, noise: Noise = "coupled", most: int = 14) -> DecodeSpec:
    rule: CommitRule = draw(st.sampled_from(["standard", "threshold", "threshold"]))
    return DecodeSpec(
        max_new_tokens=draw(st.integers(1, most)),
        block_length=draw(st.integers(1, 6)),
        temperature=draw(st.sampled_from([0.0, 0.05, 0.7, 1.5])),
        confidence=draw(st.sampled_from(["top1", "sampled"])),
        ignore_eos=draw(st.booleans()),
        noise=noise,
        commit=rule,
        tau=draw(st.sampled_from([0.02, 0.3, 0.5, 0.7, 0.95])),
    )


@st.composite
def prompted(draw: st.DrawFn) -> tuple[ToyTarget, list[int]]:
    """A toy target, and a prompt that may hold its stop ids and end inside a block."""
    vocab = draw(st.sampled_from([3, 4, 11, 40]))
    make: Callable[..., ToyTarget] = draw(st.sampled_from([ToyTarget, ToyTarget, ToyTarget, flat_target]))
    target = make(
        seed=draw(st.integers(0, 10**6)),
        vocab_size=vocab,
        drift=draw(st.sampled_from([0.02, 0.1, 0.3, 3.0])),
        scale=draw(st.sampled_from([1.0, 2.0, 4.0])),
        stops=draw(st.sampled_from([(), (vocab - 3,), (0, vocab - 3)])),
    )
    return target, draw(st.lists(st.integers(0, vocab - 3), max_size=13))


seeds = st.integers(0, 2**63 - 1)
ways = st.sampled_from([CROSSING, REFRESHED, REFRESHED])
wilds = st.builds(RandomStepsDrafter, seed=st.integers(0, 10**6), budget=st.integers(1, 12))


def recorded(target: Target, prompt: Sequence[int], spec: DecodeSpec, seed: int) -> tuple[Future, list[int]]:
    """The steps of draft-free decoding by the state they were taken in, and how many each block took."""
    future: Future = {}
    steps: dict[int, int] = {}

    def watch(seen: Seen) -> None:
        future[seen.start, seen.state] = seen.step
        steps[seen.start] = steps.get(seen.start, 0) + 1

    decode(target, NoDrafter(), prompt, spec=spec, seed=seed, watch=watch)
    return future, list(steps.values())


def crossing(
    target: Target, drafter: Drafter, prompt: Sequence[int], spec: DecodeSpec, seed: int, way: Verification
) -> tuple[Generation, SpyTarget]:
    """A run, and what its target was asked; the counts that hold of any run are checked."""
    spy = SpyTarget(target)
    run = decode(spy, drafter, prompt, spec=spec, seed=seed, verification=way)  # type: ignore[arg-type]
    counters = run.counters
    assert sum(run.steps) == len(run.output_ids) == len(run.order) == len(run.rounds)
    assert sorted(run.order) == list(range(len(run.output_ids)))
    assert len(run.steps) == counters.rounds + sum(counters.accepted)
    assert counters.nfe == counters.rounds == len(spy.asked)
    assert max(counters.drafted) <= drafter.budget
    assert [1 + drafted for drafted in counters.drafted] == [asked.active + asked.crossing for asked in spy.asked]
    assert counters.positions == spec.block_length * sum(asked.blocks for asked in spy.asked)
    of_step = [r for r, accepted in enumerate(counters.accepted) for _ in range(accepted + 1)]
    assert list(run.rounds) == [r for r, size in zip(of_step, run.steps, strict=True) for _ in range(size)]
    return run, spy


def told(run: Generation) -> tuple[object, ...]:
    """What no drafter may change."""
    return run.output_ids, run.order, run.steps, run.finish_reason, run.tokens_kept


@settings(max_examples=250, deadline=None)
@given(prompted(), wilds, ways, specs(), seeds)
def test_random_crossings_change_nothing_but_the_forwards(
    asked: tuple[ToyTarget, list[int]], drafter: RandomStepsDrafter, way: Verification, spec: DecodeSpec, seed: int
) -> None:
    target, prompt = asked
    naive = reference(target, prompt, spec=spec, seed=seed)
    run, _ = crossing(target, drafter, prompt, spec, seed, way)
    assert (run.output_ids, run.order, run.steps) == (naive.output_ids, naive.order, naive.steps)
    assert run.counters.nfe <= naive.forwards


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), wilds, ways, specs(), seeds)
def test_among_many_ties_random_crossings_change_nothing(
    number: int, drafter: RandomStepsDrafter, way: Verification, spec: DecodeSpec, seed: int
) -> None:
    """Against draft-free decoding: the naive decoder adds equal terms in another order, and breaks ties by rounding."""
    target = coarse_target(seed=number, stops=(3,))
    free = decode(target, NoDrafter(), [1, 3], spec=spec, seed=seed)
    run, _ = crossing(target, drafter, [1, 3], spec, seed, way)
    assert told(run) == told(free)


@settings(max_examples=120, deadline=None)
@given(prompted(), st.integers(1, 8), ways, specs(), seeds)
def test_who_knows_the_future_takes_the_fewest_forwards_that_there_can_be(
    asked: tuple[ToyTarget, list[int]], budget: int, way: Verification, spec: DecodeSpec, seed: int
) -> None:
    target, prompt = asked
    naive = reference(target, prompt, spec=spec, seed=seed)
    future, steps = recorded(target, prompt, spec, seed)
    drafter = KnowingStepsDrafter(future, budget)
    run, _ = crossing(target, drafter, prompt, spec, seed, way)
    assert (run.output_ids, run.order, run.steps) == (naive.output_ids, naive.order, naive.steps)
    assert run.counters.nfe == steps_floor(steps, budget, cross_block=True)
    plain, spy = crossing(target, drafter, prompt, spec, seed, PLAIN)
    assert told(plain) == told(run)
    assert plain.counters.nfe == steps_floor(steps, budget) >= run.counters.nfe
    assert not any(asked.crossing for asked in spy.asked)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["sdar", "llada2"]),
    st.integers(1, 9),  # behind nothing the rows of an untouched block tie but for rounding
    st.integers(1, 8),
    wilds,
    st.booleans(),
    ways,
    specs(),
    seeds,
)
def test_with_a_real_cache_crossings_change_nothing_either(
    family: str,
    prompt: int,
    budget: int,
    wild: RandomStepsDrafter,
    knows: bool,
    way: Verification,
    spec: DecodeSpec,
    seed: int,
) -> None:
    target, ids = checkpoint(family), [10 + 7 * i % 200 for i in range(prompt)]
    naive = reference(target, ids, spec=spec, seed=seed)
    drafter = KnowingStepsDrafter(recorded(target, ids, spec, seed)[0], budget) if knows else wild
    run, _ = crossing(target, drafter, ids, spec, seed, way)
    assert (run.output_ids, run.order, run.steps) == (naive.output_ids, naive.order, naive.steps)
    assert run.counters.nfe <= naive.forwards


@settings(max_examples=60, deadline=None)
@given(prompted(), wilds, ways, specs("independent"), seeds)
def test_with_independent_noise_the_counts_hold_and_a_run_repeats(
    asked: tuple[ToyTarget, list[int]], drafter: RandomStepsDrafter, way: Verification, spec: DecodeSpec, seed: int
) -> None:
    target, prompt = asked
    (first, _), (again, _) = (crossing(target, drafter, prompt, spec, seed, way) for _ in range(2))
    assert (told(first), first.counters) == (told(again), again.counters)


def begun(run: Generation, spec: DecodeSpec, prompt: int) -> list[tuple[bool, int]]:
    """Of every block but the first: whether it was begun in a round of the one before, and that round's drafts."""
    rounds: dict[int, set[int]] = {}
    for index, number in zip(run.order, run.rounds, strict=True):
        rounds.setdefault((prompt + index) // spec.block_length, set()).add(number)
    own = [rounds[block] for block in sorted(rounds)]
    firsts = [(min(later) in earlier, min(later)) for earlier, later in pairwise(own)]
    return [(crossed, run.counters.drafted[number]) for crossed, number in firsts]


@pytest.mark.parametrize("way", [PLAIN, CROSSING, REFRESHED])
@pytest.mark.parametrize("commit", ["standard", "threshold"])
def test_the_switches_do_what_they_say(commit: CommitRule, way: Verification) -> None:
    """Without `cross_block` blocks are begun in rounds of their own; only with `refresh` are there drafts in those."""
    target = ToyTarget(seed=4, drift=0.05, scale=3.0)
    spec = DecodeSpec(max_new_tokens=46, block_length=8, commit=commit, tau=0.8)
    crossed = drafted_first = crossings = 0
    for seed in range(8):
        run, spy = crossing(target, RandomStepsDrafter(seed, 8), [1, 2], spec, seed, way)
        firsts = begun(run, spec, 2)
        assert len(firsts) == 5
        crossed += sum(by_crossing for by_crossing, _ in firsts)
        drafted_first += sum(drafts > 0 for by_crossing, drafts in firsts if not by_crossing)
        crossings += sum(asked.crossing for asked in spy.asked)
    assert (crossings > 0) == (crossed > 0) == way.cross_block
    assert (drafted_first > 0) == way.refresh


def test_refresh_needs_no_more_forwards_than_crossing_alone_and_now_and_then_fewer() -> None:
    spec, totals = DecodeSpec(max_new_tokens=48, block_length=6, commit="threshold", tau=0.6), dict[Verification, int]()
    for seed in range(12):
        target = ToyTarget(seed=seed, drift=0.02, scale=3.0)
        runs = {
            way: crossing(target, RandomStepsDrafter(seed, 3), [], spec, 0, way)[0] for way in (CROSSING, REFRESHED)
        }
        for way, run in runs.items():
            totals[way] = totals.get(way, 0) + run.counters.nfe
    assert totals[REFRESHED] < totals[CROSSING]


@pytest.mark.parametrize("name", ["toy", "sdar", "llada2"])
@pytest.mark.parametrize("way", [CROSSING, REFRESHED])
def test_a_block_that_a_crossing_step_fills_wholly_rides_along_with_the_one_before(
    name: str, way: Verification
) -> None:
    """Two blocks are committed between two forwards."""
    target = ToyTarget(seed=1, drift=0.3, scale=4.0) if name == "toy" else checkpoint(name)
    filled = set()
    for prompt, tau in product(([], [9], [9, 8, 7]), (0.3, 0.6, 0.8, 0.9)):
        spec = DecodeSpec(max_new_tokens=15, block_length=2, commit="threshold", tau=tau, ignore_eos=True)
        naive = reference(target, prompt, spec=spec, seed=0)
        future, steps = recorded(target, prompt, spec, 0)
        run, spy = crossing(target, KnowingStepsDrafter(future, 4), prompt, spec, 0, way)
        assert (run.output_ids, run.order, run.steps) == (naive.output_ids, naive.order, naive.steps)
        assert run.counters.nfe == steps_floor(steps, 4, cross_block=True)
        filled |= {asked.filled for asked in spy.asked}
    assert filled == {0, 1, 2}


class LaterSure(ToyTarget):
    """All confidences tie in the first block; in later ones it is sure of token 1 everywhere."""

    def row(self, prefix: tuple[int, ...], block: tuple[int, ...]) -> Tensor:
        row_LV = torch.zeros(len(block), self.vocab_size, dtype=torch.float64)
        row_LV[:, 1] = 9.0 if prefix else 0.0
        return row_LV


class WrongCrosser:
    """One draft: the block filled with a token that is never emitted, and the next one behind it."""

    budget = 3

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        step = tuple(Commit(place, 9) for place in root.open)
        state = stale.beyond.after(root.fill(*step)) if stale.beyond else None
        return root_alone(state).below(root, step) if state else root_alone(root)


def test_a_glimpsed_block_that_one_step_fills_is_crossed_in_its_first_round() -> None:
    """Four steps of the first block, with wrong drafts beside them that glimpse the second. That is filled in one step,
    which is drafted, and the third by the first step behind it. Without refresh both begin alone.
    """
    target, spec = LaterSure(), DecodeSpec(max_new_tokens=12, block_length=4, commit="threshold", tau=0.5)
    beside, alone = Asked(1, 1, 0), Asked(1, 0, 0)
    run, spy = crossing(target, WrongCrosser(), [], spec, 0, REFRESHED)
    assert run.steps == (1, 1, 1, 1, 4, 4)
    assert spy.asked == [alone, beside, beside, beside, Asked(1, 1, 1)]
    assert run.counters.accepted == (0, 0, 0, 0, 1)
    run, spy = crossing(target, WrongCrosser(), [], spec, 0, CROSSING)
    assert run.steps == (1, 1, 1, 1, 4, 4)
    assert spy.asked == [alone, beside, beside, beside, Asked(1, 0, 1), Asked(1, 0, 1)]


def test_positions_of_three_blocks_by_hand() -> None:
    """Blocks of 4, budget 3: the first step alone; three active copies and a crossing one, which take four steps;
    likewise with the filled block behind them; three steps of the last block, with two drafts.
    """
    target, spec = const_target(1), DecodeSpec(max_new_tokens=12, block_length=4)
    future, steps = recorded(target, [], spec, 0)
    run, spy = crossing(target, KnowingStepsDrafter(future, 3), [], spec, 0, CROSSING)
    assert steps == [4, 4, 4]
    assert spy.asked == [Asked(1, 0, 0), Asked(3, 1, 0), Asked(3, 1, 1), Asked(3, 0, 1)]
    assert run.counters.positions == 4 * (1 + 5 + 6 + 4)
    assert (run.counters.accepted, run.counters.drafted) == ((0, 3, 3, 2), (0, 3, 3, 2))
    assert run.rounds == (0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3)


@pytest.mark.parametrize("ignore_eos", [False, True])
def test_nothing_crosses_behind_an_ended_text(ignore_eos: bool) -> None:
    """Every token is a stop id: the text ends in its first block, unless that is to be ignored."""
    target = const_target(1, stops=(1,))
    spec = DecodeSpec(max_new_tokens=18, block_length=5, ignore_eos=ignore_eos)
    for drafter in (KnowingStepsDrafter(recorded(target, [7], spec, 0)[0], 8), RandomStepsDrafter(0, 8)):
        run, spy = crossing(target, drafter, [7], spec, 0, REFRESHED)
        assert run.output_ids == (1,) * (18 if ignore_eos else 4)
        assert any(asked.crossing for asked in spy.asked) == ignore_eos


def test_a_stop_id_of_the_prompt_stops_no_crossing() -> None:
    target, spec, prompt = const_target(2, stops=(1,)), DecodeSpec(max_new_tokens=11, block_length=5), [1, 1]
    future, steps = recorded(target, prompt, spec, 0)
    run, spy = crossing(target, KnowingStepsDrafter(future, 8), prompt, spec, 0, CROSSING)
    assert (run.output_ids, run.finish_reason) == ((2,) * 11, "length")
    assert steps == [3, 5, 3]
    assert [asked.crossing for asked in spy.asked] == [0, 1, 1, 0]
    assert begun(run, spec, 2) == [(True, 2), (True, 4)]


Law = dict[tuple[tuple[int, ...], tuple[int, ...]], float]


class SmallTarget(ToyTarget):
    """Two tokens, one that is never emitted, and the mask; each of the few rows is made once."""

    def __init__(self) -> None:
        super().__init__(seed=5, vocab_size=4, drift=0.3, scale=1.5)
        self.rows: dict[tuple[tuple[int, ...], ...], Tensor] = {}

    def row(self, prefix: tuple[int, ...], block: tuple[int, ...]) -> Tensor:
        if (prefix, block) not in self.rows:
            self.rows[prefix, block] = super().row(prefix, block)
        return self.rows[prefix, block]


SMALL = SmallTarget()


def exact_law(spec: DecodeSpec, done: tuple[int, ...] = (), block: tuple[int, ...] = (3, 3)) -> Law:
    """Probability of every (order, output) of two blocks of two: each forward draws anew at every open position."""
    open = [place for place, token in enumerate(block) if token == 3]
    if not open and len(done) == 2:
        return {((), (*done, *block)): 1.0}
    if not open:
        return exact_law(spec, block)
    logits_LV = SMALL.logits(SMALL.row(done, block))
    p_LV, drawn_LV = logits_LV.softmax(-1).tolist(), (logits_LV / spec.temperature).softmax(-1).tolist()
    law: Law = {}
    for tokens in product((0, 1), repeat=len(open)):
        token_at = dict(zip(open, tokens, strict=True))
        chance = prod(drawn_LV[place][token] for place, token in token_at.items())
        sure = {
            place: drawn_LV[place][token_at[place]] if spec.confidence == "sampled" else max(p_LV[place])
            for place in open
        }
        step = [place for place in open if sure[place] > spec.tau] or [max(open, key=sure.__getitem__)]
        after = tuple(token_at[place] if place in step else token for place, token in enumerate(block))
        for (order, output), further in exact_law(spec, done, after).items():
            outcome = (*(len(done) + place for place in step), *order), output
            law[outcome] = law.get(outcome, 0.0) + chance * further
    return law


@pytest.mark.slow
@pytest.mark.parametrize(
    ("commit", "confidence", "way"),
    [
        ("standard", "top1", REFRESHED),
        ("standard", "sampled", CROSSING),
        ("threshold", "top1", CROSSING),
        ("threshold", "top1", REFRESHED),
        ("threshold", "sampled", REFRESHED),
    ],
)
def test_independent_noise_keeps_the_law_across_blocks(
    commit: CommitRule, confidence: Confidence, way: Verification
) -> None:
    spec = DecodeSpec(
        max_new_tokens=4,
        block_length=2,
        temperature=1.5,
        noise="independent",
        confidence=confidence,
        commit=commit,
        tau=0.7,
    )
    law, seen, crossed, drafted = exact_law(spec), Counter[tuple[tuple[int, ...], tuple[int, ...]]](), 0, 0
    assert sum(law.values()) == pytest.approx(1.0)
    for seed in range(500):
        run, _ = crossing(SMALL, RandomStepsDrafter(seed, 4), [], spec, seed, way)
        seen[run.order, run.output_ids] += 1
        ((by_crossing, drafts),) = begun(run, spec, 0)
        crossed, drafted = crossed + by_crossing, drafted + (drafts > 0 and not by_crossing)
    assert p_value(seen, law) > ALPHA
    assert crossed > 25, "else nothing crossed and nothing is shown"
    assert (drafted > 10) == way.refresh
