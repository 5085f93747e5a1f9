"""The temperature section: what it says follows from the numbers, and it shows only where there is something to say."""

import math
from dataclasses import replace

import pytest

from reports.charts import NEUTRAL, svg
from reports.noise_modes import forwards_ratio
from reports.sections.temperature import info
from sweeps.merge import merge_all
from sweeps.records import Drawn, GenerationRecord
from tests.synthetic import Sweep, draft_free, generation, grid, sweep
from tests.unit.reports.conftest import framed

LEVELS = (0.0, 0.5, 2.0, 4.0)
CELLS = grid(tasks=("tiny-arith",), budgets=(8,), gammas=(), temperatures=LEVELS, noises=("coupled", "independent"))
PROMPTS = 8


def changed(change) -> Sweep:
    """The sweep with every generation changed by `change(cell, row)`."""
    made = sweep(CELLS, prompts=PROMPTS, timed=0)
    results = {}
    for job in made.jobs:
        results[job.cell_id] = tuple(
            replace(item, generations=tuple(change(job.cell, row) for row in item.generations))
            for item in made.results[job.cell_id]
        )
    return Sweep(jobs=made.jobs, results=results)


def section(change=lambda cell, row: row):
    return info(framed(changed(change)))


def sentences(found) -> list[tuple[str, str]]:
    (group,) = found.groups
    return next(part.lines for part in group.parts if part.kind == "lines")


def parts(found, kind: str) -> list:
    (group,) = found.groups
    return [part for part in group.parts if part.kind == kind]


def test_it_is_shown_for_several_temperatures_or_both_noise_modes_only() -> None:
    def shown(**options) -> bool:
        axes = {"tasks": ("tiny-arith",), "budgets": (8,), "gammas": (), **options}
        return info(framed(sweep(grid(**axes), prompts=2, timed=0))) is not None

    assert not shown(temperatures=(0.0, 1.0))
    assert not shown(temperatures=(0.0,))
    assert shown(temperatures=(0.5, 1.0))
    assert shown(temperatures=(1.0,), noises=("coupled", "independent"))


def test_greedy_cells_stand_under_both_modes_and_draft_free_in_every_panel() -> None:
    nfe, agreement, quality = parts(section(), "chart")
    assert {point.facet for point in nfe.points} == {"tiny-arith: ssd", "tiny-arith: spot"}
    for facet in ("tiny-arith: ssd", "tiny-arith: spot"):
        for series in ("draft-free", "coupled", "independent"):
            assert [p.x for p in nfe.points if (p.facet, p.series) == (facet, series)] == list(LEVELS)
    bound = [point for point in agreement.points if point.series == "bound for coupled"]
    assert len(bound) == 3 * len(LEVELS)
    assert {point.series for point in quality.points} == {"argmax drawn", "correct"}
    assert all(0 <= point.y <= 100 for point in (*agreement.points, *quality.points))


