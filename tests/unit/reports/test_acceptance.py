"""The section of acceptance rules: the front against its definition, claims marked, failed cells apart."""

import itertools
import math
from dataclasses import replace

import pytest

from reports.acceptance_entries import front, gain, identical, kept_tokens, rest_of
from reports.chart_shapes import frame_of
from reports.charts import picture, svg
from reports.model import Chart, Lines, Table
from reports.render import numbers
from reports.sections.acceptance import info
from sweeps.statistics import wilson
from tests.set_rows import by_rule, rungs, set_cells
from tests.synthetic import Faults, grid, sweep
from tests.unit.reports.conftest import framed

BASE = grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,))[0]
CELLS = set_cells(BASE, taus=(0.7, 0.95), budgets=(4, 8), standard=False)


@pytest.fixture(scope="module")
def frames():
    return framed(sweep(CELLS, prompts=10, timed=0))


def parts(section, kind):
    return [part for group in section.groups for part in group.parts if isinstance(part, kind)]


def drafted(frames):
    return [result for result in frames.results if not result.cell.is_baseline]


def test_every_cell_is_a_mark_of_its_rule_and_a_row_and_lossy_ones_are_hollow(frames):
    section = info(frames)
    (table,) = parts(section, Table)
    charts = parts(section, Chart)
    assert len(charts) == 2
    for chart in charts:
        assert len(chart.points) == 2 * 2 * 4
        assert chart.series == ("exact (lossless)", "subset (lossy)", "cut (lossy)", "product (lossy)")
        assert {point.series for point in chart.points if not point.open} == {"exact (lossless)"}
        assert {point.text for point in chart.points} == {f"tau {t}, D {d}" for t in ("0.7", "0.95") for d in (4, 8)}
    ((heading, rows),) = table.groups
    assert heading == "tiny-sdar, T = 0: tiny-arith"
    assert len(rows) == 16
    assert {(row[1].text, row[2].text) for row in rows} == {
        ("exact", "lossless"),
        *((rule, "lossy") for rule in ("subset", "cut", "product")),
    }


def test_a_mark_stands_where_the_cell_s_numbers_are(frames):
    (chart, tokens) = parts(info(frames), Chart)
    wanted = {(gain(r).value, 100 * identical(r).value) for r in drafted(frames)}
    assert {(point.x, point.y) for point in chart.points} == wanted
    for result in drafted(frames):
        distance = result.fidelity.edit_distance
        assert kept_tokens(result).value == pytest.approx(1 - distance.value)
        if distance.has_interval:
            assert kept_tokens(result).low == pytest.approx(1 - distance.high)
    assert {point.y for point in tokens.points} == {100 * kept_tokens(r).value for r in drafted(frames)}


def test_the_front_is_what_nothing_beats(frames):
    results = drafted(frames)
    places = {r.cell_id: (gain(r).value, identical(r).value) for r in results}
    wanted = {
        one
        for one, (x, y) in places.items()
        if not any((a >= x and b >= y) and (a > x or b > y) for a, b in places.values())
    }
    assert front(results, identical) == wanted
    assert wanted


def result_at(template, x, y, *, key, broken=False):
    """A result at a place of the picture."""
    estimate = replace(template.nfe_reduction, value=x, low=None, high=None)
    fidelity = replace(template.fidelity, identical=wilson(y, 10))
    holds = False if broken else template.claim_holds
    return replace(template, cell_id=key, nfe_reduction=estimate, fidelity=fidelity, claim_holds=holds)


def test_equal_places_share_the_front_and_broken_or_incomplete_cells_beat_nothing(frames):
    template = drafted(frames)[0]
    a, twin, lower = (result_at(template, x, y, key=key) for x, y, key in ((2, 9, "a"), (2, 9, "b"), (2, 8, "c")))
    assert front([a, twin, lower], identical) == {"a", "b"}
    best = result_at(template, 9, 10, key="best", broken=True)
    few = replace(result_at(template, 9, 10, key="few"), n_expected=99)
    assert front([a, twin, lower, best, few], identical) == {"a", "b"}
    assert front([], identical) == set()
    assert front([best], identical) == set()


def test_failed_cells_are_rows_with_the_reason_and_enter_no_sentence():
    section = info(framed(sweep(CELLS, prompts=4, timed=0, faults=Faults(empty_cells=1))))
    (table,) = parts(section, Table)
    failed = [row for _, rows in table.groups for row in rows if row[8].text == "failed or incomplete"]
    assert [(row[5].text, row[6].text) for row in failed] == [("0 of 4", "n/a")]
    lines = [text for part in parts(section, Lines) for _, text in part.lines]
    assert lines[0].startswith("tiny-sdar, T = 0: 1 cell of 16 failed, incomplete or broken")
    every = info(framed(sweep(CELLS, prompts=4, timed=0, faults=Faults(failed=1))))
    assert [text for part in parts(every, Lines) for level, text in part.lines if level == "note"] == []
    assert not any(point.front for chart in parts(every, Chart) for point in chart.points)


