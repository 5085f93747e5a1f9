"""Cells aggregated from records: means over what was decoded, claims checked, alarms where counts contradict."""

import json
import math
from dataclasses import replace

import msgspec
import pytest

from sweeps.aggregate import CellResult, aggregate, aggregate_all, wanted_rows
from sweeps.merge import NO_ROWS, merge, merge_all
from sweeps.records import Failure
from tests.synthetic import GAP, TIE, Faults, grid, sweep

CELLS = grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,))


def aggregated(faults=None, **options):
    made = sweep(CELLS, faults=faults or Faults(), **options)
    return made, {result.cell.drafter.name: result for result in aggregate_all(made.jobs, made.rows())}


def records(made, name):
    job = next(job for job in made.jobs if job.cell.drafter.name == name)
    return job, made.rows()[job.cell_id], made.rows()[job.cell.baseline().cell_id]


def test_nfe_is_the_mean_and_its_reduction_the_ratio_of_means():
    made, results = aggregated()
    _, rows, base = records(made, "spot")
    nfe = [row.counters.nfe for row in rows.generations.values()]
    plain = [row.counters.nfe for row in base.generations.values()]
    assert results["spot"].nfe.value == pytest.approx(sum(nfe) / 16)
    assert results["spot"].nfe_draft_free.value == pytest.approx(sum(plain) / 16)
    assert results["spot"].nfe_reduction.value == pytest.approx(sum(plain) / sum(nfe))
    assert results["spot"].nfe_reduction.low < results["spot"].nfe_reduction.value < results["spot"].nfe_reduction.high


def test_tokens_a_forward_are_accepted_states_plus_the_known_one():
    _, results = aggregated()
    for result in results.values():
        assert result.tokens_per_forward.value == pytest.approx(1 + result.accepted_per_round.value)
        rounds = sum(result.accepted_histogram)
        accepted = sum(a * n for a, n in enumerate(result.accepted_histogram))
        assert result.accepted_per_round.value == pytest.approx(accepted / rounds)
    assert results["none"].nfe_reduction.value == 1.0
    assert results["none"].accepted_histogram == (round(16 * results["none"].nfe.value),)


def test_failed_and_missing_prompts_enter_no_mean():
    made, results = aggregated(Faults(failed=3, missing=2))
    spot = results["spot"]
    assert (spot.n_expected, spot.n, spot.n_failed, spot.n_missing) == (16, 11, 3, 2)
    _, rows, base = records(made, "spot")
    paired = rows.generations.keys() & base.generations.keys()
    assert paired == set(range(3, 14))
    plain = sum(base.generations[i].counters.nfe for i in paired)
    ours = sum(rows.generations[i].counters.nfe for i in paired)
    assert spot.nfe_reduction.value == pytest.approx(plain / ours)
    assert spot.nfe_reduction.n == 11
    assert results["none"].n == 14


def test_a_cell_without_results_has_undefined_numbers_not_zeros():
    made, _ = aggregated(prompts=4)
    result = aggregate(made.jobs[1], NO_ROWS, NO_ROWS)
    assert (result.n, result.n_missing) == (0, 4)
    assert (
        result.nfe.value is result.nfe_reduction.value is result.throughput.ratio.value is result.correct.value is None
    )
    assert result.claim_holds is None


def test_a_kept_promise_a_broken_one_and_none():
    _, results = aggregated()
    assert results["spot"].claim_holds is True
    assert results["none"].claim_holds is None  # it is the reference
    _, broken = aggregated(Faults(near_ties=1, bugs=2))
    identity = broken["spot"].identity
    assert broken["spot"].claim_holds is False
    assert (identity.n_checked, identity.n_identical, identity.near_ties, identity.bugs) == (16, 13, 1, 2)
    assert [m.margin for m in identity.mismatches] == [TIE, GAP, GAP]


