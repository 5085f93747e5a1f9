"""The temperature section: what it says follows from the numbers, and it shows only where there is something to say."""

import math
from dataclasses import replace

import pytest

from reports.chart_style import NEUTRAL
from reports.charts import svg
from reports.noise_modes import forwards_a_token, forwards_ratio
from reports.sections.temperature import info
from sweeps.merge import merge_all
from sweeps.records import Drawn, GenerationRecord
from tests.synthetic import Sweep, draft_free, generation, grid, sweep
from tests.transfers import in_rounds
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


def test_greedy_cells_stand_under_both_modes_and_draft_free_is_the_rule_of_every_panel() -> None:
    forwards, agreement, quality = parts(section(), "chart")
    assert {point.facet for point in forwards.points} == {"tiny-arith: ssd", "tiny-arith: spot"}
    for facet in ("tiny-arith: ssd", "tiny-arith: spot"):
        for series in ("coupled", "independent"):
            assert [p.x for p in forwards.points if (p.facet, p.series) == (facet, series)] == list(LEVELS)
    assert (forwards.baseline, agreement.baseline, quality.baseline) == (1.0, None, None)
    assert "Dashed: draft-free, 1 by construction." in forwards.title
    bound = [point for point in agreement.points if point.series == "bound for coupled"]
    assert len(bound) == 3 * len(LEVELS)
    assert {point.series for point in quality.points} == {"argmax drawn", "correct"}
    assert all(0 <= point.y <= 100 for point in (*agreement.points, *quality.points))


