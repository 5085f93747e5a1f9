"""No section shows a number of a broken cell without its mark, in whatever table, chart or LaTeX it stands."""

import re
from dataclasses import replace

import pytest

from reports import latex
from reports.labels import labels_of
from reports.marks import BROKEN, GATE, is_broken, notes
from reports.model import Chart, Listing, Table, Trace
from reports.render import function, numbers, page
from reports.sections import SECTIONS
from tests.synthetic import Faults, grid, sweep
from tests.unit.reports.conftest import framed

NOISES = ("coupled", "independent")
BAD = "ssd"  # the method that is broken; spot, spot-gamma and the oracles are sound


def bad_outputs(row):
    """Another last token: the promise of identity is broken."""
    return replace(row, output_ids=(*row.output_ids[:-1], row.output_ids[-1] + 1))


def bad_counts(row):
    """More accepted than drafted: the counts contradict each other, whatever is promised."""
    drafted = (0, *row.counters.drafted[1:])
    accepted = (5, *row.counters.accepted[1:])
    return replace(row, counters=replace(row.counters, accepted=accepted, drafted=drafted))


def partly_broken(change, kind=BAD):
    """A run in which every generation of one method is changed."""
    cells = grid(budgets=(4, 8), temperatures=(0.0, 0.5, 2.0), noises=NOISES, oracles=True)
    cells += tuple(
        replace(cell, drafter=replace(cell.drafter, name=f"{cell.drafter.name}-{name}", **option))
        for cell in cells
        if cell.drafter.kind == kind
        for name, option in (("merged", {"merge_states": True}), ("verified", {"verify_margin": 0.25}))
    )
    made = sweep(cells, prompts=4, timed=3)
    results = {
        cell.cell_id: tuple(
            replace(item, generations=tuple(map(change, item.generations))) if cell.drafter.kind == kind else item
            for item in made.results[cell.cell_id]
        )
        for cell in cells
    }
    return framed(replace(made, results=results))


@pytest.fixture(scope="module")
def contradicting():
    frames = partly_broken(bad_counts)
    assert {is_broken(r) for r in frames.results if r.cell.drafter.kind == BAD} == {True}
    assert {is_broken(r) for r in frames.results if r.cell.drafter.kind != BAD} == {False}
    return frames


@pytest.fixture(scope="module")
def differing():
    cells = [r for r in partly_broken(bad_outputs).results if is_broken(r)]
    assert {r.cell.drafter.kind for r in cells} == {BAD}
    return partly_broken(bad_outputs)


@pytest.fixture(scope="module")
def faulty():
    faults = Faults(failed=1, missing=1, near_ties=1, bugs=1, noisy=True)
    return framed(sweep(grid(budgets=(4, 8), temperatures=(0.0, 0.5, 2.0), noises=NOISES, oracles=True), faults=faults))


def parts_of(reference, frames):
    info = function(reference)(frames)
    return [part for group in (info.groups if info else ()) for part in group.parts]


def rows_of(parts):
    """Every row of every table, those of the charts' numbers too, with what stands above it."""
    for part in parts:
        if isinstance(part, Table | Chart):
            table = numbers(part) if isinstance(part, Chart) else part
            for heading, rows in table.groups:
                for row in rows:
                    yield table.caption, heading, [value.text for value in row]


def names_method(text, method):
    """Whether a table cell names a method: alone, behind its task (panels), or with options and marks."""
    return re.search(rf"(^|: |, ){method}(-merged|-verified)?($|, | [{BROKEN}(])", text) is not None


@pytest.mark.parametrize("reference", SECTIONS)
def test_every_row_of_a_method_with_contradicting_counts_has_a_cross_and_no_other(reference, contradicting):
    for caption, _, row in rows_of(parts_of(reference, contradicting)):
        bad = any(names_method(text, BAD) for text in row)
        assert (BROKEN in "".join(row)) is bad, (caption, row)
        if not caption.startswith("Numbers: "):  # of a chart: there the number has the cross, not the name of its line
            assert all(BROKEN in text for text in row if names_method(text, BAD)), (caption, row)


@pytest.mark.parametrize("reference", SECTIONS)
def test_every_row_of_a_method_whose_claim_does_not_hold_has_a_cross(reference, differing):
    """At T > 0 independent outputs promise nothing: only coupled and greedy ones can be broken."""
    labels = labels_of(differing.results)
    sound = {labels.setting[r.cell_id] for r in differing.results if r.cell.decode.noise == "independent"}
    for caption, _, row in rows_of(parts_of(reference, differing)):
        unpromised = "independent" in row or any(name in caption for name in sound) or bool(sound & set(row))
        if any(names_method(text, BAD) for text in row) and not unpromised:
            assert BROKEN in "".join(row), (caption, row)


