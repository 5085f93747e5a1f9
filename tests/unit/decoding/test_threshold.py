"""The threshold rule against the naive decoder: outputs, orders, steps, counts, over targets, drafters, tau and T."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sweeps.spec import DecodeSpec
from tests.asked import prompted as any_prompted
from tests.asked import seeds
from tests.asked import specs as any_specs
from tests.drafters import ready
from tests.toys import (
    KnowingStepsDrafter,
    RandomDrafter,
    RandomStepsDrafter,
    ToyTarget,
    WrongDrafter,
    coarse_target,
    const_target,
    flat_target,
)
from workers.catalog import DRAFTERS
from workers.decoding.loop import decode
from workers.decoding.observe import Observer
from workers.decoding.reference import reference
from workers.decoding.seen import Seen
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.decoding.tally import Generation
from workers.decoding.tree import DraftTree
from workers.drafters.base import Drafter
from workers.drafters.none import NoDrafter
from workers.drafters.ssd import SsdDrafter

TOYS = ("random", "random steps", "wrong")
KINDS = [kind for kind, entry in DRAFTERS.items() if "threshold" in entry.commits]


def test_these_drafters_draft_for_the_threshold_rule() -> None:
    assert KINDS == ["none", "freedave", "spiffy", "spot-sets"]


@dataclass(frozen=True)
class Choice:
    """A drafter in the making: a kind of the table, or one of the toys."""

    kind: str
    seed: int
    budget: int

    def of(self, target: ToyTarget, prompt: list[int], spec: DecodeSpec, seed: int) -> Drafter:
        match self.kind:
            case "random":
                return RandomDrafter(self.seed, self.budget)
            case "random steps":
                return RandomStepsDrafter(self.seed, self.budget)
            case "wrong":
                return WrongDrafter(target.never, self.budget)
        if DRAFTERS[self.kind].artifact == "draft_graph" and spec.block_length < 3:
            return NoDrafter()  # no graph is that small
        return ready(self.kind, target, prompt, spec, seed, budget=self.budget)


choices = st.builds(
    Choice, kind=st.sampled_from([*KINDS, *TOYS]), seed=st.integers(0, 10**6), budget=st.integers(1, 12)
)
taus = st.one_of(st.floats(0.05, 0.99), st.sampled_from([0.05, 0.5, 0.7, 0.9, 0.99]))


def specs(noise: str = "coupled") -> st.SearchStrategy[DecodeSpec]:
    return any_specs(noise, commit=st.just("threshold"), tau=taus)


def prompted() -> st.SearchStrategy[tuple[ToyTarget, list[int]]]:
    """Some of the targets have ties alone."""
    makes = (ToyTarget, ToyTarget, ToyTarget, ToyTarget, flat_target)
    return any_prompted(makes, scale=st.sampled_from([1.0, 2.0, 4.0]))


def check_counts(target: ToyTarget, drafter: Drafter, run: Generation) -> None:
    """What holds of any run, whatever its noise."""
    counters, starts = run.counters, [0, *(sum(run.steps[:n]) for n in range(1, len(run.steps) + 1))]
    assert sum(run.steps) == len(run.output_ids) == len(run.order) == len(run.rounds) == len(run.margins)
    assert min(run.steps) >= 1
    assert len(run.steps) == counters.nfe + sum(counters.accepted)
    assert sorted(run.order) == list(range(len(run.output_ids)))
    assert max(counters.drafted) <= drafter.budget
    assert target.batches == [1 + drafts for drafts in counters.drafted]
    of_step = [r for r, accepted in enumerate(counters.accepted) for _ in range(accepted + 1)]
    assert list(run.rounds) == [r for r, size in zip(of_step, run.steps, strict=True) for _ in range(size)]
    for first, last in pairwise(starts):
        assert list(run.order[first:last]) == sorted(run.order[first:last])
        assert len({*run.margins[first:last]}) == 1


def assume_no_rounded_tie(run: Generation) -> None:
    """Leave out what ties but for rounding: rows with the same logits in another order have sums that differ by that,
    and the naive decoder adds them up exactly. Exact ties stay.
    """
    assume(not any(0 < margin < 1e-12 for margin in run.margins))


@settings(max_examples=80, deadline=None)
@given(prompted(), st.sampled_from(["coupled", "independent"]).flatmap(specs), seeds)
def test_draft_free_equals_the_naive_decoder_with_one_forward_a_step(
    asked: tuple[ToyTarget, list[int]], spec: DecodeSpec, seed: int
) -> None:
    target, prompt = asked
    naive = reference(target, prompt, spec=spec, seed=seed)
    target.batches.clear()
    free = decode(target, NoDrafter(), prompt, spec=spec, seed=seed)
    assume_no_rounded_tie(free)
    assert (free.output_ids, free.order, free.steps) == (naive.output_ids, naive.order, naive.steps)
    assert free.counters.nfe == naive.forwards <= len(free.output_ids)
    check_counts(target, NoDrafter(), free)


@settings(max_examples=200, deadline=None)
@given(prompted(), choices, specs(), seeds)
def test_no_drafter_changes_output_order_or_steps_or_needs_more_forwards(
    asked: tuple[ToyTarget, list[int]], choice: Choice, spec: DecodeSpec, seed: int
) -> None:
    target, prompt = asked
    naive = reference(target, prompt, spec=spec, seed=seed)
    drafter = choice.of(target, prompt, spec, seed)
    target.batches.clear()
    drafted = decode(target, drafter, prompt, spec=spec, seed=seed)
    assume_no_rounded_tie(drafted)
    assert (drafted.output_ids, drafted.order, drafted.steps) == (naive.output_ids, naive.order, naive.steps)
    assert drafted.counters.nfe <= naive.forwards
    check_counts(target, drafter, drafted)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), choices, specs(), seeds)
def test_among_many_ties_drafts_change_nothing(number: int, choice: Choice, spec: DecodeSpec, seed: int) -> None:
    """Against draft-free decoding: the naive decoder adds equal terms in another order, and breaks ties by rounding."""
    target = coarse_target(seed=number)
    free = decode(target, NoDrafter(), [1, 2], spec=spec, seed=seed)
    drafted = decode(target, choice.of(target, [1, 2], spec, seed), [1, 2], spec=spec, seed=seed)
    assert (drafted.output_ids, drafted.order, drafted.steps) == (free.output_ids, free.order, free.steps)


@settings(max_examples=60, deadline=None)
@given(prompted(), choices, specs("independent"), seeds)
def test_with_independent_noise_the_counts_hold_too(
    asked: tuple[ToyTarget, list[int]], choice: Choice, spec: DecodeSpec, seed: int
) -> None:
    target, prompt = asked
    drafter = choice.of(target, prompt, spec, seed)
    target.batches.clear()
    check_counts(target, drafter, decode(target, drafter, prompt, spec=spec, seed=seed))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("budget", [1, 2, 5])
def test_who_knows_the_steps_takes_one_forward_and_one_for_each_budget_and_one(temperature: float, budget: int) -> None:
    """A block of S steps takes 1 + ceil((S - 1) / (D + 1)) forwards; the state that fills it is never forwarded."""
    target = ToyTarget(seed=6, scale=2.5)
    spec = DecodeSpec(max_new_tokens=48, block_length=16, temperature=temperature, commit="threshold", tau=0.8)
    future: dict[tuple[int, BlockState], tuple[Commit, ...]] = {}
    blocks: dict[int, int] = {}

    def watch(seen: Seen) -> None:
        future[seen.start, seen.state] = seen.step
        blocks[seen.start] = blocks.get(seen.start, 0) + 1

    free = decode(target, NoDrafter(), [], spec=spec, seed=2, watch=watch)
    assert max(free.steps) > 1
    assert max(blocks.values()) > 3
    out = decode(target, KnowingStepsDrafter(future, budget), [], spec=spec, seed=2)
    assert (out.order, out.steps) == (free.order, free.steps)
    assert out.counters.nfe == sum(1 + ceil((steps - 1) / (budget + 1)) for steps in blocks.values())


def test_a_larger_step_jumps_over_nested_states() -> None:
    """Stale confidence order is right and steps fill several positions: the chain's walk skips the states between."""
    target = ToyTarget(seed=0, drift=0.05, scale=3.0)
    spec = DecodeSpec(max_new_tokens=64, block_length=16, commit="threshold", tau=0.7)
    free = decode(target, NoDrafter(), [], spec=spec, seed=0)
    jumps: list[int] = []
    drafter, trees = SsdDrafter(12), list[DraftTree]()

    class Kept(SsdDrafter):
        def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
            trees.append(super().propose(root, known, stale))
            return trees[-1]

    def watch(seen: Seen) -> None:
        if trees and (node := trees[-1].find(seen.state)):
            jumps.append(node)

    out = decode(target, Kept(drafter.budget), [], spec=spec, seed=0, watch=watch)
    assert (out.order, out.steps) == (free.order, free.steps)
    assert sum(out.counters.accepted) == len(jumps) > 0
    assert any(node > 1 for node in jumps), "no walk ever passed over a state"
    assert out.counters.nfe < free.counters.nfe


