"""No section averages a broken cell: what its numbers are changes no sentence, and no mean over several cells.

Each run is made twice, with other nonsense in its broken cells; whatever rests on sound cells alone stays as it is.
"""

from dataclasses import replace

import pytest

from reports.marks import BROKEN, is_broken
from reports.model import Chart, Lines, Table
from reports.render import function
from reports.sections import SECTIONS, accepted, across, temperature, transfer
from reports.text import NOT_AVAILABLE
from tests.set_rows import rungs, set_cells
from tests.synthetic import grid, sweep
from tests.transfers import transfers
from tests.unit.reports.conftest import framed

ORACLES = grid(budgets=(8,), temperatures=(0.0, 0.5, 2.0), noises=("coupled", "independent"), oracles=True)
OPTIONS = tuple(
    replace(cell, drafter=replace(cell.drafter, name=f"{cell.drafter.name}-{name}", **option))
    for cell in grid(budgets=(4, 8))
    if cell.drafter.kind == "spot"
    for name, option in (("unmerged", {"merge_states": False}), ("verified", {"verify_margin": 0.25}))
)
LADDER = tuple(
    cell
    for base in grid(budgets=(8,), temperatures=(0.0,))
    if base.is_baseline
    for cell in set_cells(base, drafters=rungs())
)
RULES = set_cells(grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,))[0], taus=(0.7, 0.9), budgets=(4, 8))
RUNS = {  # cells, prompts timed, and which of them are broken
    **{
        kind: (ORACLES, 3, lambda cell, kind=kind: cell.drafter.kind == kind)
        for kind in ("ssd", "spot", "oracle_position", "oracle_token", "oracle_joint")
    },
    "an option": (grid(budgets=(4, 8)) + OPTIONS, 3, lambda cell: cell.drafter.name == "spot-unmerged"),
    "a margin": (grid(budgets=(4, 8)) + OPTIONS, 3, lambda cell: cell.drafter.name == "spot-verified"),
    "sizes": (grid(targets=2), 3, lambda cell: cell.drafter.kind == "ssd" and int(cell.target.digest, 16) == 1),
    "a transferred drafter": (transfers(), 0, lambda cell: cell.drafter.name == "from-tiny-b"),
    "a baseline of transfers": (transfers(), 0, lambda cell: cell.drafter.kind == "spiffy"),
    "a rung": (LADDER, 3, lambda cell: cell.drafter.name == "floor"),
    "a lossy rung on one task": (
        LADDER,
        3,
        lambda cell: cell.drafter.name == "product" and cell.task.name == "tiny-code",
    ),
    "a rule of acceptance": (RULES, 0, lambda cell: cell.drafter.acceptance == "cut"),
    "the exact rule": (RULES, 0, lambda cell: cell.drafter.acceptance == "exact" and not cell.is_baseline),
    "one task": (ORACLES, 3, lambda cell: cell.drafter.kind == "ssd" and cell.task.name == "tiny-arith"),
}


def broken_run(cells, timed, is_bad, factor):
    """A run whose bad cells have `factor` times their forwards, more than tokens, and answers that depend on it."""

    def nonsense(row):
        counters = replace(
            row.counters,
            nfe=factor * row.counters.nfe,
            accepted=factor * row.counters.accepted,
            drafted=factor * row.counters.drafted,
        )
        return replace(row, correct=factor > 2, counters=counters)

    made = sweep(cells, prompts=4, timed=timed)
    results = {
        cell.cell_id: tuple(
            replace(item, generations=tuple(map(nonsense, item.generations))) if is_bad(cell) else item
            for item in made.results[cell.cell_id]
        )
        for cell in (job.cell for job in made.jobs)
    }
    frames = framed(replace(made, results=results))
    assert {is_broken(result) for result in frames.results if is_bad(result.cell)} == {True}
    assert {is_broken(result) for result in frames.results if not is_bad(result.cell)} == {False}
    return frames


def parts_of(info, kind):
    return [part for group in (info.groups if info else ()) for part in group.parts if isinstance(part, kind)]


def rows_of(table):
    return [[(value.text, value.interval) for value in row] for _, rows in table.groups for row in rows]


