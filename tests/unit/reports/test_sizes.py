"""Targets by size: who stands beside whom, what the tables, pictures and sentences say of times worked out by hand."""

from dataclasses import replace

import pytest

from reports.labels import labels_of
from reports.marks import BROKEN, GATE
from reports.model import Chart, Table
from reports.render import numbers
from reports.sections.sizes import info
from reports.size_charts import DRAFTER, FORWARD, REST
from reports.size_groups import parameters, size_groups
from tests.synthetic import Faults, grid, sweep
from tests.unit.reports.conftest import framed

ONE = {"tasks": ("tiny-arith",), "temperatures": (0.0,), "gammas": ()}
SMALL, LARGE = "tiny-sdar1", "tiny-sdar"


def timed(made, parts):
    """`made` with times set by hand: `parts(cell, index)` gives milliseconds of a round (drafter, forward, walk, rest)
    and of a draft-free round (forward, all of it).
    """

    def retimed(cell, item, row):
        drafter, forward, walk, rest, plain_forward, plain = parts(cell, row.prompt_index)
        rounds, repeats = row.nfe / 1000, len(row.variant_seconds)
        return replace(
            row,
            variant_seconds=((drafter + forward + walk + rest) * rounds,) * repeats,
            baseline_seconds=(plain * row.baseline_nfe / 1000,) * repeats,
            drafter_seconds=drafter * rounds * repeats,
            forward_seconds=forward * rounds * repeats,
            walk_seconds=walk * rounds * repeats,
            baseline_forward_seconds=plain_forward * row.baseline_nfe / 1000 * repeats,
        )

    cells = {job.cell_id: job.cell for job in made.jobs}
    results = {
        cell_id: tuple(
            replace(item, timings=tuple(retimed(cells[cell_id], item, row) for row in item.timings)) for item in items
        )
        for cell_id, items in made.results.items()
    }
    return framed(replace(made, results=results))


def parts(cell, index):
    """A small target, of whose rounds the drafter takes a third, and a large one, of whose it takes a tenth."""
    wobble = 1 + 0.01 * index
    if cell.target.name == SMALL:
        return 3 * wobble, 5.0, 0.5, 0.5, 2.0, 2.5
    return 3 * wobble, 25.0, 1.0, 1.0, 8.0, 9.0


@pytest.fixture(scope="module")
def frames():
    return timed(sweep(grid(targets=2, **ONE), prompts=6, timed=6), parts)


def tables(frames):
    found = [part for group in info(frames).groups for part in group.parts if isinstance(part, Table)]
    return {table.caption.partition(" by size")[0]: table for table in found}


def rows(table):
    return [
        {f"{head.name} {head.unit}".strip(): value for head, value in zip(table.heads, row, strict=True)}
        for _, own in table.groups
        for row in own
    ]


def test_rows_of_a_method_and_budget_stand_side_by_side_the_smallest_first(frames):
    for table in tables(frames).values():
        who = [(row["Method"].text, row["D"].text, row["Target"].text) for row in rows(table)]
        assert who == [(m, d, t) for m in ("ssd", "spot") for d in ("4", "8", "20") for t in (SMALL, LARGE)]


def test_parts_are_those_that_were_measured(frames):
    small, large = rows(tables(frames)["Parts of a round"])[:2]
    assert (small["Verification ms"].text, small["Walk ms"].text, small["Rest ms"].text) == ("5.00", "0.50", "0.50")
    assert (large["Verification ms"].text, large["Walk ms"].text, large["Rest ms"].text) == ("25.00", "1.00", "1.00")
    shares = [float(large[f"{name} % of round"].text) for name in ("Drafter", "Verification", "Walk", "Rest")]
    assert sum(shares) == pytest.approx(100, abs=0.2)
    assert shares[1] == pytest.approx(100 * 25 / 30.07, abs=0.2)
    assert small["Drafter % of round"].interval
    assert float(small["Round ms"].text) == pytest.approx(float(small["Drafter ms"].text) + 6.0, abs=0.011)