def slow(cell, row: GenerationRecord, factor: int) -> GenerationRecord:
    """With independent noise the coupled row, from T = 2 on with `factor` times fewer tokens for its forwards."""
    if cell.decode.noise == "coupled" or cell.is_baseline:
        return row
    twin = generation(replace(cell, decode=replace(cell.decode, noise="coupled")), row.prompt_index)
    less = factor if cell.decode.temperature >= 2 else 1
    return replace(twin, tokens_generated=twin.tokens_generated // less, drawn=row.drawn)


def test_independent_noise_that_needs_more_is_said_to_need_more() -> None:
    lines = [text for _, text in sentences(section(lambda cell, row: slow(cell, row, 2)))]
    hot = next(text for text in lines if text.startswith("From T = 2 on"))
    assert "independent noise needs more than coupled in all of 4 comparisons" in hot
    assert "Independent over coupled: 2.0" in hot
    cold = next(text for text in lines if text.startswith("Up to T = 0.5"))
    assert "agree within their 95 % intervals in 2 of 2 comparisons. Independent over coupled: 1.00." in cold


def test_independent_noise_that_needs_no_more_is_said_so_plainly() -> None:
    lines = [text for _, text in sentences(section(lambda cell, row: slow(cell, row, 1)))]
    hot = next(text for text in lines if text.startswith("From T = 2 on"))
    assert "independent noise does not need more than coupled in any of 4 comparisons" in hot
    assert "in 0 it needs fewer, and in 4 the 95 % interval includes no difference" in hot
    (compared, _) = parts(section(lambda cell, row: slow(cell, row, 1)), "table")
    assert {row[-1].text for _, rows in compared.groups for row in rows} == {"the same, within the interval"}


@pytest.mark.parametrize(
    ("right", "text"),
    [
        ({0.0: True, 0.5: True, 2.0: False, 4.0: False}, "quality has collapsed from T = 2 on"),
        ({0.0: True, 0.5: False, 2.0: True, 4.0: False}, "quality has collapsed from T = 4 on"),
        ({0.0: True, 0.5: True, 2.0: False, 4.0: True}, "quality has not collapsed up to T = 4"),
        ({0.0: False, 0.5: False, 2.0: False, 4.0: False}, "nothing can be said of a collapse"),
    ],
)
def test_where_quality_collapses(right: dict[float, bool], text: str) -> None:
    lines = sentences(section(lambda cell, row: replace(row, correct=right[cell.decode.temperature])))
    (line,) = [line for _, line in lines if line.startswith("tiny-arith, draft-free")]
    assert text in line
    assert "8 at T = 0," in line
    assert "16 at T = 0.5," in line  # both modes sample one distribution: their draft-free answers are pooled


def test_agreement_below_the_bound_is_a_warning_in_the_lines_and_in_the_table() -> None:
    def never(cell, row: GenerationRecord) -> GenerationRecord:
        if cell.decode.temperature != 2.0 or cell.drafter.kind != "ssd":
            return row
        drawn = row.drawn
        assert drawn is not None
        once = drawn.agreed.replace("1", "0")[:-1] + "1"
        return replace(row, drawn=Drawn(argmax=drawn.argmax, agreed=once, distances=drawn.distances))

    found = section(never)
    (warning,) = [text for level, text in sentences(found) if level == "warning"]
    assert warning.startswith(
        "Agreement lies wholly below (1-d)/(1+d) in 1 of 9 cells: ssd at D = 8 on tiny-arith, T = 2"
    )
    table = parts(found, "table")[-1]
    flagged = [row for _, rows in table.groups for row in rows if row[8].flag == "warning"]
    assert [[value.text for value in row[:4]] for row in flagged] == [
        ["ssd", "8", "coupled", "2"]
    ]  # independent is not


def test_the_table_has_every_cell_with_its_claim() -> None:
    table = parts(section(), "table")[-1]
    rows = [row for _, rows in table.groups for row in rows]
    assert len(rows) == len(CELLS)
    claims = {(row[0].text == "draft-free", row[2].text): row[-1].text for row in rows}
    assert claims == {
        (True, "none drawn"): "lossless",
        (True, "coupled"): "lossless",
        (True, "independent"): "lossless",
        (False, "none drawn"): "lossless",
        (False, "coupled"): "lossless",
        (False, "independent"): "distribution-exact",
    }


def test_a_ratio_of_forwards_a_token_by_hand() -> None:
    def rows(counts):
        made = {}
        for index, (nfe, tokens) in enumerate(counts):
            row = draft_free(CELLS[0], index)
            counters = replace(row.counters, nfe=nfe, accepted=(0,) * nfe, drafted=(0,) * nfe)
            made[index] = replace(row, tokens_generated=tokens, counters=counters)
        return made

    ratio = forwards_ratio(rows([(40, 80), (50, 100), (44, 90), (9, 9)]), rows([(20, 100), (30, 100), (25, 90)]))
    assert ratio.n == 3
    assert ratio.value == pytest.approx((134 / 270) / (75 / 290))
    assert ratio.low is not None
    assert ratio.low < (ratio.value or 0) < (ratio.high or 0)
    assert forwards_ratio({}, {}).value is None
    same = rows([(20 + index, 80 + index % 7) for index in range(30)])
    assert forwards_ratio(same, same).low == pytest.approx(1.0)  # paired: what both share does not widen it


def test_merging_keeps_what_was_seen() -> None:
    made = sweep(CELLS[:1], prompts=2, timed=0)
    rows = merge_all(made.results[CELLS[0].cell_id])
    assert all(row.drawn is not None for row in rows[CELLS[0].cell_id].generations.values())
    assert math.isfinite(sum(d or 0.0 for d in rows[CELLS[0].cell_id].generations[0].drawn.distances))


def test_panels_are_grey_from_where_the_answers_are_lost() -> None:
    right = {0.0: True, 0.5: True, 2.0: False, 4.0: False}
    lost = parts(section(lambda cell, row: replace(row, correct=right[cell.decode.temperature])), "chart")
    assert lost[0].grey == (("tiny-arith: ssd", 2.0), ("tiny-arith: spot", 2.0))
    assert lost[2].grey == (("tiny-arith", 2.0),)
    kept = parts(section(lambda cell, row: replace(row, correct=True)), "chart")
    assert [chart.grey for chart in kept] == [(), (), ()]
    assert "Grey" in lost[0].title
    assert "Grey" not in kept[0].title
    backgrounds = [[f'fill="{NEUTRAL}"' in path for path in svg(chart).split("<path")] for chart in (lost[0], kept[0])]
    assert [sum(found) for found in backgrounds] == [2, 0]  # one a panel


def test_confidences_and_seeds_are_studied_apart_and_share_the_greedy_cells() -> None:
    def as_sampled(cell):
        return replace(cell, decode=replace(cell.decode, confidence="sampled"))

    hot = [cell for cell in CELLS if cell.decode.temperature > 0]
    cells = (*CELLS, *map(as_sampled, hot), *(replace(cell, seed=1) for cell in hot))
    found = info(framed(sweep(cells, prompts=2, timed=0)))
    assert found is not None
    assert [group.title for group in found.groups] == [
        "tiny-sdar, confidence top1, seed 0",
        "tiny-sdar, confidence sampled, seed 0",
        "tiny-sdar, confidence top1, seed 1",
    ]
    for group in found.groups:
        table = [part for part in group.parts if part.kind == "table"][-1]
        rows = [row for _, rows in table.groups for row in rows]
        assert len(rows) == len(CELLS)
        assert sum(row[2].text == "none drawn" for row in rows) == 3
    told = [
        " ".join(text for part in group.parts if part.kind == "lines" for _, text in part.lines)
        for group in found.groups
    ]
    assert ["the bound is not guaranteed" in text for text in told] == [False, True, False]


def test_rows_that_nobody_watched_leave_the_forwards_and_show_no_draws() -> None:
    found = section(lambda cell, row: replace(row, drawn=None))
    nfe, quality = parts(found, "chart")
    assert len(nfe.points) == 2 * 3 * len(LEVELS)
    assert {point.series for point in quality.points} == {"correct"}
    table = parts(found, "table")[-1]
    assert {row[8].text for _, rows in table.groups for row in rows} == {"n/a"}
