"""Names, values and metrics of the mirror: accepted by MLflow, one to one, finite."""

import math
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.tracking_rows import LONGEST_VALUE, metrics_of, params_of, row_of, safe_name, safe_value
from sweeps.aggregate import aggregate, aggregate_all
from sweeps.merge import NO_ROWS
from tests.set_rows import set_cells
from tests.synthetic import HOSTILE, Faults, cached, grid, sweep

ODD = ("pass@1", "pass_at_1", "acc (%)", "数学", "a:b", "a//b", "../x", "", ".", "..", "a b", "time(s)", "x" * 400)


def test_plain_names_stay_and_odd_ones_stay_apart():
    assert safe_name("pass_at_1") == "pass_at_1"
    assert safe_name("nfe_reduction.valid") == "nfe_reduction.valid"
    mapped = [safe_name(name) for name in ODD]
    assert len(set(mapped)) == len(ODD)
    assert all(name == safe_name(name) for name in ("a", "a.b-c_d"))


def test_mlflow_accepts_every_mapped_name():
    from mlflow.utils.validation import _validate_metric_name, _validate_param_name

    for name in (*ODD, *HOSTILE):
        _validate_param_name(safe_name(name))
        _validate_metric_name(safe_name(name))


@given(st.text(), st.text())
@example("a@1", "a_1")
@example("a@1", safe_name("a@1"))
def test_the_mapping_is_one_to_one(one, other):
    assert (safe_name(one) == safe_name(other)) == (one == other)
    assert safe_name(one) == safe_name(one)


def test_long_values_are_cut_with_length_and_digest_and_kept_in_full():
    prompt = "You are helpful. " * 1200
    params, cut = params_of({"system": prompt, "other": prompt + "!", "short": "x", "number": 0.5, "none": None})
    assert len(params["system"]) <= LONGEST_VALUE
    assert "20400 characters, sha256 " in params["system"]
    assert params["system"] != params["other"]
    assert cut == {"system": prompt, "other": prompt + "!"}
    assert (params["short"], params["number"], params["none"]) == ("x", "0.5", "null")


def test_a_nul_never_reaches_a_database():
    assert safe_value("a\0b") == "a\u2400b"


def test_undefined_metrics_are_marked_never_sent():
    metrics, invalid = metrics_of({"a": 1.5, "b": None, "c": math.nan, "d": math.inf, "pass@1": None})
    assert metrics == {"a": 1.5, "b.valid": 0.0, "c.valid": 0.0, "d.valid": 0.0, f"{safe_name('pass@1')}.valid": 0.0}
    assert invalid == ["b", "c", "d", safe_name("pass@1")]


def test_a_cell_brings_every_axis_its_numbers_and_its_tags():
    made = sweep(grid(tasks=("pass@1",), budgets=(8,), temperatures=(1.0,)), prompts=4)
    result = next(r for r in aggregate_all(made.jobs, made.rows()) if r.cell.drafter.name == "spot-gamma")
    row = row_of(result, "s1")
    axes = {"task": "pass@1", "drafter": "spot-gamma", "budget": "8", "gamma": "0.1", "temperature": "1.0", "seed": "0"}
    assert axes.items() <= row.params.items()
    assert row.params["drafter.hedge"] == "0.6"
    assert row.metrics["nfe"] == result.nfe.value
    assert row.metrics["throughput_ratio_low"] == result.throughput.ratio.low
    assert row.metrics["claim_holds"] == 1.0
    assert row.tags["cell_id"] == result.cell.cell_id
    assert (row.tags["sweep_id"], row.tags["complete"], row.status) == ("s1", "true", "FINISHED")
    assert row.time_ms == 1_760_000_060_000
    assert all(math.isfinite(value) for value in row.metrics.values())


def test_failures_show_in_the_status_and_undefined_numbers_in_a_tag():
    made = sweep(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,)), prompts=2, faults=Faults(failed=2))
    result = next(r for r in aggregate_all(made.jobs, made.rows()) if not r.cell.is_baseline)
    row = row_of(result, "s")
    assert row.status == "FAILED"
    assert "nfe_reduction.valid" in row.metrics
    assert "nfe_reduction" not in row.metrics
    assert "nfe_reduction," in row.tags["invalid_metrics"]


def test_the_digest_follows_the_result():
    made = sweep(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,)), prompts=2)
    job = made.jobs[1]
    result = aggregate(job, made.rows()[job.cell_id], NO_ROWS)
    assert row_of(result, "s").tags["result_digest"] == row_of(replace(result), "s").tags["result_digest"]
    assert row_of(replace(result, n=1), "s").tags["result_digest"] != row_of(result, "s").tags["result_digest"]