def test_independent_noise_promises_no_identity():
    cells = tuple(replace(cell, decode=replace(cell.decode, temperature=1.0, noise="independent")) for cell in CELLS)
    made = sweep(cells, faults=Faults(bugs=2))
    spot = next(r for r in aggregate_all(made.jobs, made.rows()) if r.cell.drafter.name == "spot")
    assert (spot.claim, spot.claim_holds, spot.alarms) == ("distribution-exact", None, ())
    assert (len(spot.identity.mismatches), spot.identity.bugs, spot.n_bugs, spot.n_near_ties) == (2, 0, None, None)
    assert {mismatch.verdict for mismatch in spot.identity.mismatches} == {None}


def test_sound_records_raise_no_alarm():
    _, results = aggregated(Faults(failed=1, missing=1, near_ties=1))
    assert all(result.alarms == () for result in results.values())


def changed(made, name, change):
    """The result of a cell after changing its first generation or timing."""
    job, rows, base = records(made, name)
    return aggregate(job, change(rows), base)


def test_counts_that_contradict_each_other_are_alarms_and_break_the_claim():
    made, _ = aggregated()

    def fewer_accepted(rows):
        row = rows.generations[0]
        counters = replace(row.counters, accepted=(0,) * row.counters.nfe)
        return replace(rows, generations={**rows.generations, 0: replace(row, counters=counters)})

    def other_timed_nfe(rows):
        return replace(rows, timings={**rows.timings, 0: replace(rows.timings[0], nfe=1, baseline_nfe=2)})

    def not_identical_when_timed(rows):
        return replace(rows, timings={**rows.timings, 0: replace(rows.timings[0], identical=False)})

    for change, kinds in (
        (fewer_accepted, ["counts do not add up"]),
        (other_timed_nfe, ["NFE differs between passes"] * 2),
        (not_identical_when_timed, ["identity differs between passes"]),
    ):
        result = changed(made, "spot", change)
        assert [alarm.kind for alarm in result.alarms] == kinds
        assert result.claim_holds is False


def test_more_forwards_than_draft_free_is_an_alarm():
    made, _ = aggregated()
    job, rows, base = records(made, "spot")
    row = base.generations[0]
    n = row.counters.nfe + 1
    slow = replace(row, tokens_generated=n, counters=replace(row.counters, nfe=n, accepted=(0,) * n, drafted=(1,) * n))
    result = aggregate(job, replace(rows, generations={0: slow}, timings={}), base)
    assert [alarm.kind for alarm in result.alarms] == ["more forwards than draft-free"]


def test_a_draft_free_run_with_another_count_than_its_tokens_is_an_alarm():
    made, _ = aggregated()
    job, rows, _ = records(made, "none")
    row = rows.generations[0]
    counters = replace(row.counters, nfe=2, accepted=(row.tokens_generated - 2, 0), drafted=(0, 0))
    odd = replace(rows, generations={0: replace(row, counters=counters)})
    assert [a.kind for a in aggregate(job, odd, odd).alarms] == ["draft-free NFE differs from tokens"]


def test_draft_free_speed_is_known_from_beside_its_variants():
    _, results = aggregated()
    assert results["none"].throughput.tokens_per_s.value == pytest.approx(
        100, rel=0.2
    )  # 10 ms a forward, nearly all kept
    assert results["none"].throughput.ratio.value is None


def test_results_are_strict_json_and_come_back_equal():
    for faults in (Faults(), Faults(failed=16), Faults(bugs=3, noisy=True)):
        made = sweep(CELLS, prompts=16, faults=faults)
        for result in aggregate_all(made.jobs, made.rows()):
            text = msgspec.json.encode(result)
            json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
            assert msgspec.json.decode(text, type=CellResult) == result


def test_merging_does_not_depend_on_order_and_makes_failures_good():
    made, _ = aggregated(Faults(failed=2), prompts=6)
    results = [result for of_cell in made.results.values() for result in of_cell]
    assert merge_all(results) == merge_all(reversed(results))
    job, rows, _ = records(made, "spot")
    assert rows.failed("decode") == {0, 1}
    decode = next(r for r in made.results[job.cell_id] if r.kind == "decode")
    extra = replace(decode.generations[0], prompt_index=1)
    again = replace(decode, item_id="again", first=1, last=2, generations=(extra,), failures=())
    merged = merge([decode, again])
    assert merged.failed("decode") == {0}
    assert set(merged.generations) == {1, 2, 3, 4, 5}