@pytest.mark.parametrize("reference", SECTIONS)
def test_where_all_drafters_are_broken_no_row_names_one_without_a_mark(reference, faulty):
    promising = [r for r in faulty.results if r.claim_holds is False]
    assert len(promising) > 20
    labels = labels_of(faulty.results)
    silent = {labels.setting[r.cell_id] for r in faulty.results if r.cell.decode.noise == "independent"}
    methods = {labels.method[r.cell_id] for r in promising}
    for caption, _, row in rows_of(parts_of(reference, faulty)):
        for method in methods:
            told = [text for text in row if re.search(rf"(^|: ){re.escape(method)}($|, | [{BROKEN}(])", text)]
            if told and not ("independent" in row or any(name in caption for name in silent) or silent & set(row)):
                assert BROKEN in "".join(row), (caption, row)


@pytest.mark.parametrize("reference", [name for name in SECTIONS if ".gaps:" not in name])  # which has a column for it
def test_every_row_of_a_partial_cell_says_how_many_prompts_it_has(reference):
    cells = grid(budgets=(4, 8), temperatures=(0.0, 0.5, 2.0), noises=NOISES, oracles=True)
    frames = framed(sweep(cells, prompts=6, timed=2, faults=Faults(missing=2)))
    methods = set(labels_of(frames.results).methods)
    for caption, _, row in rows_of(parts_of(reference, frames)):
        if any(names_method(text, re.escape(method)) for text in row for method in methods):
            assert re.search(r"\b4 of 6\b|\b8 of 12\b", " | ".join(row)), (caption, row)
            assert BROKEN not in "".join(row)


@pytest.mark.parametrize("reference", SECTIONS)
def test_a_chart_names_its_broken_series_below_itself(reference, contradicting):
    for chart in (part for part in parts_of(reference, contradicting) if isinstance(part, Chart)):
        broken = {name for p in chart.points if BROKEN in p.mark for name in (p.series, p.facet)}
        named = {name for name in broken if names_method(name, BAD)}
        if any(names_method(name, BAD) for p in chart.points for name in (p.series, p.facet)):
            assert named, chart.title
            (note,) = notes(chart)
            assert note.startswith(f"{BROKEN} A claim of identity did not hold, or counts contradict each other: ")
            assert any(name in note for name in named), note
        else:
            assert notes(chart) == (), chart.title


@pytest.mark.parametrize("reference", SECTIONS)
def test_a_commit_order_and_a_listing_name_broken_cells_with_their_mark(reference, contradicting):
    for part in parts_of(reference, contradicting):
        if isinstance(part, Trace) and re.search(rf", {BAD}\b", part.title):
            assert BROKEN in part.title
        if isinstance(part, Listing) and part.filename.endswith(".tex"):
            lines = [line for line in part.text.splitlines() if line.endswith(r"\\") and " & " in line]
            named = [line for line in lines if line.startswith(BAD)]
            assert named
            assert all(latex.BROKEN in line.split(" & ")[0] for line in named)
            assert not any(latex.BROKEN in line for line in lines if not line.startswith(BAD))


def test_timed_numbers_of_failed_gates_are_marked_in_pictures_as_in_tables(faulty):
    charts = [part for part in parts_of("reports.sections.curves:info", faulty) if isinstance(part, Chart)]
    timed = [chart for chart in charts if chart.title.startswith("Throughput")]
    assert timed
    assert all(GATE in point.mark for chart in timed for point in chart.points)
    assert not any(GATE in point.mark for chart in charts if chart not in timed for point in chart.points)
    assert all(
        any(note.startswith(f"{GATE} The timing failed a gate: all") for note in notes(chart)) for chart in timed
    )


def test_sentences_that_compare_broken_cells_say_so():
    """2 budgets and 2 tasks: 4 duels, and 4 comparisons of the modes for each of 8 drafters, of which 3 are broken."""
    for reference, said in (
        ("reports.sections.oracles:info", "4 of 4 duels have a cell marked \u2717 and are not counted."),
        ("reports.sections.temperature:info", "12 of 32 comparisons have a cell marked \u2717 and are not counted."),
        ("reports.sections.beyond:info", "20 of 20 pairs have a cell marked \u2717 and are not counted."),
    ):
        broken = partly_broken(bad_counts, BAD if "beyond" in reference else "oracle_position")
        assert said in " ".join(function(reference)(broken).findings), reference
        sound = partly_broken(lambda row: row)
        assert "marked" not in " ".join(function(reference)(sound).findings), reference


def test_the_notes_stand_on_the_page(contradicting, monkeypatch):
    monkeypatch.setattr("reports.charts.svg", lambda chart: "")
    html = page(contradicting)
    assert html.count(f"{BROKEN} A claim of identity did not hold") > 5
