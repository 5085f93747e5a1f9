"""The page: right numbers, self-contained, the same bytes for the same files, nothing that runs or is fetched."""

import json
import os
import re
import time
from dataclasses import replace
from xml.etree import ElementTree

import msgspec
import pytest

from orchestrator.finish import write_report
from reports import charts
from reports.frames import load
from reports.render import SectionsFailedError, attempted, infos, page, render
from sweeps.store import RunDir
from tests.pages import Page
from tests.synthetic import HOSTILE, Faults, draft_free, grid, sweep
from tests.unit.reports.conftest import framed

SMALL = {"tasks": ("tiny-arith",), "budgets": (4, 8), "temperatures": (0.0,)}


@pytest.fixture(scope="module")
def small():
    return sweep(grid(**SMALL), prompts=4, faults=Faults(near_ties=1))


@pytest.fixture(scope="module")
def clean_html(clean_frames):
    return page(clean_frames)


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory):
    made = sweep(grid(**SMALL, mark=HOSTILE[3]), prompts=8, faults=Faults(hostile=True, failed=2, bugs=1))
    return made.write(tmp_path_factory.mktemp("hostile") / "run", title="".join(HOSTILE))


@pytest.fixture(scope="module")
def hostile_page(hostile_run):
    return Page(render(hostile_run).read_text(encoding="utf-8"))


def test_the_numbers_on_the_page_are_those_of_the_results(clean_frames, clean_html):
    text = Page(clean_html).text
    for result in clean_frames.results:
        low, high = result.nfe.low, result.nfe.high
        assert f"{result.nfe.value:.1f} {low:.1f} \u2013 {high:.1f}" in text
        if not result.cell.is_baseline:
            reduction, ratio = result.nfe_reduction, result.throughput.ratio
            assert f"{reduction.value:.2f} {reduction.low:.2f} \u2013 {reduction.high:.2f}" in text
            assert f"{ratio.value:.2f} {ratio.low:.2f} \u2013 {ratio.high:.2f}" in text
    assert "Every generation that must equal draft-free decoding does: 576 of 576 compared." in text
    assert "16/16 \u2713" in text
    assert "All 40 cells are complete." in text


def test_what_is_wrong_comes_before_any_number(faulty_frames, monkeypatch):
    monkeypatch.setattr(charts, "svg", lambda chart: "<svg></svg>")
    text = Page(page(faulty_frames)).text
    top = text[: text.index("NFE counts target forwards")]
    for alarm in (
        "BUG: 34 generations differ from draft-free at a margin that rounding cannot explain.",
        "34 generations differ from draft-free at a near-tie: the claim does not hold there.",
        "34 prompts failed in 34 cells; no mean counts them.",
        "70 prompts of 40 cells not run yet.",
        "Timings of 34 cells failed a gate",
    ):
        assert alarm in top
    assert "12/14 \u2717" in text
    assert "Every generation that must equal" not in text
    assert "are complete" not in text


def test_the_same_files_give_the_same_bytes_anywhere_at_any_time(small, tmp_path, monkeypatch):
    one = render(small.write(tmp_path / "one")).read_bytes()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    two = render(small.write(tmp_path / "другой run")).read_bytes()
    monkeypatch.undo()
    time.tzset()
    assert one == two
    for name in ("cells.csv", "prompts.csv", "columns.md"):
        assert (tmp_path / "one/report-data" / name).read_bytes() == (
            tmp_path / "другой run/report-data" / name
        ).read_bytes()


def test_nothing_runs_and_nothing_is_fetched(hostile_run, hostile_page):
    html = (hostile_run / "report.html").read_text(encoding="utf-8")
    assert "script" not in hostile_page.tags
    assert {"img", "link", "iframe", "object", "embed", "form", "base"} & set(hostile_page.tags) == set()
    for attribute in ("href", "src", "xlink:href", "action", "data", "srcset"):
        assert all(value.startswith(("#", "data:text/plain")) for value in hostile_page.values(attribute)), attribute
    assert not [name for _, name, _ in hostile_page.attributes if name.startswith("on")]
    css = re.search(r"<style>(.*?)</style>", html, re.S)[1]
    assert "url(" not in css
    assert "@import" not in css
    policy = next(v for tag, n, v in hostile_page.attributes if n == "content" and "default-src" in v)
    assert policy.startswith("default-src 'none'")