def test_timings_that_failed_or_never_ran_are_counted_apart():
    made, _ = aggregated(timed=4)
    job = made.jobs[1]
    decode, timing = made.results[job.cell_id]
    failure = Failure(kind="deterministic", type="ValueError", message="no", prompt_index=1)
    short = replace(timing, timings=(timing.timings[0],), failures=(failure,))
    result = aggregate(job, merge([decode, short]), NO_ROWS)
    assert (result.n_failed, result.n_missing) == (0, 0)
    assert (result.n_timing_failed, result.n_timing_missing) == (1, 2)


def test_prompts_beyond_what_is_asked_for_enter_no_number():
    stored, asked = sweep(CELLS, prompts=6, timed=4, faults=Faults(failed=3)), sweep(CELLS, prompts=4, timed=3)
    for result in aggregate_all(asked.jobs, stored.rows()):
        failed = 0 if result.cell.is_baseline else 3
        assert (result.n_expected, result.n, result.n_failed, result.n_missing) == (4, 4 - failed, failed, 0)
        assert result.nfe.n == result.identity.n_checked == result.n
    exactly = sweep(CELLS, prompts=4, timed=3, faults=Faults(bugs=1))
    more = sweep(CELLS, prompts=6, timed=5, faults=Faults(bugs=1))
    assert aggregate_all(exactly.jobs, more.rows()) == aggregate_all(exactly.jobs, exactly.rows())
    rows = wanted_rows(asked.jobs, more.rows())
    timed = {job.cell_id: job.timed_prompts for job in asked.jobs}
    assert all(set(own.generations) == set(range(4)) for own in rows.values())
    assert all(set(own.timings) == set(range(timed[cell_id])) for cell_id, own in rows.items())


def test_a_failed_item_counts_for_each_of_its_prompts():
    made, _ = aggregated(prompts=6)
    job = made.jobs[1]
    failure = Failure(kind="infrastructure", type="WorkerDied", message="gone")
    lost = replace(made.results[job.cell_id][0], generations=(), failures=(failure,))
    result = aggregate(job, merge([lost]), NO_ROWS)
    assert (result.n, result.n_failed, result.n_missing) == (0, 6, 0)


def test_a_prompt_decoded_twice_with_other_tokens_is_an_alarm_and_with_the_same_is_none():
    made, _ = aggregated(prompts=4)
    job = made.jobs[1]
    decode = made.results[job.cell_id][0]
    same = replace(decode, item_id="z")
    assert merge([decode, same]).alarms == ()
    row = decode.generations[0]
    nfe = row.counters.nfe + 1
    counters = replace(row.counters, nfe=nfe, accepted=(*row.counters.accepted, 0), drafted=(*row.counters.drafted, 0))
    other = replace(row, output_ids=(*row.output_ids[:-1], 0 if row.output_ids[-1] else 1), counters=counters)
    odd = merge([decode, replace(decode, item_id="z", generations=(other, *decode.generations[1:]))])
    assert [alarm.kind for alarm in odd.alarms] == ["output differs between repeats", "NFE differs between repeats"]
    assert odd.generations[0] == row


def test_the_timing_with_more_repeats_stands():
    made, _ = aggregated()
    job = made.jobs[1]
    timing = made.results[job.cell_id][1]
    longer = replace(
        timing,
        item_id="a-longer",
        timings=tuple(replace(t, variant_seconds=(1.0,) * 5, baseline_seconds=(2.0,) * 5) for t in timing.timings),
    )
    for order in ([timing, longer], [longer, timing]):
        assert len(merge(order).timings[0].variant_seconds) == 5


def test_no_number_is_ever_infinite_or_nan():
    _, results = aggregated(Faults(failed=15), prompts=16)

    def numbers(value):
        if isinstance(value, dict):
            for inner in value.values():
                yield from numbers(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from numbers(inner)
        elif isinstance(value, float):
            yield value

    assert all(math.isfinite(x) for result in results.values() for x in numbers(msgspec.to_builtins(result)))
