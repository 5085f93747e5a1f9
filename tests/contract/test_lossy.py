"""Lossy cells say so wherever they are named, and what they change is never called a failure.

One synthetic run with a set drafter under every acceptance rule; lossy ones give other outputs than draft-free.
Its files, frames, pages, LaTeX and mirror are read for each of them.
"""

import csv
from dataclasses import replace

import pandas as pd
import pytest

from orchestrator.promises import broken_promises
from orchestrator.tracking_rows import row_of
from reports import latex, marks
from reports.export import export
from reports.labels import labels_of
from reports.model import Chart, Table
from reports.render import function, render
from reports.sections import SECTIONS, headline, identity, summary
from sweeps.results import load_results
from sweeps.store import RunDir
from tests.set_rows import set_cells
from tests.synthetic import Sweep, grid, sweep
from tests.unit.reports.conftest import framed

LENIENT = ("subset", "cut", "product")


@pytest.fixture(scope="module")
def made() -> Sweep:
    return sweep(set_cells(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,))[0]), prompts=24, timed=4)


@pytest.fixture(scope="module")
def frames(made):
    return framed(made)


@pytest.fixture(scope="module")
def lossy(frames):
    """The lossy results, some of whose outputs are not those of draft-free decoding."""
    found = {r.cell.drafter.acceptance: r for r in frames.results if r.cell.drafter.acceptance != "exact"}
    assert set(found) == set(LENIENT)
    assert min(len(r.identity.mismatches) for r in found.values()) > 0
    return found


def test_results_promise_nothing_and_have_no_verdict(lossy, frames):
    for result in lossy.values():
        assert (result.claim, result.claim_holds, result.alarms) == ("lossy", None, ())
        assert (result.n_bugs, result.n_near_ties, result.identity.bugs) == (None, None, 0)
        assert {mismatch.verdict for mismatch in result.identity.mismatches} == {None}
        assert not marks.is_broken(result)
    exact = next(r for r in frames.results if r.cell.drafter.kind == "spot-sets" and r.cell_id not in ids(lossy))
    assert (exact.claim, exact.claim_holds, exact.n_bugs) == ("lossless", True, 0)


def ids(lossy) -> set[str]:
    return {result.cell_id for result in lossy.values()}


def test_frames_and_exports_label_them(lossy, made, tmp_path):
    run = made.write(tmp_path / "run")
    render(run)
    data = RunDir(run).report_data
    for form, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet), ("json", pd.read_json)):
        cells = read(export(run, rows="cells", format=form, out=tmp_path / f"cells.{form}"))
        assert cells.set_index("cell_id").loc[sorted(ids(lossy)), "claim"].eq("lossy").all()
        others = cells[~cells.cell_id.isin(ids(lossy))]
        assert others.claim.eq("lossless").all()
        assert cells[cells.cell_id.isin(ids(lossy))].n_bugs.isna().all()
    with (data / "prompts.csv").open() as file:
        prompts = [row for row in csv.DictReader(file) if row["cell_id"] in ids(lossy)]
    assert {row["identical"] for row in prompts} == {"True", "False"}
    assert {row["verdict"] for row in prompts} == {""}
    assert "BUG" not in RunDir(run).report.read_text().replace("BUGs", "").replace("is a BUG", "")


def test_nothing_fails_a_run(lossy, made, tmp_path):
    assert list(broken_promises(RunDir(made.write(tmp_path / "run")))) == []


def test_the_mirror_labels_them(lossy, frames):
    for result in frames.results:
        row = row_of(result, "s")
        is_lossy = result.cell_id in ids(lossy)
        assert row.tags["claim"] == result.claim
        assert (row.tags["lossy"] == "true") == is_lossy
        assert ("(lossy)" in row.name) == is_lossy
        assert ("n_bugs" in row.metrics) == (not is_lossy)


def test_every_name_of_one_in_every_table_and_chart_is_marked(lossy, frames):
    """Whatever a section calls it by: the label's method name, which has the mark."""
    labels = labels_of(frames.results)
    for result in frames.results:
        assert ("(lossy)" in labels.method[result.cell_id]) == (result.cell_id in ids(lossy))
    plain = {labels.method[cell_id].replace(" (lossy)", "") for cell_id in ids(lossy)}
    texts = [text for section in SECTIONS for text in named(function(section)(frames))]
    assert sum("(lossy)" in text for text in texts) > 10
    assert not plain & set(texts), "a lossy method is named without its mark"


def named(info):
    """Every cell of a table, and every series of a chart."""
    for group in info.groups if info else ():
        for part in group.parts:
            if isinstance(part, Table):
                yield from (value.text for _, rows in part.groups for row in rows for value in row)
            if isinstance(part, Chart):
                yield from (point.series for point in part.points)


def test_checks_and_tables_of_identity_leave_them_out(lossy, frames):
    """They are no alarm; what must be equal is counted without them, and the claim stands in the table of results."""
    texts = [text for _, text in summary.checks(frames)]
    assert not any("BUG" in text or "near-tie" in text for text in texts)
    assert any(text.startswith("Every generation that must equal draft-free decoding does: 24 of 24") for text in texts)
    info = identity.info(frames)
    assert not any("(lossy)" in text for text in named(info))
    claims = {row[0].text: row[-2].text for row in rows_in(headline.info(frames)) if "spot-sets" in row[0].text}
    assert {claim for name, claim in claims.items() if "(lossy)" in name} == {"lossy"}
    assert {claim for name, claim in claims.items() if "(lossy)" not in name} == {"lossless"}


def rows_in(info):
    return [row for group in info.groups for part in group.parts for _, rows in part.groups for row in rows]


def test_latex_names_them_with_the_mark(lossy, frames):
    labels = labels_of(frames.results)
    text = "".join(latex.table(setting, results, labels) for setting, results in labels.by_setting(frames.results))
    for result in lossy.values():
        assert latex.escape(labels.method[result.cell_id]) in text


def test_a_lossy_cell_with_contradicting_counts_is_an_alarm_all_the_same(made, tmp_path):
    """That nothing is promised of outputs does not excuse counts."""
    job = next(job for job in made.jobs if job.cell.drafter.acceptance == "product")

    def wrong(row):
        return replace(row, counters=replace(row.counters, accepted=(99, *row.counters.accepted[1:])))

    items = made.results[job.cell_id]
    results = tuple(replace(item, generations=tuple(map(wrong, item.generations))) for item in items)
    odd = replace(made, results=made.results | {job.cell_id: results})
    broken = [result for result in framed(odd).results if result.alarms]
    assert [result.cell.drafter.acceptance for result in broken] == ["product"]
    assert marks.is_broken(broken[0])
    (line,) = broken_promises(RunDir(odd.write(tmp_path / "run")))
    assert "(spot-sets (lossy) on tiny-sdar, a): counts do not add up" in line


def test_stored_results_hold_no_label_of_their_own(made, tmp_path):
    """The claim is worked out from the cell whenever it is shown: a file cannot say another."""
    run = RunDir(made.write(tmp_path / "run"))
    assert load_results(run, code_digests=None).results
    assert not any(
        "lossy" in path.read_text() or "lossless" in path.read_text() for path in run.root.rglob("results/**/*.json")
    )