def test_hostile_texts_are_shown_literally_everywhere(hostile_page):
    text = hostile_page.text
    assert hostile_page.open == []
    for shown in HOSTILE[:4]:  # title, targets, tasks, drafters, prompts, errors
        assert text.count(shown) >= 2, shown
    assert "a\u2039U+2028\u203ab\u2039U+2029\u203ac\u2400d\u241b[31m" in text  # invisible is made visible
    assert "{{ 7*7 }}" in text
    assert "49" not in text.split("{{ 7*7 }}")[0][-10:]
    svgs = [tag for tag in hostile_page.tags if tag == "svg"]
    charts_on_page = [
        part
        for info in infos(framed(sweep(grid(**SMALL), prompts=8)))
        for g in info.groups
        for part in g.parts
        if part.kind == "chart"
    ]
    assert len(svgs) == len(charts_on_page)  # none came from a text


def test_embedded_downloads_hold_the_exact_text(hostile_page):
    (tex,) = hostile_page.downloads
    assert "\\begin{tabular}" in tex
    assert "svg onload=alert(1)" in tex


def test_files_of_a_run_are_strict_json(hostile_run):
    for path in [*hostile_run.glob("*.json"), *hostile_run.glob("results/*/*.json")]:
        json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


def test_undefined_numbers_are_shown_as_not_available():
    made = sweep(grid(**SMALL), prompts=4, faults=Faults(empty_cells=1))
    text = Page(page(framed(made))).text
    assert "0 of 4 n/a n/a n/a n/a n/a lossless not checked" in text
    assert not re.search(r"\b(nan|inf|Infinity)\b", text)


def test_a_failed_write_leaves_the_old_page(small, tmp_path, monkeypatch):
    run = small.write(tmp_path / "run")
    (run / "report.html").write_text("the old page")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match=r"cannot write .*: No space left"):
        render(run)
    assert (run / "report.html").read_text() == "the old page"
    assert [path for path in run.iterdir() if path.name.startswith(".")] == []


def test_a_folder_that_is_no_run_is_one_line(tmp_path):
    with pytest.raises(ValueError, match="is no run directory"):
        render(tmp_path)


def test_pictures_are_alike_every_time_named_and_without_clashing_ids(clean_frames):
    pictures = [
        part for info in infos(clean_frames) for group in info.groups for part in group.parts if part.kind == "chart"
    ]
    assert len(pictures) == 8  # three and one for each temperature
    ids = []
    for chart in pictures[:2]:
        text = charts.svg(chart)
        assert text == charts.svg(chart)
        root = ElementTree.fromstring(text)
        ids += [element.get("id") for element in root.iter() if element.get("id")]
        names = {element.get("aria-label") or "" for element in root.iter()}
        for point in chart.points:
            assert any(
                point.facet in name and point.series in name and f": {point.y:.{chart.digits}f}" in name
                for name in names
            )
    assert len(set(ids)) == len(ids)


def test_every_picture_is_followed_by_its_numbers(clean_html):
    figures = re.findall(r"<figure.*?</figure>", clean_html, re.S)
    assert len(figures) == 8
    for figure in figures:
        assert re.search(r"</svg>.*<figcaption>.*<details><summary>Numbers</summary>.*<table>", figure, re.S)


