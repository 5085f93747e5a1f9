"""Pairs of cells that differ in one option: which are found, and their numbers worked out by hand."""

from dataclasses import replace

import pytest

from sweeps.aggregate import aggregate_all
from sweeps.cell import Cell
from sweeps.merge import CellRows
from sweeps.pairs import Pair, pairs_of
from sweeps.records import Counters, GenerationRecord, TimingRecord
from tests.synthetic import draft_free, grid, sweep

BASE, _, SPOT = grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,), gammas=())


def cell(name: str, **options: object) -> Cell:
    return replace(SPOT, drafter=replace(SPOT.drafter, name=name, **options))  # type: ignore[arg-type]


PLAIN = cell("plain")
UNMERGED = cell("b", merge_states=False)
COST = cell("c", cost_digest="curve")
VERIFIED = cell("d", verify_margin=0.5)
BOTH = cell("e", verify_margin=0.5, cost_digest="curve")
OTHER_BUDGET = cell("f", budget=9, cost_digest="curve")


def found(*cells: Cell) -> list[tuple[str, str, str]]:
    made = sweep((BASE, *cells), prompts=3, timed=0)
    rows = made.rows()
    return [
        (pair.option.field, pair.with_it.cell.drafter.name, pair.plain.cell.drafter.name)
        for pair in pairs_of(aggregate_all(made.jobs, rows), rows)
    ]


def test_cells_equal_but_for_one_option_are_pairs_whatever_they_are_called() -> None:
    assert found(PLAIN, UNMERGED, COST, VERIFIED, BOTH, OTHER_BUDGET) == [
        ("merge_states", "plain", "b"),
        ("cost_digest", "c", "plain"),
        ("cost_digest", "e", "d"),
        ("verify_margin", "d", "plain"),
        ("verify_margin", "e", "c"),
    ]
    assert found(UNMERGED, BOTH, OTHER_BUDGET) == []
    assert found(cell("zero", gamma=0.0), cell("some", gamma=0.1), cell("more", gamma=0.2)) == [
        ("gamma", "some", "zero"),
        ("gamma", "more", "zero"),
    ]
    assert found() == []


def generation(index: int, *, nfe: int, recomputes: int = 0, drafted: int = 0, merged: int = 0, trimmed: int = 0):  # type: ignore[no-untyped-def]
    base: GenerationRecord = draft_free(BASE, index)
    rounds = nfe - recomputes
    counters = Counters(
        nfe=nfe,
        prefill_forwards=1,
        prefill_positions=32,
        kv_passes=0,
        positions=32,
        accepted=(1,) * rounds,
        drafted=(drafted,) * rounds,
        merged=merged,
        drafter_calls=1,
        recomputes=recomputes,
        trimmed=trimmed,
    )
    return replace(base, counters=counters)


def timing(index: int, seconds: float, draft_free_seconds: float) -> TimingRecord:
    base = draft_free(BASE, index)
    return TimingRecord(
        prompt_id=base.prompt_id,
        prompt_index=index,
        tokens_kept=base.tokens_kept,
        nfe=1,
        baseline_nfe=1,
        identical=True,
        variant_seconds=(seconds,) * 3,
        baseline_seconds=(draft_free_seconds,) * 3,
        drafter_seconds=0.1,
        forward_seconds=0.1,
        walk_seconds=0.1,
    )


def paired() -> Pair:
    made = sweep((BASE, PLAIN, COST), prompts=3, timed=3)
    ours = {0: generation(0, nfe=10, drafted=3, trimmed=40), 1: generation(1, nfe=30, recomputes=10, drafted=3)}
    theirs = {
        0: generation(0, nfe=12, drafted=8, merged=6),
        1: generation(1, nfe=36, drafted=8, merged=42),
        2: generation(2, nfe=9),
    }
    rows = {
        BASE.cell_id: CellRows(generations={i: draft_free(BASE, i) for i in range(3)}),
        COST.cell_id: CellRows(generations=ours, timings={0: timing(0, 2.0, 8.0), 1: timing(1, 3.0, 8.0)}),
        PLAIN.cell_id: CellRows(
            generations=theirs, timings={0: timing(0, 3.0, 10.0), 1: timing(1, 5.0, 10.0), 2: timing(2, 1.0, 1.0)}
        ),
    }
    (pair,) = pairs_of(aggregate_all(made.jobs, rows), rows)
    return pair


def test_forwards_are_compared_over_the_prompts_that_both_decoded() -> None:
    pair = paired()
    assert (pair.nfe_plain, pair.nfe_with_it) == (24.0, 20.0)
    assert pair.nfe_ratio.value == pytest.approx(48 / 40)
    assert pair.nfe_ratio.n == 2
    assert pair.nfe_ratio.low is pair.nfe_ratio.high is None, "two prompts that agree are no certainty"


def test_throughputs_are_compared_as_multiples_of_draft_free() -> None:
    """Plain took 8 s where draft-free took 20; with the option 5 s where it took 16: 3.2 times against 2.5 times."""
    pair = paired()
    assert pair.throughput_ratio.value == pytest.approx((16 / 5) / (20 / 8))
    assert pair.throughput_ratio.n == 2
    assert pair.throughput_ratio.low is None
    assert pair.doubts == ("2 prompts, fewer than 3",)


def test_counts_are_a_round_and_a_recompute_is_no_round() -> None:
    """30 rounds with the option (40 forwards less 10 recomputes), 48 without."""
    pair = paired()
    assert pair.rounds_with_it.drafted == 3.0
    assert pair.rounds_with_it.trimmed == pytest.approx(40 / 30)
    assert pair.rounds_with_it.recomputed == pytest.approx(10 / 30)
    assert pair.rounds_with_it.accepted == 1.0
    assert pair.rounds_plain.drafted == 8.0
    assert pair.rounds_plain.merged == 1.0
    assert pair.rounds_plain.recomputed == pair.rounds_plain.trimmed == 0.0


def test_identity_is_counted_over_the_prompts_that_all_three_decoded() -> None:
    pair = paired()
    assert (pair.compared, pair.identical_plain, pair.identical_with_it) == (2, 2, 2)
    assert (pair.forwards, pair.recomputes) == (40, 10)