def test_the_cost_is_measured_and_the_break_even_predicted(frames):
    """With NFE reduction r the rounds may take 9 r ms each on the large target; 5 + ms of them are not verification."""
    labels = labels_of(frames.results)
    cost = {(r["Method"].text, r["D"].text, r["Target"].text): r for r in rows(tables(frames)["Cost of verification"])}
    for result in frames.results:
        if result.cell.is_baseline:
            continue
        key = labels.method[result.cell_id], str(result.cell.drafter.budget), result.cell.target.name
        small = result.cell.target.name == SMALL
        assert cost[key]["Cost ×"].text == ("2.50" if small else "3.12")
        reduction, other = result.nfe_reduction.value, result.round_time.drafter.value + (1.0 if small else 2.0)
        whole, forward = (2.5, 2.0) if small else (9.0, 8.0)
        wanted = (reduction * whole - other) / forward
        assert float(cost[key]["Break-even ×, predicted"].text) == pytest.approx(wanted, abs=0.006)
        assert result.round_time.break_even.how == "predicted"
    assert "predicted" in info(frames).lead


def test_forwards_and_throughput_stand_in_columns_of_their_own(frames):
    heads = [head.name for head in tables(frames)["Forwards and throughput"].heads]
    assert {"NFE", "NFE reduction", "Throughput ratio", "Parameters"} <= set(heads)
    assert {row["Parameters"].text for row in rows(tables(frames)["Forwards and throughput"])} == {"524 k", "2.10 M"}


def test_the_picture_stacks_the_parts_with_draft_free_beside(frames):
    (chart,) = [part for group in info(frames).groups for part in group.parts if isinstance(part, Chart)]
    assert (chart.shape, chart.columns, chart.series) == ("bars", 2, (DRAFTER, FORWARD, REST))
    facets = list(dict.fromkeys(point.facet for point in chart.points))
    assert facets == [f"{target}: {method}" for method in ("ssd", "spot") for target in (SMALL, LARGE)]
    found = {(p.facet, p.x, p.series): p.y for p in chart.points}
    assert found[f"{SMALL}: spot", 0, FORWARD] == pytest.approx(2.0)
    assert found[f"{SMALL}: spot", 0, REST] == pytest.approx(0.5)
    assert (f"{SMALL}: spot", 0, DRAFTER) not in found
    assert found[f"{LARGE}: spot", 8, FORWARD] == pytest.approx(25.0)
    assert found[f"{LARGE}: spot", 8, REST] == pytest.approx(2.0)
    assert found[f"{LARGE}: spot", 8, DRAFTER] == pytest.approx(3.07, abs=0.02)


def test_sentences_hold_the_smallest_against_the_largest(frames):
    forwards, a_round, time, *_ = info(frames).findings
    assert forwards.startswith("ssd, forwards: NFE reduction 1.")
    assert "on tiny-sdar1 (524 k) and" in forwards
    assert "ssd, a round: 33." in a_round
    assert "smaller in 3, larger in 0 of 3 comparisons (intervals apart)" in a_round
    assert "a verification costs 2.50 on tiny-sdar1 (524 k) and 3.12 on tiny-sdar (2.10 M) draft-free forwards" in time
    assert "(predicted) below" in time
    assert "slower in 3 of 3 timings on tiny-sdar1" in time
    assert not any("throughput" in text or "faster" in text for text in info(frames).findings if "forwards:" in text)


def test_equal_shares_are_no_difference():
    same = timed(sweep(grid(targets=2, **ONE), prompts=6, timed=6), lambda cell, i: (3 + i / 10, 5, 1, 1, 2, 3))
    assert "smaller in 0, larger in 0 of 3 comparisons" in info(same).findings[1]


def test_doubtful_timings_are_marked_and_left_out_of_sentences_about_time():
    noisy = framed(sweep(grid(targets=2, **ONE), prompts=4, timed=3, faults=Faults(noisy=True)))
    section = info(noisy)
    lines = [text for group in section.groups[:1] for part in group.parts for _, text in part.lines]
    assert "12 of 12 timings failed a gate and are not counted in times." in lines
    assert [text for text in section.findings if ", a round:" in text or ", time:" in text] == []
    timed_heads = {"Round ms", "Drafter % of round", "Cost ×", "Break-even ×, predicted", "Throughput ratio ×"}
    for table in tables(noisy).values():
        for row in rows(table):
            for head in timed_heads & row.keys():
                assert row[head].text.endswith(GATE), head
    (chart,) = [part for group in section.groups for part in group.parts if isinstance(part, Chart)]
    assert all(GATE in point.mark for point in chart.points)


