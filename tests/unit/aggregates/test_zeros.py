"""Counts of zero (empty answers, prompts without a stale draw) in every estimate: undefined is None, nothing raises."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports import noise_modes
from sweeps import pairs, timings
from sweeps.aggregate import aggregate_all
from sweeps.draws import share
from sweeps.merge import CellRows
from sweeps.statistics import Estimate, clustered_share, mean, ratio_of_sums, wilson
from sweeps.timings import TimedPrompt
from tests.synthetic import Faults, draft_free, generation, grid, sweep, timing

COUNTS = st.one_of(st.just(0), st.integers(0, 3), st.integers(0, 10**6))
SECONDS = st.one_of(st.just(0.0), st.floats(1e-6, 1e4))
CELLS = grid(tasks=("tiny-arith",), budgets=(4,), temperatures=(0.0,))
BASE, SSD, SPOT, FLOOR = CELLS


def is_whole(estimate: Estimate, defined: bool) -> None:
    """The value is there exactly when it is defined; an interval holds it and has both ends or none."""
    assert (estimate.value is not None) == defined
    assert (estimate.low is None) == (estimate.high is None)
    if estimate.low is not None and estimate.high is not None and estimate.value is not None:
        assert 0 <= estimate.low <= estimate.value * (1 + 1e-9)
        assert estimate.value <= estimate.high * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(COUNTS, COUNTS), max_size=8))
def test_ratios_means_and_shares(counts: list[tuple[int, int]]) -> None:
    above, below = [a for a, _ in counts], [b for _, b in counts]
    is_whole(ratio_of_sums(above, below), sum(below) > 0)
    is_whole(mean(above), bool(above))
    hits = [min(a, b) for a, b in counts]
    is_whole(share(hits, below), sum(below) > 0)
    is_whole(clustered_share(hits, below), sum(below) > 0)
    is_whole(wilson(sum(hits), sum(below)), sum(below) > 0)


@st.composite
def timed_prompts(draw: st.DrawFn) -> list[TimedPrompt]:
    return [
        TimedPrompt(
            tokens=draw(COUNTS),
            tokens_draft_free=draw(COUNTS),
            seconds=tuple(draw(st.lists(SECONDS, min_size=1, max_size=3))),
            seconds_draft_free=tuple(draw(st.lists(SECONDS, min_size=1, max_size=3))),
        )
        for _ in range(draw(st.integers(0, 5)))
    ]


@settings(max_examples=40, deadline=None)
@given(timed_prompts())
def test_throughputs(prompts: list[TimedPrompt]) -> None:
    ratio = timings.throughput_ratio(prompts)
    assert ratio.value is None or math.isfinite(ratio.value)
    timings.rate([p.tokens for p in prompts], [p.seconds for p in prompts])


def side(cell, kept: tuple[int, ...], plain: tuple[int, ...]) -> CellRows:  # type: ignore[no-untyped-def]
    """Rows of a cell in which prompt i keeps `kept[i]` tokens, and draft-free decoding `plain[i]`."""
    rows = [replace(generation(cell, i), tokens_kept=count) for i, count in enumerate(kept)]
    times = {
        i: replace(timing(cell, row, 3, Faults()), identical=kept[i] == plain[i], prompt_index=i)
        for i, row in enumerate(rows)
    }
    return CellRows(generations=dict(enumerate(rows)), timings=times)


@pytest.mark.parametrize("kept", [(0,), (5, 0), (5, 6, 0), (5, 0, 0), (0, 0, 0), (5, 5, 5, 0, 0, 0), (5,) * 7 + (0,)])
def test_empty_answers_leave_two_throughputs_comparable_as_far_as_they_are(kept: tuple[int, ...]) -> None:
    baseline = {i: replace(draft_free(BASE, i), tokens_kept=n) for i, n in enumerate(kept)}
    ratio = pairs.throughput_ratio(side(SSD, kept, kept), side(SPOT, kept, kept), baseline)
    assert ratio.n == len(kept)
    if not any(kept):
        assert ratio.value is None
        return
    # equal tokens on both sides cancel: what is left is the time of either, as a multiple of its draft-free runs
    ours, theirs = (side(cell, kept, kept).timings for cell in (SSD, SPOT))
    speed = [
        sum(sorted(row.baseline_seconds)[1] for row in rows.values())
        / sum(sorted(row.variant_seconds)[1] for row in rows.values())
        for rows in (ours, theirs)
    ]
    assert ratio.value == pytest.approx(speed[0] / speed[1])
    assert (ratio.low is None) == (len(kept) < 8)  # a resample of empty answers alone has no ratio


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS), max_size=5))
def test_pairs_whose_sides_keep_nothing(counts: list[tuple[int, int, int]]) -> None:
    ours, theirs, plain = (tuple(row[k] for row in counts) for k in range(3))
    baseline = {i: replace(draft_free(BASE, i), tokens_kept=n) for i, n in enumerate(plain)}
    ratio = pairs.throughput_ratio(side(SSD, ours, plain), side(SPOT, theirs, plain), baseline)
    assert ratio.value is None or (math.isfinite(ratio.value) and ratio.value >= 0)
    if sum(plain) and sum(theirs):
        assert ratio.value is not None


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS, COUNTS), max_size=5))
def test_forwards_a_token_of_two_noise_modes(counts: list[tuple[int, int, int, int]]) -> None:
    def rows(nfe: int, tokens: int):  # type: ignore[no-untyped-def]
        base = draft_free(BASE, 0)
        counters = replace(base.counters, nfe=0, accepted=(), drafted=(), recomputes=0)
        few = min(nfe, 50)
        filled = replace(counters, nfe=few, accepted=(0,) * few, drafted=(0,) * few)
        keep = min(tokens, base.tokens_generated)
        return replace(
            base,
            counters=filled,
            output_ids=base.output_ids[:keep],
            order=tuple(range(keep)),
            rounds=(0,) * keep,
            margins=(None,) * keep,
            pieces=base.pieces[:keep],
            tokens_generated=keep,
            tokens_kept=0,
            drawn=None,
        )

    ours = {i: rows(a, b) for i, (a, b, _, _) in enumerate(counts)}
    theirs = {i: rows(c, d) for i, (_, _, c, d) in enumerate(counts)}
    estimate = noise_modes.forwards_ratio(ours, theirs)
    assert (estimate.value is not None) == (bool(counts) and all(sum(column) for column in zip(*counts, strict=True)))


@pytest.mark.parametrize("empty", [1, 3, 4])
def test_every_pair_of_a_sweep_with_empty_answers_is_there(empty: int) -> None:
    made = sweep(CELLS, prompts=4, timed=4, faults=Faults(empty=empty))
    rows = made.rows()
    results = aggregate_all(made.jobs, rows)
    (pair,) = [pair for pair in pairs.pairs_of(results, rows) if pair.option.field == "gamma"]
    assert pair.nfe_ratio.value is not None
    assert (pair.throughput_ratio.value is None) == (empty == 4)
    assert all(result.tokens.value is not None for result in results)
