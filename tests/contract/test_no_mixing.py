"""No number of any section mixes cells that differ in their rule of acceptance or in tau.

Each drafted cell of a run is changed in turn. Whatever then changes in a table or a picture must be said of that cell's
method under its commit rule: it stands in a row, or beside a name, that both are in.
"""

from dataclasses import replace

import pytest

from reports.labels import labels_of
from reports.model import Chart, Table
from reports.render import function
from reports.sections import SECTIONS
from tests.contract.test_sections import laddered, ruled
from tests.synthetic import sweep
from tests.unit.reports.conftest import framed

RUNS = {"rules": ruled(), "ladder": laddered()}
MOST = 5  # cells that are changed


def slower(row):
    """A generation of one round more that also draws otherwise: counts and drawn shares change, the laws hold."""
    counters = row.counters
    index = next(place for place, accepted in enumerate(counters.accepted) if accepted)
    accepted = (*counters.accepted[:index], counters.accepted[index] - 1, 0, *counters.accepted[index + 1 :])
    drafted = (*counters.drafted[:index], counters.drafted[index], 1, *counters.drafted[index + 1 :])
    counters = replace(
        counters, nfe=counters.nfe + 1, accepted=accepted, drafted=drafted, positions=counters.positions + 64
    )
    return replace(row, counters=counters, correct=not row.correct)


def slower_timing(row):
    return replace(row, nfe=row.nfe + 1, variant_seconds=tuple(3 * second for second in row.variant_seconds))


def changed(made, cell_id):
    """The run with the generations and timings of one cell changed."""
    items = tuple(
        replace(
            item,
            generations=tuple(map(slower, item.generations)),
            timings=tuple(map(slower_timing, item.timings)),
        )
        for item in made.results[cell_id]
    )
    return replace(made, results=made.results | {cell_id: items})


def lines_of(info):
    """Every row of every table and point of every chart: where it stands, and what it says."""
    for group in info.groups if info else ():
        for part in group.parts:
            if isinstance(part, Table):
                for heading, rows in part.groups:
                    for row in rows:
                        pairs = zip(part.heads, row, strict=True)
                        texts = [(value.text, value.interval) for head, value in pairs if not of_others(head)]
                        yield f"{group.title} | {part.caption} | {heading}", texts
            if isinstance(part, Chart):
                for point in part.points:
                    where = f"{group.title} | {part.title} | {point.facet} | {point.series} | {point.text}"
                    yield where, [(str(value), "") for value in (point.x, point.y, point.low, point.high)]


def of_others(head):
    """Whether a column is about another row by its own words: a ladder's steps, and what a front leaves out."""
    return head.name.startswith("Step: ") or head.name == "Front"


@pytest.fixture(scope="module", params=RUNS)
def made(request):
    return sweep(RUNS[request.param], prompts=3, timed=3)


def test_names_tell_all_cells_apart(made):
    results = framed(made).results
    labels = labels_of(results)
    names = [
        (labels.setting[one.cell_id], labels.task[one.cell_id], labels.method[one.cell_id], one.cell.drafter.budget)
        for one in results
    ]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("reference", [one for one in SECTIONS if not one.endswith(("summary:info", "downloads:info"))])
def test_what_changes_with_a_cell_is_said_of_that_cell(reference, made):
    plain = framed(made)
    labels, info = labels_of(plain.results), function(reference)
    before = list(lines_of(info(plain)))
    drafted = [result.cell for result in plain.results if not result.cell.is_baseline]
    seen = 0
    chosen = drafted[:: len(drafted) // MOST]
    for cell in chosen:
        after = list(lines_of(info(framed(changed(made, cell.cell_id)))))
        own = [line for line in after if line not in before]
        seen += len(own)
        for where, texts in own:
            said = f"{where} | {' | '.join(text for text, _ in texts)}"
            assert names_the_method(said, cell, labels.method[cell.cell_id]), said
            assert f"{cell.decode.tau:g}" in said, said
    if reference.endswith(("headline:info", "accepted:info", "curves:info")):
        assert seen >= len(chosen), "every change is seen"


def names_the_method(said, cell, method):
    """Whether a line names a cell's method: by its name, its rung or its rule of acceptance."""
    drafter = cell.drafter
    rung = {"sets": "+ set drafter", "floor": "mass floor", "cross": "cross-block", "fresh": "refresh"}
    return method in said or drafter.acceptance in said or rung.get(drafter.name, method) in said