def test_a_broken_method_has_a_cross_in_every_row_and_no_sentence():
    made = sweep(grid(targets=2, **ONE), prompts=4, timed=4)
    ssd = {job.cell_id for job in made.jobs if job.cell.drafter.kind == "ssd"}

    def worse(row):
        return replace(row, output_ids=(*row.output_ids[:-1], row.output_ids[-1] + 1))

    results = {
        cell_id: tuple(
            replace(item, generations=tuple(map(worse, item.generations))) if cell_id in ssd else item for item in items
        )
        for cell_id, items in made.results.items()
    }
    frames = framed(replace(made, results=results))
    for table in tables(frames).values():
        for row in rows(table):
            assert (BROKEN in row["Method"].text) == row["Method"].text.startswith("ssd")
    (chart,) = [part for group in info(frames).groups for part in group.parts if isinstance(part, Chart)]
    for _, own in numbers(chart).groups:
        for facet, _, _, value, _ in own:
            assert (BROKEN in value.text) == facet.text.endswith("ssd")
    assert not any(text.startswith("ssd") for text in info(frames).findings)


def test_only_sizes_of_one_family_that_differ_in_nothing_else_are_compared():
    cells = grid(targets=2, **ONE)

    def changed(**target):
        """The smaller target with something else about it."""
        return tuple(
            replace(cell, target=replace(cell.target, **target)) if cell.target.name == SMALL else cell
            for cell in cells
        )

    for other in ({"family": "Dream"}, {"dtype": "bfloat16"}, {"cache": "none"}, {"parameters": 2_097_152}):
        assert info(framed(sweep(changed(**other), prompts=3))) is None, other
    assert info(framed(sweep(changed(parameters=0), prompts=3))) is None
    assert info(framed(sweep(cells, prompts=3, timed=0))) is None
    assert info(framed(sweep(changed(revision="abc"), prompts=3))) is not None


def test_temperatures_and_seeds_are_groups_of_their_own():
    frames = framed(sweep(grid(targets=2, **{**ONE, "temperatures": (0.0, 1.0)}, seeds=(0, 1)), prompts=3))
    groups = size_groups(frames.results, labels_of(frames.results))
    assert [group.title for group in groups] == [f"T = {t}, seed {seed}" for t in (0, 1) for seed in (0, 1)]
    assert all(group.targets == (SMALL, LARGE) for group in groups)


def test_groups_with_other_targets_are_spoken_of_apart():
    """Two sizes in float32; the smallest of the second group, in bfloat16, is a third one."""
    cells = grid(targets=3, **{**ONE, "budgets": (4,)})
    plain = tuple(cell for cell in cells if cell.target.name != "tiny-sdar2")
    half = tuple(
        replace(cell, target=replace(cell.target, dtype="bfloat16")) for cell in cells if cell.target.name != SMALL
    )
    found = [text for text in info(framed(sweep(plain + half, prompts=4))).findings if text.startswith("ssd, forwards")]
    assert [text.count("tiny-sdar2 (131 k)") for text in found] == [0, 2]
    assert [text.count("tiny-sdar1 (524 k)") for text in found] == [2, 0]
    assert all(text.endswith("least to greatest of 1 comparison (4 prompts each).") for text in found)


def test_commit_rules_are_groups_of_their_own_and_spoken_of_apart():
    cells = grid(targets=2, **{**ONE, "budgets": (4,)})
    sets = tuple(replace(cell, decode=replace(cell.decode, commit="threshold", tau=0.9)) for cell in cells)
    frames = framed(sweep(cells + sets, prompts=4))
    titles = [group.title for group in size_groups(frames.results, labels_of(frames.results))]
    assert [title.endswith("commit rule threshold 0.9") for title in titles] == [False, True]
    found = [text.split(", forwards")[0] for text in info(frames).findings if ", forwards" in text]
    assert [text for text in found if text.startswith("ssd")] == ["ssd", "ssd (threshold 0.9)"]


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (8_190_735_360, "8.19 B"),
        (1_720_574_976, "1.72 B"),
        (524_288, "524 k"),
        (26_000_000, "26.0 M"),
        (12, "12 weights"),
    ],
)
def test_parameters_have_three_figures(n, text):
    assert parameters(n) == text