def test_a_trace_shows_every_commit_with_its_round(clean_frames):
    info = next(info for info in infos(clean_frames) if info.key == "traces")
    trace = info.groups[0].parts[0]
    result = max(clean_frames.results, key=lambda r: r.nfe_reduction.value)  # the fewest forwards come first
    record = clean_frames.rows[result.cell.cell_id].generations[0]
    shown = [commit for block in trace.blocks for commit in block if commit]
    assert len(shown) == record.tokens_generated
    assert [commit.number for commit in shown] == [record.order.index(i) + 1 for i in range(len(record.order))]
    gaps = sum(commit is None for commit in trace.blocks[0])
    assert gaps == record.prompt_tokens % 32
    assert {len(block) for block in trace.blocks[:-1]} == {32}
    assert len(trace.text.splitlines()) == record.counters.nfe
    for block in trace.blocks:
        assert min(commit.round for commit in block if commit) == 1


def test_a_page_of_one_huge_completion_stays_small(tmp_path):
    made = sweep(grid(**SMALL), prompts=3, timed=0)
    cell = made.jobs[1].cell
    huge = "x" * 5_000_000
    (decode,) = made.results[cell.cell_id]
    row = replace(draft_free(cell, 0), text=huge, pieces=(huge, *draft_free(cell, 0).pieces[1:]), score_reason=huge)
    row = replace(row, prompt_id=huge)
    results = {**made.results, cell.cell_id: (replace(decode, generations=(row, *decode.generations[1:])),)}
    run = replace(made, results=results).write(tmp_path / "run")
    size = render(run).stat().st_size
    assert size < 500_000
    assert (run / "report-data/prompts.csv").stat().st_size > 10_000_000  # complete data lies beside it


@pytest.mark.slow
def test_two_thousand_cells_with_twenty_thousand_rows_stay_a_page(tmp_path):
    cells = grid(targets=10, temperatures=(0.0, 0.5, 1.0, 1.5, 2.0), budgets=(2, 4, 8, 12, 16, 20), gammas=(0.1,))
    made = sweep(cells[:2000], prompts=11, timed=0, faults=Faults(failed=1, bugs=1))
    assert len(made.jobs) == 1900
    run = made.write(tmp_path / "run")
    started = time.monotonic()
    path = render(run)
    text = Page(path.read_text(encoding="utf-8")).text
    assert path.stat().st_size < 5_000_000
    assert "Left out: 700 rows of 1,900 not shown; all are in report-data/cells.csv." in text
    assert sum(1 for _ in (run / "report-data/cells.csv").open()) == 1901
    assert sum(1 for _ in (run / "report-data/prompts.csv").open()) > 20_000
    assert time.monotonic() - started < 180  # seconds on a free machine; far from the minutes of a hang


def test_frames_do_not_need_what_drives_or_decodes(tmp_path, small):
    """A laptop with pandas rebuilds the page: no torch, ray, mlflow or omegaconf is imported on the way."""
    import subprocess
    import sys

    run = small.write(tmp_path / "run")
    code = (
        "import sys; from pathlib import Path; from reports.render import render; render(Path(sys.argv[1]));"
        "print(sorted({'torch', 'ray', 'mlflow', 'omegaconf', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_infos_are_plain_enough_to_be_written_as_json(faulty_frames):
    for info in infos(faulty_frames):
        json.loads(msgspec.json.encode(info), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


def test_a_section_that_fails_costs_no_other_and_is_raised(small, tmp_path, monkeypatch):
    run = small.write(tmp_path / "run")

    def broken(frames):
        raise AssertionError("estimate holds <nan>")

    whole = {info.key for info in infos(load(run))}
    monkeypatch.setattr("reports.sections.curves.info", broken)
    with pytest.raises(SectionsFailedError, match="is written, but some of its sections failed") as failure:
        render(run)
    assert [str(error) for error in failure.value.exceptions] == ["estimate holds <nan>"]
    written = Page((run / "report.html").read_text(encoding="utf-8"))
    assert "This section failed (AssertionError: estimate holds <nan>): a defect of spot." in written.text
    sections, _ = attempted(load(run))
    assert {info.key for info in sections} == whole - {"budget"} | {"failed-curves"}
    with pytest.raises(AssertionError, match="estimate holds"):
        page(load(run))
    assert write_report(RunDir(run)) == 70
