"""Throughput over standard decoding: one link, two links, worked out by hand; what is missing leaves it undefined."""

import pytest

from sweeps.aggregate import aggregate_all
from sweeps.merge import CellRows
from sweeps.pace import CHAINED, pace_of
from sweeps.records import TimingRecord
from sweeps.todo import jobs_of
from tests.set_rows import set_cells
from tests.synthetic import MeasureSpec, grid, sweep

STANDARD, FREE, EXACT, *LOSSY = set_cells(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,))[0])


def timing(index: int, tokens: int, seconds: float, other_tokens: int, other_seconds: float) -> TimingRecord:
    return TimingRecord(
        prompt_id=f"p{index}",
        prompt_index=index,
        tokens_kept=tokens,
        nfe=4,
        baseline_nfe=9,
        identical=tokens == other_tokens,
        variant_seconds=(seconds, 2 * seconds, seconds / 2),  # the median is the one in the middle
        baseline_seconds=(other_seconds,) * 3,
        drafter_seconds=0.0,
        forward_seconds=0.0,
        walk_seconds=0.0,
        baseline_tokens_kept=other_tokens,
    )


def rows(*timings: TimingRecord) -> CellRows:
    return CellRows(timings={one.prompt_index: one for one in timings})


FREE_ROWS = rows(timing(0, 100, 2.0, 100, 10.0), timing(1, 90, 3.0, 60, 5.0), timing(2, 50, 1.0, 50, 4.0))
OWN_ROWS = rows(timing(0, 100, 1.0, 100, 2.5), timing(1, 80, 1.5, 90, 2.5), timing(7, 1, 1.0, 1, 1.0))


def test_threshold_decoding_beside_standard_decoding() -> None:
    pace = pace_of(FREE, FREE_ROWS, FREE_ROWS, CellRows())
    assert pace is not None
    assert pace.ratio.value == pytest.approx((240 / 6.0) / (210 / 19.0))
    assert (pace.ratio.n, pace.ratio.how) == (3, "measured")


def test_a_drafted_cell_is_two_links_over_the_prompts_that_both_have() -> None:
    pace = pace_of(EXACT, OWN_ROWS, FREE_ROWS, CellRows())
    assert pace is not None
    over_threshold = (180 / 2.5) / (190 / 5.0)  # prompts 0 and 1
    over_standard = (190 / 5.0) / (160 / 15.0)
    assert pace.ratio.value == pytest.approx(over_threshold * over_standard)
    assert (pace.ratio.n, pace.ratio.how) == (2, CHAINED)
    assert "2 prompts, fewer than 3" in pace.doubts


def test_on_the_same_prompts_it_is_the_product_of_both_ratios() -> None:
    made = sweep((STANDARD, FREE, EXACT, *LOSSY), prompts=12, timed=12)
    _, free, *drafted = aggregate_all(made.jobs, made.rows())
    assert free.pace is not None
    for result in drafted:
        assert result.pace is not None
        ratio, links = result.pace.ratio, (free.pace.ratio.value or 0.0, result.throughput.ratio.value or 0.0)
        assert ratio.value == pytest.approx(links[0] * links[1])
        assert ratio.n == 12
        assert (ratio.low or 0.0) < ratio.value < (ratio.high or 0.0)


def test_without_a_link_it_is_undefined_and_by_the_standard_rule_there_is_none() -> None:
    assert pace_of(STANDARD, FREE_ROWS, FREE_ROWS, FREE_ROWS) is None
    for own, free in ((CellRows(), FREE_ROWS), (OWN_ROWS, CellRows())):
        pace = pace_of(EXACT, own, free, CellRows())
        assert pace is not None
        assert (pace.ratio.value, pace.ratio.n, pace.doubts) == (None, 0, ())


def test_each_cell_is_timed_beside_the_right_one() -> None:
    assert EXACT.timed_beside() == FREE
    assert FREE.timed_beside() == STANDARD == STANDARD.timed_beside()
    assert STANDARD.decode.tau == 1.0
    assert FREE.timed_beside().cell_id == STANDARD.cell_id


def test_draft_free_cells_are_timed_where_something_is_to_be_held_against_them() -> None:
    def timed(*cells) -> list[int]:  # type: ignore[no-untyped-def]
        return [job.timed_prompts for job in jobs_of(cells, MeasureSpec(prompts=5, timed_prompts=2))]

    assert timed(STANDARD, FREE, EXACT) == [0, 2, 2]  # the standard rule's seconds come from beside the threshold's
    assert timed(FREE, EXACT) == [0, 2]  # nobody asks for the standard rule
    assert timed(FREE) == [2]
    assert timed(STANDARD) == [2]
    assert timed(STANDARD, FREE) == [0, 2]


def test_draft_free_rates_come_from_the_runs_beside_them_and_have_no_ratio() -> None:
    made = sweep((STANDARD, FREE, EXACT), prompts=4, timed=4)
    standard, free, exact = aggregate_all(made.jobs, made.rows())
    assert standard.throughput.ratio.value is free.throughput.ratio.value is None
    assert free.throughput.tokens_per_s.value == pytest.approx(exact.throughput.tokens_per_s_draft_free.value, rel=0.01)
    timings = made.rows()[FREE.cell_id].timings.values()
    seconds = sum(sorted(one.baseline_seconds)[1] for one in timings)
    tokens = sum(one.baseline_tokens_kept or 0 for one in timings)
    assert standard.throughput.tokens_per_s.value == pytest.approx(tokens / seconds)
    alone = sweep((FREE,), prompts=4, timed=4)
    (result,) = aggregate_all(alone.jobs, alone.rows())
    assert result.throughput.ratio.value is None
    assert result.throughput.tokens_per_s.value
    assert result.pace is not None
    assert result.pace.ratio.value


def test_a_timing_that_took_other_forwards_than_the_decode_pass_of_either_rule_is_an_alarm() -> None:
    made = sweep((STANDARD, FREE), prompts=3, timed=3)
    _, free = aggregate_all(made.jobs, made.rows())
    assert free.alarms == ()
    stored = made.rows()
    one = stored[FREE.cell_id].timings[0]
    for field in ("nfe", "baseline_nfe"):
        odd = {name: getattr(one, name) for name in TimingRecord.__slots__} | {field: 1}
        stored[FREE.cell_id].timings[0] = TimingRecord(**odd)
        _, free = aggregate_all(made.jobs, stored)
        assert [alarm.kind for alarm in free.alarms] == ["NFE differs between passes"]