@pytest.mark.parametrize("temperature", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("confidence", ["top1", "sampled"])
def test_a_tau_that_no_two_exceed_is_the_standard_rule_step_for_step(temperature: float, confidence: str) -> None:
    target = ToyTarget(seed=9)
    standard = DecodeSpec(
        max_new_tokens=23,
        block_length=6,
        temperature=temperature,
        confidence=confidence,  # type: ignore[arg-type]
    )
    highest = second = -math.inf

    def watch(seen: Seen) -> None:
        nonlocal highest, second
        below, top = [-math.inf, *sorted(seen.verdict.draws.confidence_R.tolist())][-2:]
        highest, second = max(highest, top), max(second, below)

    runs = [decode(target, NoDrafter(), [1, 2], spec=standard, seed=4, watch=watch)]
    for limit in (highest, second):
        spec = replace(standard, commit="threshold", tau=1 / (1 + math.exp(-limit - 1e-6)))
        runs += [decode(target, drafter, [1, 2], spec=spec, seed=4) for drafter in (NoDrafter(), SsdDrafter(4))]
    assert {run.steps for run in runs} == {(1,) * 23}
    assert len({(run.output_ids, run.order) for run in runs}) == 1
    assert runs[0].counters == runs[1].counters == runs[3].counters
    below = replace(standard, commit="threshold", tau=1 / (1 + math.exp(-second + 1e-6)))
    assert max(decode(target, NoDrafter(), [1, 2], spec=below, seed=4).steps) == 2


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_tau_that_everything_exceeds_fills_a_block_in_one_forward_and_drafts_nothing(temperature: float) -> None:
    target = ToyTarget(seed=2)
    spec = DecodeSpec(max_new_tokens=21, block_length=8, temperature=temperature, commit="threshold", tau=1e-9)
    for drafter in (NoDrafter(), SsdDrafter(6)):
        run = decode(target, drafter, [1, 2, 3], spec=spec, seed=0)
        assert run.steps == (5, 8, 8)
        assert (run.counters.nfe, sum(run.counters.drafted)) == (3, 0)
        assert run.order == tuple(range(21))


def test_a_position_at_tau_exactly_is_not_committed_with_the_others() -> None:
    """Two tokens of equal logits: p is one half and the log-odds 0, which tau = 0.5 does not let pass."""
    target = flat_target(vocab_size=4)
    for tau, steps in ((0.5, (1, 1, 1, 1)), (0.4999, (4,))):
        spec = DecodeSpec(max_new_tokens=4, block_length=4, commit="threshold", tau=tau)
        assert decode(target, NoDrafter(), [], spec=spec, seed=0).steps == steps


def test_the_single_most_confident_one_of_equals_is_the_lowest() -> None:
    spec = DecodeSpec(max_new_tokens=5, block_length=5, commit="threshold", tau=0.999999)
    assert decode(const_target(1), NoDrafter(), [], spec=spec, seed=0).order == (0, 1, 2, 3, 4)


def test_an_observer_sees_every_commit_of_every_step() -> None:
    target = ToyTarget(seed=1, scale=3.0)
    for noise in ("coupled", "independent"):
        spec = DecodeSpec(
            max_new_tokens=30,
            block_length=10,
            temperature=1.0,
            noise=noise,  # type: ignore[arg-type]
            commit="threshold",
            tau=0.6,
        )
        observer = Observer(spec)
        run = decode(target, NoDrafter(), [], spec=spec, seed=0, watch=observer)
        drawn = observer.drawn()
        assert len(drawn.agreed) == 30
        first, firsts = 0, 0
        for size in run.steps:
            new_block = first % 10 == 0
            assert (drawn.agreed[first : first + size] == "-" * size) == new_block
            firsts += size if new_block else 0
            first += size
        assert drawn.agreed.count("-") == firsts < 30