def slow(cell, row: GenerationRecord, factor: int) -> GenerationRecord:
    """With independent noise the coupled row, from T = 2 on with `factor` times fewer tokens for its forwards.

    A token more or less, in turns: prompts that all agree have no interval.
    """
    if cell.decode.noise == "coupled" or cell.is_baseline:
        return row
    twin = generation(replace(cell, decode=replace(cell.decode, noise="coupled")), row.prompt_index)
    less = factor if cell.decode.temperature >= 2 else 1
    fewer = replace(twin, tokens_generated=twin.tokens_generated // less + (-1) ** row.prompt_index, drawn=row.drawn)
    return in_rounds(fewer, twin.counters.nfe)


def test_independent_noise_that_needs_more_is_said_to_need_more() -> None:
    lines = [text for _, text in sentences(section(lambda cell, row: slow(cell, row, 2)))]
    hot = next(text for text in lines if text.startswith("From T = 2 on"))
    assert "independent noise needs more than coupled in all of 4 comparisons" in hot
    assert "Independent over coupled: 2.0" in hot
    cold = next(text for text in lines if text.startswith("Up to T = 0.5"))
    assert "agree within their 95 % intervals in 2 of 2 comparisons. Independent over coupled: 1.00." in cold


def test_the_picture_shows_forwards_a_token_as_the_findings_compare_them() -> None:
    """Half the tokens for the same forwards: twice the forwards a token, and NFE (the table's) the same."""
    found = section(lambda cell, row: slow(cell, row, 2))
    y = {(p.facet, p.series, p.x): p for p in parts(found, "chart")[0].points}
    for facet in ("tiny-arith: ssd", "tiny-arith: spot"):
        coupled, independent = (y[facet, noise, 2.0] for noise in ("coupled", "independent"))
        assert independent.y == pytest.approx(2 * coupled.y, rel=0.02)
        assert coupled.low < coupled.y < coupled.high < 1
    made = framed(changed(lambda cell, row: row))
    for result in made.results:
        rows = made.rows[result.cell_id].generations.values()
        ratio = sum(row.counters.nfe for row in rows) / sum(row.tokens_generated for row in rows)
        assert forwards_a_token(result).value == pytest.approx(ratio)
        assert not result.cell.is_baseline or ratio == 1
    rows = [row for _, rows in parts(found, "table")[-1].groups for row in rows]
    assert {row[6].text for row in rows if row[0].text == "draft-free"} == {"1.000"}
    nfe = {(row[0].text, row[2].text): row[5].text for row in rows if row[3].text == "2"}
    assert nfe["ssd", "coupled"] == nfe["ssd", "independent"]


def test_one_prompt_gives_no_interval_and_nothing_is_said_of_it() -> None:
    found = info(framed(sweep(CELLS, prompts=1, timed=0)))
    lines = [text for _, text in sentences(found)]
    open_ones = "comparisons have no interval (1 prompt): nothing can be said of them."
    assert f"forwards for each generated token: 4 {open_ones}" in next(t for t in lines if t.startswith("From T = 2"))
    assert f"Up to T = 0.5: 2 {open_ones}" in next(text for text in lines if text.startswith("Up to T"))
    agreement = [text for text in lines if "(1-d)/(1+d)" in text]
    assert agreement == [
        "Agreement against (1-d)/(1+d): 9 cells have no interval (1 prompt): nothing can be said of them."
    ]
    assert not any("95 % interval" in text or "within" in text for text in lines if "paper" not in text)
    table = parts(found, "table")[0]
    assert {row[-1].text for _, rows in table.groups for row in rows} == {"no interval (1 prompt)"}


def test_pairs_without_an_interval_are_counted_apart() -> None:
    def fewer(cell, row: GenerationRecord) -> GenerationRecord | None:
        return row if row.prompt_index == 0 or cell.drafter.kind != "ssd" or cell.decode.temperature != 2 else None

    made = changed(lambda cell, row: row)
    results = {
        job.cell_id: tuple(
            replace(item, generations=tuple(row for row in item.generations if fewer(job.cell, row)))
            for item in made.results[job.cell_id]
        )
        for job in made.jobs
    }
    lines = [text for _, text in sentences(info(framed(Sweep(jobs=made.jobs, results=results))))]
    hot = next(text for text in lines if text.startswith("From T = 2 on"))
    assert "of 3 comparisons" in hot
    assert "1 comparison has no interval (1 prompt): nothing can be said of it." in hot


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
    assert "of 8 prompts at T = 0," in line
    assert "of 8 prompts in 2 noise modes at T = 0.5," in line  # both sample one distribution: answers are pooled


def told_of(right, prompts: int = PROMPTS) -> tuple[str, list]:
    """What is said of collapse, and the pictures, where `right(temperature, prompt)` answers are right."""
    made = sweep(CELLS, prompts=prompts, timed=0)
    results = {
        job.cell_id: tuple(
            replace(
                item,
                generations=tuple(
                    replace(row, correct=right(job.cell.decode.temperature, row.prompt_index))
                    for row in item.generations
                ),
            )
            for item in made.results[job.cell_id]
        )
        for job in made.jobs
    }
    found = info(framed(Sweep(jobs=made.jobs, results=results)))
    (line,) = [text for _, text in sentences(found) if text.startswith("tiny-arith, draft-free")]
    return line, parts(found, "chart")


def test_a_collapse_needs_enough_prompts() -> None:
    """Wilson with Student's t, none of n right: the upper end is t^2 / (n + t^2), for 2 and 3 prompts 0.99 and 0.86."""
    for prompts in (2, 3):
        line, charts = told_of(lambda temperature, index: temperature < 2, prompts)
        assert "too few prompts to say whether quality has collapsed at T = 4." in line
        assert charts[-1].grey == ()
    line, charts = told_of(lambda temperature, index: temperature < 2, 1)
    assert "no interval (1 prompt): nothing can be said of a collapse." in line
    assert "collapsed" not in line
    assert charts[-1].grey == ()


def test_both_modes_of_a_prompt_count_as_one_prompt() -> None:
    """Three of eight prompts right in both modes: at best 8 trials, whose interval does not end below half."""
    line, charts = told_of(lambda temperature, index: temperature < 2 or index < 3)
    assert "too few prompts to say" in line
    n, t2, share = 8, 2.3646**2, 3 / 8
    effective = n - 1  # the sample variance of prompts has n - 1
    centre, spread = (
        share + t2 / (2 * effective),
        math.sqrt(share * (1 - share) * t2 / effective + (t2 / 2 / effective) ** 2),
    )
    high = (centre + spread) / (1 + t2 / effective)
    (mark,) = [p for p in charts[-1].points if (p.series, p.x) == ("correct", 2.0)]
    assert mark.high == pytest.approx(100 * high, abs=0.01)
    assert mark.y == 37.5
    assert f"38 % ({mark.low:.0f} – {mark.high:.0f}) of 8 prompts in 2 noise modes at T = 2" in line


def test_a_doubtful_temperature_before_the_collapse_is_named() -> None:
    line, _ = told_of(lambda temperature, index: temperature < 2 or (temperature == 2 and index < 3))
    assert "quality has collapsed from T = 4 on" in line
    assert "At T = 2: too few prompts to say." in line


def test_with_confidence_sampled_the_modes_are_not_pooled() -> None:
    hot = [cell for cell in CELLS if cell.decode.temperature > 0]
    drawn = [replace(cell, decode=replace(cell.decode, confidence="sampled")) for cell in hot]
    cold = [cell for cell in CELLS if cell.decode.temperature == 0]
    found = info(framed(sweep((*cold, *drawn), prompts=PROMPTS, timed=0)))
    names = {text.partition(", draft-free")[0] for _, text in sentences(found) if ", draft-free: " in text}
    assert {"tiny-arith, coupled noise", "tiny-arith, independent noise"} <= names
    assert not any("in 2 noise modes" in text for _, text in sentences(found))
    quality = parts(found, "chart")[-1]
    assert {point.facet for point in quality.points} == {"tiny-arith, coupled noise", "tiny-arith, independent noise"}
    assert "Both sample the target's own distribution" not in found.lead
    assert "they follow different distributions" in found.lead
    assert "Both sample the target's own distribution" in section().lead
    both = info(framed(sweep((*CELLS, *drawn), prompts=2, timed=0)))
    assert "With confidence top1: both sample" in both.lead
    assert "With confidence sampled they follow different" in both.lead


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
        "Agreement lies wholly below (1-d)/(1+d) in 1 of 9 cells (1 of 9 is what chance may give): ssd at D = 8 on "
        "tiny-arith, T = 2"
    )
    table = parts(found, "table")[-1]
    flagged = [row for _, rows in table.groups for row in rows if row[9].flag == "warning"]
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
    assert len(nfe.points) == 2 * 2 * len(LEVELS)
    assert {point.series for point in quality.points} == {"correct"}
    table = parts(found, "table")[-1]
    assert {row[9].text for _, rows in table.groups for row in rows} == {"n/a"}