@pytest.mark.parametrize("run", RUNS)
def test_no_sentence_rests_on_a_broken_cell(run):
    both, told = [broken_run(*RUNS[run], factor) for factor in (2, 3)], 0
    for reference in SECTIONS:
        one, other = (
            [
                text
                for part in parts_of(function(reference)(own), Lines)
                for level, text in part.lines
                if level != "alarm"
            ]
            for own in both
        )
        assert one == other, reference
        told += len(one)
    assert told > 5


def test_means_over_tasks_leave_out_a_method_that_is_broken_on_one_of_them():
    frames = [broken_run(*RUNS["one task"], factor) for factor in (2, 3)]
    one, other = (parts_of(across.info(own), Table) for own in frames)
    assert [rows_of(table) for table in one] == [rows_of(table) for table in other]
    rows = [[text for text, _ in row] for table in one for row in rows_of(table) if row[0][0].startswith("ssd")]
    assert rows
    assert all(BROKEN in row[0] and row[3:] == [NOT_AVAILABLE] * 4 for row in rows)


def test_pooled_pictures_are_of_the_sound_tasks_and_marked():
    bad = broken_run(*RUNS["one task"], 2)
    alone = framed(sweep(tuple(cell for cell in ORACLES if cell.task.name != "tiny-arith"), prompts=4, timed=3))
    pooled, sound = (
        {
            (chart.title, point.facet, point.x): (point.y, point.mark)
            for chart in charts
            for point in chart.points
            if point.series == "ssd"
        }
        for charts in (parts_of(accepted.info(frames), Chart) for frames in (bad, alone))
    )
    assert pooled.keys() == sound.keys()
    assert {key: y for key, (y, _) in pooled.items()} == {key: y for key, (y, _) in sound.items()}
    assert all(BROKEN in mark for _, mark in pooled.values())


def test_transfer_pools_the_sound_tasks_and_marks_what_it_left_out():
    def is_bad(cell):
        return cell.drafter.name == "from-tiny-b" and cell.task.name == "tiny-arith"

    cells = transfers(budgets=(8,), temperatures=(0.0,))
    bad = transfer.info(broken_run(cells, 0, is_bad, 2))
    whole = transfer.info(framed(sweep(tuple(c for c in cells if c.task.name != "tiny-arith"), prompts=4, timed=0)))
    for mine, theirs in zip(parts_of(bad, Table)[:2], parts_of(whole, Table)[:2], strict=True):
        (row,) = [row for row in rows_of(mine) if row[0][0].startswith("from-tiny-b")]
        (sound,) = [row for row in rows_of(theirs) if row[0][0].startswith("from-tiny-b")]
        assert all(BROKEN in text for text, _ in row if text != "native")
        assert [text.removesuffix(f" {BROKEN}") for text, _ in row] == [text for text, _ in sound]
        assert [interval for _, interval in row] == [interval for _, interval in sound]


def test_quality_pools_the_sound_noise_modes():
    def is_bad(cell):
        return cell.is_baseline and cell.decode.noise == "independent" and cell.decode.temperature > 0

    bad = temperature.info(broken_run(ORACLES, 0, is_bad, 3))
    (group,) = [group for group in bad.groups if not group.folded]
    quality = next(part for part in group.parts if isinstance(part, Chart) and part.title.startswith("Quality"))
    coupled = tuple(cell for cell in ORACLES if cell.decode.noise == "coupled" or cell.decode.temperature == 0)
    sound = parts_of(temperature.info(framed(sweep(coupled, prompts=4, timed=0))), Chart)
    expected = next(chart for chart in sound if chart.title.startswith("Quality"))
    assert [(p.facet, p.series, p.x, p.y, p.low, p.high) for p in quality.points] == [
        (p.facet, p.series, p.x, p.y, p.low, p.high) for p in expected.points
    ]
    assert {BROKEN in point.mark for point in quality.points if point.x > 0} == {True}
    said = next(text for part in parts_of(bad, Lines) for _, text in part.lines if "Right answers" in text)
    assert [BROKEN in level for level in said.partition("Right answers")[2].split(", ")] == [False, True, True]