def test_a_study_shows_with_the_cells_of_its_order_model_only():
    made = sweep(grid(tasks=("a",), budgets=(4, 8), temperatures=(0.0,)), prompts=2, timed=0, studied=3)
    for result in aggregate_all(made.jobs, made.rows()):
        metrics = row_of(result, "s").metrics
        named = sorted(name for name in metrics if name.startswith("study"))
        if result.cell.drafter.kind != "spot":
            assert named == []  # nothing was asked, so nothing is marked as undefined
        else:
            assert metrics["studied_commits"] == 3 * 3 * 30  # prompts, blocks, indexes with a choice
            assert metrics["study_position_model"] == result.study.by_model.value
            assert len(named) == 4 * 3


def test_the_commit_rule_is_in_the_name_and_the_params():
    cells = grid(tasks=("tiny-arith",), budgets=(4,), temperatures=(0.0,))[:2]
    sets = tuple(replace(cell, decode=replace(cell.decode, commit="threshold", tau=0.7)) for cell in cells)
    made = sweep((*cells, *sets), prompts=1, timed=0)
    rows = [row_of(result, "s") for result in aggregate_all(made.jobs, made.rows())]
    assert [(row.params["commit"], row.params["tau"]) for row in rows] == [("standard", "null")] * 2 + [
        ("threshold", "0.7")
    ] * 2
    assert [" threshold 0.7 " in row.name for row in rows] == [False, False, True, True]


def test_cache_and_agreement_show_and_a_reference_is_no_method():
    cells = cached(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,), gammas=()), "dual")
    made = sweep(cells, prompts=4, timed=0)
    results = aggregate_all(made.jobs, made.rows())
    rows = [row_of(result, "s") for result in results]
    assert [row.tags["reference"] for row in rows] == ["false"] * 3 + ["true"]
    assert [row.tags["cache"] for row in rows] == ["dual"] * 3 + ["none"]
    assert [row.tags["exact_cache"] for row in rows] == ["false"] * 3 + ["true"]
    for row, result in zip(rows[:3], results, strict=False):
        assert row.tags["claim"] == "exact given the cache"
        assert row.metrics["n_uncached"] == 4.0
        assert row.metrics["identical_uncached"] == result.agreement.identical.value == 0.5
        assert row.metrics["positions_ratio"] == result.agreement.positions_ratio.value
    assert rows[3].name == "a none T0 dual-tiny-sdar without cache"
    assert len({row.name for row in rows}) == 4
    assert not [name for name in rows[3].metrics if "uncached" in name]  # nothing is approximate there
    assert not any("reference" in row.metrics for row in rows)
    (unmeasured,) = [r for r in aggregate_all(*unasked(cells)) if r.cell.is_baseline]
    assert not [name for name in row_of(unmeasured, "s").metrics if "uncached" in name]


def unasked(cells):
    """Jobs and rows of a sweep that measures no agreement."""
    made = sweep(cells, prompts=2, timed=0, uncached=0)
    return made.jobs, made.rows()


def test_rules_of_acceptance_are_told_apart_and_lossy_ones_are_called_so():
    made = sweep(set_cells(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,))[0], taus=(0.7, 0.9)), prompts=3)
    results = aggregate_all(made.jobs, made.rows())
    rows = [row_of(result, "s") for result in results]
    assert len({row.name for row in rows}) == len(rows) == 1 + 2 * 5
    for result, row in zip(results, rows, strict=True):
        rule = result.cell.drafter.acceptance
        assert row.tags["acceptance"] == row.params["acceptance"] == rule
        assert row.tags["lossy"] == str(rule != "exact").lower() == str(result.claim == "lossy").lower()
        assert ("(lossy)" in row.name) is (rule != "exact")
        assert ("edit_distance" in row.metrics) is not result.cell.is_baseline
        assert ("pace" in row.metrics) is (result.cell.decode.commit == "threshold")
    alone = sweep(
        set_cells(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,))[0], standard=False), prompts=3, timed=0
    )
    for result in aggregate_all(alone.jobs, alone.rows()):
        row = row_of(result, "s")
        assert not [name for name in row.metrics if name.startswith(("pace", "identical_standard"))]


def test_a_claim_of_the_distribution_says_its_cache():
    exact = grid(tasks=("a",), budgets=(8,), temperatures=(1.0,), gammas=(), noises=("independent",))
    for cells, words in ((exact, ""), (cached(exact, "dual"), " (given the dual cache)")):
        made = sweep(cells, prompts=2, timed=0)
        tags = [row_of(result, "s").tags for result in aggregate_all(made.jobs, made.rows()) if not result.reference]
        drafted = [tag for tag in tags if tag["claim"] == "distribution-exact"]
        assert len(drafted) == 2
        assert {tag["claim_in_words"] for tag in drafted} == {f"distribution-exact{words}"}
