"""The order study on the page: shares as counted, the prompts behind them, what failed, and the file beside it."""

import csv

import pytest

from reports.columns import CELL_COLUMNS, STUDY_COLUMNS
from reports.export import export
from reports.frames import load
from reports.render import page, render
from reports.sections import gaps, summary
from reports.sections.order_study import ARGMAX, CONFIDENCE, DRAWN, MODEL, info, verdict
from sweeps.statistics import Estimate
from sweeps.study import LOOK_AHEADS
from tests.pages import Page
from tests.synthetic import BLOCK, Faults, grid, study, sweep
from tests.unit.reports.conftest import framed

PROMPTS = 6


@pytest.fixture(scope="module")
def made():
    return sweep(grid(budgets=(4, 8)), prompts=2, timed=0, studied=PROMPTS)


@pytest.fixture(scope="module")
def frames(made):
    return framed(made)


def parts(frames, kind):
    return [part for group in info(frames).groups for part in group.parts if part.kind == kind]


def test_one_study_a_task_and_temperature_whatever_the_budgets(frames):
    assert len(frames.studies) == 4
    assert [group.title for group in info(frames).groups] == ["tiny-sdar, T = 0", "tiny-sdar, T = 1", "For comparison"]


def test_points_are_shares_of_the_counts(made, frames):
    """Recounted from the synthetic records: one commit ahead at each index, and each look-ahead as a whole."""
    ahead, further = parts(frames, "chart")[:2]
    assert (ahead.shape, ahead.zero, further.x) == ("bands", True, "look-ahead k")
    cell = next(job.cell for job in made.jobs if job.studied_prompts and job.cell.task.name == "tiny-code")
    records = [study(cell, index) for index in range(PROMPTS)]
    for series, name in ((MODEL, "by_model"), (CONFIDENCE, "by_confidence")):
        by_index = {p.x: p for p in ahead.points if (p.facet, p.series) == ("tiny-code", series)}
        assert sorted(by_index) == list(range(1, BLOCK - 1))
        for index, point in by_index.items():
            hits = sum(getattr(record, name)[0][int(index)] for record in records)
            assert point.y == pytest.approx(100 * hits / (3 * PROMPTS))
            assert 0 <= point.low <= point.y <= point.high <= 100
        by_k = {p.x: p.y for p in further.points if (p.facet, p.series) == ("tiny-code", series)}
        assert sorted(by_k) == list(range(1, LOOK_AHEADS + 1))
        for k, y in by_k.items():
            hits = sum(sum(getattr(record, name)[int(k) - 1]) for record in records)
            assert y == pytest.approx(100 * hits / (3 * PROMPTS * (BLOCK - 1 - k)))


def test_the_draw_is_shown_only_where_it_is_not_the_argmax(frames):
    for setting, chart in zip(("T = 0", "T = 1"), parts(frames, "chart")[::2], strict=True):
        assert setting in chart.title
        assert ({point.series for point in chart.points} == {ARGMAX, MODEL, CONFIDENCE, DRAWN}) == (setting == "T = 1")


def test_the_finding_says_how_it_was_got_and_on_how_much(frames):
    whole = info(frames)
    assert "measured on draft-free trajectories" in whole.lead.lower()
    assert "no share" in whole.lead
    text = Page(page(frames)).text
    first = frames.studies[0].at(1)
    n = f"of {3 * PROMPTS * (BLOCK - 2)} commits of {PROMPTS} prompts"
    assert n in text
    model = first.by_model
    assert f"{100 * model.value:.1f} % ({100 * model.low:.1f} \u2013 {100 * model.high:.1f})" in text
    assert f"{first.error_ratio.value:.2f}" in text
    assert "The paper (SDAR-8B, blocks of 32)" in text


def test_tables_hold_every_look_ahead_of_every_task(frames):
    shares, tops = parts(frames, "table")[:2]
    for table in (shares, tops):
        assert [(name, len(rows)) for name, rows in table.groups] == [("tiny-arith", 8), ("tiny-code", 8)]
    row = dict(zip([head.name for head in tops.heads], tops.groups[1][1][2], strict=True))
    values = [float(row[f"Top {top}"].text) for top in (1, 2, 4, 8, 16, 32)]
    assert row["k"].text == "3"
    assert values == sorted(values)
    study_ = next(s for s in frames.studies if s.cell.task.name == "tiny-code")
    assert values[0] == pytest.approx(100 * study_.at(3).argmax.value, abs=0.051)