def test_sentences_count_each_prompt_once_for_all_taus_and_budgets(frames):
    lines = [text for part in parts(info(frames), Lines) for _, text in part.lines]
    assert [line.partition(" (lossy)")[0] for line in lines] == [
        f"tiny-sdar, T = 0: {rule}" for rule in ("subset", "cut", "product")
    ]
    results, rows = drafted(frames), frames.rows
    pairs = [
        (rows[one.cell_id].generations[i], rows[other.cell_id].generations[i])
        for one, other in itertools.product(results, results)
        if one.cell.drafter.acceptance == "product" and other.cell == one.cell.exactly()
        for i in range(10)
    ]
    assert len(pairs) == 40
    ratio = sum(b.counters.nfe for _, b in pairs) / sum(a.counters.nfe for a, _ in pairs)
    same = sum(a.output_ids == b.output_ids for a, b in pairs)
    assert "; 10 prompts)" in lines[2]
    assert f"({same} of 40;" in lines[2]
    assert f"{ratio if ratio >= 1 else 1 / ratio:.2f} times" in lines[2] or "as many forwards as exact" in lines[2]


def test_gain_has_two_decimals_wherever_it_stands(frames):
    """In the cells' table, in the numbers below a picture, and in the name of a mark: `3` is `3.00`, 2.3614 is 2.36."""
    section = info(frames)
    (table,), chart = parts(section, Table), parts(section, Chart)[0]
    wanted = sorted(f"{gain(result).value:.2f}" for result in drafted(frames))
    ((_, rows),), ((_, below),) = table.groups, numbers(chart).groups
    place = [head.name for head in table.heads].index("Gain")
    assert sorted(row[place].text for row in rows) == sorted(row[2].text for row in below) == wanted
    named = [
        row["name"].partition(" fewer forwards) ")[2].partition(":")[0] for row in picture(chart)["data"]["values"]
    ]
    assert set(named) == set(wanted)


def test_one_cell_s_share_has_one_interval_and_a_pooled_one_names_its_unit(frames):
    """Wilson's of one cell, by its formula with z = 1.96; of four cells the prompts are the units, which is said."""
    alone = info(framed(sweep(set_cells(BASE), prompts=4, timed=0)))
    (table,) = parts(alone, Table)
    heads = [head.name for head in table.heads]
    shown = {row[heads.index("Rule")].text: row[heads.index("Identical")] for _, rows in table.groups for row in rows}
    for line in (text for part in parts(alone, Lines) for _, text in part.lines):
        rule = line.partition(": ")[2].partition(" (lossy)")[0]
        equal = int(line.partition(" of outputs are identical (")[2].partition(" of 4")[0])
        share, z2 = equal / 4, 1.959964**2
        half = math.sqrt(z2 * share * (1 - share) / 4 + z2 * z2 / 64) / (1 + z2 / 4)
        middle = (share + z2 / 8) / (1 + z2 / 4)
        ends = f"{100 * (middle - half):z.1f} \u2013 {100 * (middle + half):.1f}"
        assert shown[rule].interval == ends
        assert f"identical ({equal} of 4; {ends}, Wilson)" in line
    assert all(", prompts as units)" in text for part in parts(info(frames), Lines) for _, text in part.lines)


def test_only_exact_or_only_the_standard_rule_is_no_study():
    exact = set_cells(BASE, drafters=by_rule()[:1])
    assert info(framed(sweep(exact, prompts=2, timed=0))) is None
    assert info(framed(sweep(grid(tasks=("a",)), prompts=2, timed=0))) is None


def test_several_drafters_are_named_beside_tau():
    frames = framed(sweep(set_cells(BASE, drafters=rungs()), prompts=3, timed=0))
    names = {rest_of(result, drafted(frames)) for result in drafted(frames)}
    assert names == {f"{name}, tau 0.9" for name in ("sets", "floor", "cross", "fresh", "product")}


def test_independent_noise_has_rows_and_no_marks():
    base = grid(tasks=("a",), budgets=(8,), temperatures=(1.0,), noises=("independent",))[0]
    section = info(framed(sweep(set_cells(base), prompts=3, timed=0)))
    assert parts(section, Chart) == []
    (table,) = parts(section, Table)
    assert {row[7].text for _, rows in table.groups for row in rows} == {"drawn anew"}


def test_the_picture_draws_the_front_and_names_its_cells_alone(frames):
    chart = parts(info(frames), Chart)[0]
    rows = picture(chart)["data"]["values"]
    best = [point for point in chart.points if point.front]
    assert sorted(row["front"] for row in rows if row["front"] is not None) == sorted(point.x for point in best)
    said = [row["said"] for row in rows if row["said"]]
    assert len(said) == len({(point.facet, point.x, point.y) for point in best})
    assert all(any(text.startswith((point.text, point.series.split()[0])) for point in best) for text in said)
    assert all(row["low"] >= frame_of(chart)[0] for row in rows)
    drawn = svg(chart)
    assert drawn == svg(chart)
    assert all(text in drawn for text in said)
    assert chart.title.endswith("marks of different taus are not to be read as speed against each other.")


def test_what_decides_stands_before_the_details_so_that_no_page_is_too_narrow_for_it(frames):
    (table,) = parts(info(frames), Table)
    assert [head.name for head in table.heads][6:9] == ["Gain", "Identical", "Front"]
