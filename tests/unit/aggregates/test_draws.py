"""Draws of a cell, aggregated: every number against sums done by hand; intervals over prompts, not over commits."""

from dataclasses import replace

import pytest

from orchestrator.tracking_rows import row_of
from sweeps.aggregate import aggregate, aggregate_all
from sweeps.draws import NO_DRAWS, bound_holds_for, draw_stats
from sweeps.merge import NO_ROWS
from sweeps.records import Drawn, GenerationRecord
from sweeps.results import decode_result, encode_result, parse_result
from sweeps.spec import DecodeSpec
from tests.synthetic import draft_free, grid, sweep

CELL = grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(1.0,))[0]


def row(index: int, drawn: Drawn | None) -> GenerationRecord:
    return replace(draft_free(CELL, index), drawn=drawn)


ONE = Drawn(argmax="1101", agreed="-101", distances=(None, 0.0, 0.5, 1.0))
TWO = Drawn(argmax="10", agreed="-1", distances=(None, 0.25))


def test_every_number_is_the_one_worked_out_by_hand() -> None:
    stats = draw_stats([row(0, ONE), row(1, TWO), row(2, None)])
    assert stats.commits == 4
    assert stats.argmax.value == pytest.approx(4 / 6)
    assert stats.distance.value == pytest.approx(1.75 / 4)
    assert stats.agreement.value == pytest.approx(3 / 4)
    assert stats.bound.value == pytest.approx((1 + 1 / 3 + 0 + 0.6) / 4)
    assert stats.argmax.n == stats.bound.n == 2  # the row that nobody watched is not a prompt here


def test_an_interval_is_over_prompts_and_ends_at_one() -> None:
    alone = draw_stats([row(0, ONE)])
    assert (alone.agreement.low, alone.agreement.high) == (None, None)
    many = draw_stats([row(index, TWO if index % 2 else ONE) for index in range(8)])
    assert many.agreement.low is not None
    assert many.agreement.high is not None
    assert many.agreement.low < 0.75 < many.agreement.high <= 1.0
    assert draw_stats([row(index, ONE) for index in range(8)]).agreement.low is None  # a few prompts, all alike
    equal = draw_stats([row(index, ONE) for index in range(30)])  # many alike: no spread, however commits differ
    assert equal.agreement.low == pytest.approx(2 / 3)
    assert equal.agreement.high == pytest.approx(2 / 3)


def test_rows_without_draws_and_blocks_of_one_commit_have_no_numbers() -> None:
    assert draw_stats([row(0, None)]) == NO_DRAWS
    first_only = draw_stats([row(0, Drawn(argmax="1", agreed="-", distances=(None,)))])
    assert (first_only.argmax.value, first_only.commits) == (1.0, 0)
    assert first_only.distance.value is first_only.agreement.value is first_only.bound.value is None
    assert not first_only.below_bound


@pytest.mark.parametrize(
    ("even", "odd", "below"),
    [("-0000", "-0001", True), ("-0001", "-0111", False), ("-1111", "-0111", False)],
)
def test_agreement_is_below_the_bound_when_its_whole_interval_is(even: str, odd: str, below: bool) -> None:
    kinds = [Drawn(argmax="11111", agreed=agreed, distances=(None, 0.3, 0.3, 0.3, 0.3)) for agreed in (even, odd)]
    stats = draw_stats([row(index, kinds[index % 2]) for index in range(12)])
    assert stats.bound.value == pytest.approx(0.7 / 1.3)  # the second case has 0.5 and an interval around it
    assert stats.below_bound is below


def test_the_bound_speaks_of_shared_noise_and_positions_chosen_without_it() -> None:
    assert bound_holds_for(DecodeSpec(temperature=1.0))
    assert not bound_holds_for(DecodeSpec(temperature=1.0, noise="independent"))
    assert not bound_holds_for(DecodeSpec(temperature=1.0, confidence="sampled"))


def test_they_are_stored_read_back_and_mirrored() -> None:
    made = sweep((CELL,), prompts=4, timed=0)
    (stored,) = made.results[CELL.cell_id]
    back = decode_result(encode_result(stored))
    assert [one.drawn for one in back.generations] == [one.drawn for one in stored.generations]
    (result,) = aggregate_all(made.jobs, made.rows())
    expected = draw_stats(stored.generations)
    assert result.draws == expected
    metrics = row_of(result, "s").metrics
    assert metrics["argmax_share"] == expected.argmax.value
    assert metrics["stale_distance_low"] == expected.distance.low
    assert metrics["stale_agreement"] == expected.agreement.value
    assert metrics["agreement_bound_high"] == expected.bound.high
    assert metrics["n_stale_commits"] == expected.commits


def test_files_written_before_there_were_draws_are_read() -> None:
    made = sweep((CELL,), prompts=2, timed=0)
    (stored,) = made.results[CELL.cell_id]
    old = replace(stored, generations=tuple(replace(one, drawn=None) for one in stored.generations))
    data = encode_result(old).replace(b',"drawn":null', b"")
    assert b"drawn" not in data
    inside = data.partition(b'"result":')[2][:-1]  # the seal around it is of other bytes
    assert parse_result(inside) == old
    assert aggregate(made.jobs[0], NO_ROWS, NO_ROWS).draws == NO_DRAWS