def test_failed_and_missing_prompts_are_told_where_it_matters():
    frames = framed(
        sweep(grid(budgets=(8,), temperatures=(0.0,)), prompts=3, timed=0, studied=3, faults=Faults(failed=1))
    )
    said = [
        line for group in info(frames).groups for part in group.parts if part.kind == "lines" for line in part.lines
    ]
    assert ("alarm", "tiny-arith: 1 prompt failed; no share counts them.") in said
    checks = dict(summary.checks(frames))
    assert any("2 prompts of the order study failed or not studied yet" in text for text in summary_texts(frames)), (
        checks
    )
    failures = next(part for part in gaps.info(frames).groups[0].parts if part.caption == "Failures by reason")
    assert {"decode", "study"} == {row[1].text for _, rows in failures.groups for row in rows}
    gone = framed(
        sweep(grid(budgets=(8,), temperatures=(0.0,)), prompts=2, timed=0, studied=3, faults=Faults(missing=2))
    )
    assert any("2 prompts of 3 not studied yet" in text for _, text in info(gone).groups[0].parts[0].lines)
    assert "good" not in {level for level, text in summary.checks(gone) if "complete" in text}


def summary_texts(frames):
    return [text for _, text in summary.checks(frames)]


def test_without_a_study_there_is_no_section_and_no_file(clean_frames, clean, tmp_path):
    assert info(clean_frames) is None
    run = clean.write(tmp_path / "run")
    (run / "report-data").mkdir()
    (run / "report-data" / "order_study.csv").write_text("of an earlier plan")
    render(run)
    assert not (run / "report-data" / "order_study.csv").exists()
    assert "order_study" not in (run / "report.html").read_text(encoding="utf-8")


def test_the_rows_are_exported_with_their_documentation(made, tmp_path):
    run = made.write(tmp_path / "run")
    render(run)
    with (run / "report-data" / "order_study.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [column.name for column in STUDY_COLUMNS]
    assert all(f"`{name}`" in (run / "report-data" / "columns.md").read_text() for name in rows[0])
    whole = [row for row in rows if row["commit_index"] == ""]
    assert len(whole) == 4 * LOOK_AHEADS
    assert len(rows) == 4 * sum(1 + BLOCK - 1 - k for k in range(1, LOOK_AHEADS + 1))
    for row in whole:
        indexed = [
            r for r in rows if r["commit_index"] and all(r[n] == row[n] for n in ("task", "temperature", "look_ahead"))
        ]
        assert int(row["asked"]) == sum(int(r["asked"]) for r in indexed)
        hits = sum(float(r["position_model"]) * int(r["asked"]) for r in indexed)
        assert float(row["position_model"]) == pytest.approx(hits / int(row["asked"]))
        assert row["error_ratio"]
    path = export(run, rows="study", format="parquet", out=tmp_path / "study.parquet")
    assert path.stat().st_size > 0


def test_cells_carry_the_study_of_their_own_order_model(made, tmp_path):
    frames = load(made.write(tmp_path / "run"))
    names = {column.name for column in CELL_COLUMNS if column.path.startswith("study.")}
    cells = frames.cells
    spot, others = cells[cells.drafter.str.startswith("spot")], cells[~cells.drafter.str.startswith("spot")]
    assert not spot[sorted(names)].isna().any().any()
    assert others[sorted(names)].isna().all().all()
    for _, same in spot.groupby(["task", "temperature"]):
        assert same["study_position_model"].nunique() == 1
    assert (spot["studied_commits"] == 3 * PROMPTS * (BLOCK - 2)).all()


def test_a_difference_that_the_interval_cannot_tell_is_not_claimed():
    def ratio(low, high):
        return Estimate(value=1.0, low=low, high=high, n=3)

    assert verdict(ratio(0.5, 0.9)) == ""
    assert verdict(ratio(0.5, 1.0)) == verdict(ratio(0.9, 1.2)) == ": no difference is shown"
    assert verdict(ratio(1.1, 1.4)) == ": the model is worse"
    assert verdict(ratio(None, None)) == ": no interval (3 prompts, too few or too alike), so nothing can be said"
