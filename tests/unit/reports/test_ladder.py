"""The section of the ladder: what it says of rungs that help and that do not, of lossy ones, of failed ones."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest

from reports.charts import svg
from reports.ladder_findings import verdict
from reports.model import Chart, Lines, Table
from reports.sections.ladder import info
from sweeps.means import arithmetic
from sweeps.statistics import Estimate, ratio_of_sums
from tests.set_rows import rungs, set_cells
from tests.synthetic import Faults, grid, sweep
from tests.unit.reports.conftest import framed

BASES = [cell for cell in grid(budgets=(8,), temperatures=(0.0,)) if cell.is_baseline]
CELLS = tuple(cell for base in BASES for cell in set_cells(base, drafters=rungs()))


@pytest.fixture(scope="module")
def frames():
    return framed(sweep(CELLS, prompts=12, timed=4))


@pytest.fixture(scope="module")
def section(frames):
    return info(frames)


def parts(section, kind):
    return [part for part in section.groups[0].parts if isinstance(part, kind)]


def by_name(table, heading):
    """The rows under a heading, by rung."""
    heads = [head.name for head in table.heads]
    rows = dict(table.groups)[heading]
    return {row[0].text: dict(zip(heads, row, strict=True)) for row in rows}


def lines(section):
    return [text for part in parts(section, Lines) for _, text in part.lines]


def test_a_group_is_a_ladder_of_all_tasks_and_the_paper_s_figures_close_it(section):
    assert [group.title for group in section.groups] == [
        "tiny-sdar, T = 0, commit rule threshold 0.9, D = 8",
        "The paper's ladder, for SDAR-8B (arXiv 2610.22543)",
    ]
    costs, outputs = parts(section, Table)
    tasks = ["tiny-arith", "tiny-code"]
    assert [name for name, _ in costs.groups] == [*tasks, "Arithmetic mean of the tasks", "Geometric mean of the tasks"]
    assert [name for name, _ in outputs.groups] == [*tasks, "Prompts of all tasks together"]
    assert all(len(rows) == 7 for _, rows in (*costs.groups, *outputs.groups))


def test_numbers_are_those_of_the_cells(section, frames):
    costs, outputs = parts(section, Table)
    for result in frames.results:
        if result.cell.drafter.name != "fresh":
            continue
        row = by_name(costs, result.cell.task.name)["+ draft refresh"]
        assert row["Over standard"].text == f"{result.pace.ratio.value:.2f}"
        assert row["Got"].text == "two links"
        assert row["NFE reduction"].text == f"{result.nfe_reduction.value:.2f}"
        kept = by_name(outputs, result.cell.task.name)["+ draft refresh"]
        assert (kept["Identical to threshold"].text, kept["Claim"].text) == ("100.0", "lossless")
        assert kept["First difference"].text == "\u2013"
    free = [result for result in frames.results if result.cell.decode.commit == "threshold" and result.cell.is_baseline]
    row = by_name(costs, "Arithmetic mean of the tasks")["threshold decoding"]
    assert row["Over standard"].text == f"{arithmetic([result.pace.ratio for result in free]).value:.2f}"
    assert row["Got"].text == "direct"
    assert by_name(costs, "tiny-arith")["standard decoding"]["Over standard"].text == "1.00"


def test_lossy_rungs_are_hollow_and_say_so_and_no_other_is(section):
    charts = parts(section, Chart)
    assert [chart.title.partition(":")[0] for chart in charts] == [
        "Throughput over standard decoding",
        "Forwards a prompt",
    ]
    for chart in charts:
        assert {point.series for point in chart.points if point.open} == {"+ product, max-commit"}
        assert {point.text for point in chart.points if point.open} == {"lossy"}
        assert {point.text for point in chart.points if not point.open} == {"draft-free", "lossless"}
        assert {point.facet for point in chart.points} == {"tiny-arith", "tiny-code", "mean of the tasks"}
        drawn = svg(chart)
        assert drawn.count(">lossy<") == 3
        assert "stroke-dasharray" in drawn
    for table in parts(section, Table):
        claims = {row[0].text: row[1].text for _, rows in table.groups for row in rows}
        assert [name for name, claim in claims.items() if claim == "lossy"] == ["+ product, max-commit"]


def test_every_drafted_rung_is_told_to_help_or_not(section):
    said = lines(section)
    for name in ("+ set drafter and tree", "+ mass floor 0.1", "+ cross-block", "+ draft refresh"):
        (text,) = [line for line in said if line.startswith(f"{name}: ")]
        assert ": helps: forwards " in text or ": does not help here: forwards " in text
        assert "; throughput " in text
    assert any(line.startswith("+ set drafter and tree: helps: forwards are fewer (ratio ") for line in said)
    assert any(line.startswith("Lossless: up to the rung ") and "one a block would be" in line for line in said)
    (lossy,) = [line for line in said if " against the same with the exact rule: " in line]
    assert lossy.startswith("+ product, max-commit (lossy)")
    assert "identical outputs" in lossy
    assert "tiny-code" in lossy.partition("Right answers")[2]


def test_a_step_that_changes_nothing_is_no_help():
    twice = (replace(rungs()[0], name="one"), replace(rungs()[0], name="two", cross_block=True))
    made = sweep(set_cells(BASES[0], drafters=twice), prompts=4, timed=0)
    one, two = [job.cell_id for job in made.jobs if not job.cell.is_baseline]
    alike = tuple(replace(item, cell_id=two, item_id=item.item_id.replace(one, two)) for item in made.results[one])
    said = lines(info(framed(replace(made, results=made.results | {two: alike}))))
    (text,) = [line for line in said if line.startswith("+ cross-block: ")]
    assert text.startswith("+ cross-block: does not help here in forwards: forwards stay as they are (ratio 1.000, ")
    assert text.endswith("; of throughput nothing can be said.")


def between(low, high, n=9):
    return Estimate(value=(low + high) / 2, low=low, high=high, n=n)


FEWER, MORE, SAME = between(1.1, 1.3), between(0.7, 0.9), between(0.9, 1.2)
FEW = ratio_of_sums([20], [13])


@pytest.mark.parametrize(
    ("forwards", "pace", "level", "said"),
    [
        (FEWER, None, "good", "helps: forwards are fewer"),
        (FEWER, MORE, "good", "helps: forwards are fewer"),  # and slower, which is said behind it
        (MORE, FEWER, "good", "helps: forwards are more"),  # what a mass floor is for
        (MORE, None, "warning", "does not help here in forwards: forwards are more"),
        (MORE, SAME, "warning", "does not help here: forwards are more"),
        (SAME, MORE, "warning", "does not help here: forwards differ by no more than chance may give"),
        (SAME, SAME, "note", "does not help here: forwards differ by no more than chance may give"),
        (between(1.0, 1.0), None, "note", "does not help here in forwards: forwards stay as they are"),
        (SAME, FEW, "note", "does not help here in forwards: forwards differ by no more than chance may give"),
        (FEW, MORE, "warning", "does not help here in throughput: forwards cannot be judged"),
        (FEW, FEWER, "good", "helps: forwards cannot be judged"),
    ],
)
def test_a_step_helps_where_it_saves_forwards_or_time(forwards, pace, level, said):
    found, text = verdict(forwards, pace)
    assert (found, text[: len(said)]) == (level, said)
    assert ("nothing can be said" in text) is (pace is None)
    assert ("cannot be judged" in text) is (FEW in (forwards, pace))


def test_of_a_step_without_any_interval_nothing_is_said_but_that():
    resting = "1.538, no interval: fewer than 3 prompts; 1 prompt"
    assert verdict(FEW, None) == ("note", f"cannot be judged (forwards ratio {resting})")
    assert verdict(FEW, FEW) == ("note", f"cannot be judged (forwards ratio {resting}; throughput ratio {resting})")
    swapped = ratio_of_sums([3, 5], [5, 3])  # equal sums of prompts that differ
    assert verdict(swapped, None)[1].startswith("cannot be judged (forwards ratio 1.000, ")


@pytest.mark.parametrize("prompts", [1, 2])
def test_with_too_few_prompts_a_task_each_mean_says_so_and_one_prompt_judges_no_step(prompts):
    said = lines(info(framed(sweep(CELLS[: len(CELLS) // (3 - prompts)], prompts=prompts, timed=0))))
    assert not any("all prompts agree" in line for line in said)
    tops = [line for line in said if line.startswith(("Lossless", "Lossy"))]
    why = " in 2 tasks; 4 prompts" if prompts == 2 else "; 1 prompt"
    assert len(tops) == 2
    assert all(f"(no interval: fewer than 3 prompts{why})" in line for line in tops)
    if prompts == 1:
        steps = [line for line in said if line.startswith("+ ") and " against the same " not in line]
        assert len(steps) == 5
        assert all(": cannot be judged (forwards ratio " in line for line in steps)


def test_the_fewest_follow_each_rung_s_own_cross_block_option(section, frames):
    """The same steps, by hand: a block of c steps takes 1 + ceil((c - 1) / 9) forwards, crossing ceil(c / 9)."""
    (costs, _) = parts(section, Table)
    rows = by_name(costs, "tiny-arith")
    free = next(r for r in frames.results if r.cell.is_baseline and r.cell.decode.commit == "threshold")
    alone, crossing = [], []
    for row in frames.rows[free.cell_id].generations.values():
        places, starts = list(row.order), itertools.accumulate(row.step_sizes[:-1], initial=0)
        blocks = Counter((row.prompt_tokens + places[i]) // free.cell.decode.block_length for i in starts)
        steps = [blocks[block] for block in sorted(blocks)]
        alone.append(sum(1 + math.ceil((c - 1) / 9) for c in steps))
        crossing.append(1 + sum(math.ceil(c / 9) for c in [*steps[:-1], steps[-1] - 1]))
    assert sum(crossing) < sum(alone)
    assert rows["+ mass floor 0.1"]["Fewest"].text == f"{sum(alone) / 12:.1f}"
    assert rows["+ cross-block"]["Fewest"].text == f"{max(sum(crossing), 0) / 12:.1f}"
    assert "with cross-block drafts where the rung has them" in section.lead


def test_without_the_standard_rule_the_ladder_stands_on_threshold_decoding_and_says_so(section):
    """The same rows but for the standard rule's: what is over threshold decoding is the same number."""
    cells = [cell for base in BASES for cell in set_cells(base, drafters=rungs(), standard=False)]
    alone = info(framed(sweep(tuple(cells), prompts=12, timed=4)))
    assert any(line.startswith("The standard rule was not run: throughput is over threshold") for line in lines(alone))
    assert not any("was not run" in line for line in (*lines(section), *alone.findings, *section.findings))
    for table, whole in zip(parts(alone, Table), parts(section, Table), strict=True):
        assert not {"Over standard", "Got", "Less standard", "Identical to standard"} & {h.name for h in table.heads}
        for heading, rows in table.groups:
            assert [row[0].text for row in rows][:2] == ["threshold decoding", "+ set drafter and tree"]
            other, first = by_name(whole, heading), next(iter(by_name(table, heading)))
            for name, row in by_name(table, heading).items():
                skipped = {"Timed", *(("Step: forwards", "Step: throughput") if name == first else ())}
                assert {k: v for k, v in row.items() if k not in skipped} == {
                    k: other[name][k] for k in row if k not in skipped
                }
    (pace, forwards) = parts(alone, Chart)
    assert pace.title.startswith("Throughput over threshold decoding: ")
    assert {point.y for point in pace.points if point.series == "threshold decoding"} == {1.0}
    assert len(pace.points) == len(forwards.points) == 3 * 6
    assert any("Throughput over threshold decoding: this rung " in line for line in lines(alone))
    noisy = info(framed(sweep(tuple(cells), prompts=6, timed=3, faults=Faults(noisy=True))))
    assert any("failed a gate: nothing is said of throughput" in line for line in lines(noisy))
    marked = by_name(parts(noisy, Table)[0], "tiny-arith")["+ cross-block"]
    assert marked["Over threshold"].text.endswith("\u2020")
    assert marked["Step: throughput"].text.endswith("\u2020")


def test_drafters_of_another_budget_or_kind_are_named_as_ladders_of_their_own():
    free = set_cells(BASES[0], drafters=rungs()[:2])
    small = replace(rungs()[2], name="small", budget=4)
    other = replace(rungs()[0], name="series", kind="freedave", digest="")
    more = tuple(replace(free[1], drafter=replace(one, budget=budget)) for one, budget in ((small, 4), (other, 8)))
    section = info(framed(sweep((*free, *more), prompts=4, timed=0)))
    said = [
        [text for part in group.parts if isinstance(part, Lines) for _, text in part.lines] for group in section.groups
    ]
    assert "A ladder of its own, with budget 4, not 8: small." in said[0]
    assert "A ladder of its own, with kind freedave, not spot-sets: series." in said[0]
    assert "A ladder of its own, with budget 8, not 4: sets, floor." in said[1]
    both = info(framed(sweep(set_cells(BASES[0], budgets=(4, 8), drafters=rungs()[:2]), prompts=4, timed=0)))
    assert not any(
        "of its own" in text for g in both.groups for p in g.parts if isinstance(p, Lines) for _, text in p.lines
    )


def test_failed_and_missing_rungs_are_shown_and_enter_no_mean():
    section = info(framed(sweep(CELLS, prompts=6, timed=3, faults=Faults(empty_cells=1))))
    said = [text for part in parts(section, Lines) for level, text in part.lines if level == "warning"]
    (line,) = [text for text in said if text.startswith("+ set drafter and tree: missing")]
    assert "failed on tiny-arith;" in line
    costs, outputs = parts(section, Table)
    for table, heading in ((costs, "Arithmetic mean of the tasks"), (outputs, "Prompts of all tasks together")):
        row = by_name(table, heading)["+ set drafter and tree"]
        assert row["Claim"].text == "not averaged: incomplete or failed on tiny-arith"
        assert {value.text for name, value in row.items() if name not in ("Rung", "Claim")} == {"n/a"}
        assert by_name(table, heading)["+ mass floor 0.1"]["Claim"].text == "lossless"
    assert by_name(costs, "tiny-arith")["+ set drafter and tree"]["Prompts"].text == "0 of 6"
    assert by_name(costs, "tiny-code")["+ set drafter and tree"]["Prompts"].text == "6"
    for chart in parts(section, Chart):
        shown = {(point.facet, point.series) for point in chart.points}
        assert ("mean of the tasks", "+ set drafter and tree") not in shown
        assert ("tiny-arith", "+ set drafter and tree") not in shown
        assert ("tiny-code", "+ set drafter and tree") in shown


def test_a_broken_rung_is_crossed_and_enters_no_mean():
    section = info(framed(sweep(CELLS, prompts=6, timed=3, faults=Faults(bugs=1))))
    costs, _ = parts(section, Table)
    assert by_name(costs, "tiny-arith")["+ cross-block \u2717"]["Claim"].flag == "alarm"
    assert "not averaged" in by_name(costs, "Geometric mean of the tasks")["+ cross-block \u2717"]["Claim"].text
    assert not any(line.startswith(("Lossless: ", "+ cross-block: helps")) for line in lines(section))


def test_timings_in_doubt_are_marked_and_nothing_is_said_of_throughput():
    section = info(framed(sweep(CELLS, prompts=6, timed=3, faults=Faults(noisy=True))))
    costs, _ = parts(section, Table)
    row = by_name(costs, "tiny-arith")["+ cross-block"]
    assert row["Over standard"].text.endswith("\u2020")
    assert row["Over standard"].flag == "warning"
    assert any("failed a gate: nothing is said of throughput" in line for line in lines(section))
    assert not any("; throughput " in line for line in lines(section))


def test_rungs_that_are_equal_but_for_the_task_stand_together_and_seeds_apart():
    bases = [cell for cell in grid(budgets=(8,), temperatures=(1.0,), seeds=(0, 1)) if cell.is_baseline]
    section = info(
        framed(sweep(tuple(c for b in bases for c in set_cells(b, drafters=rungs()[:2])), prompts=4, timed=0))
    )
    titles = [group.title for group in section.groups[:-1]]
    assert titles == [f"tiny-sdar, T = 1, commit rule threshold 0.9, D = 8, seed {seed}" for seed in (0, 1)]


def test_the_step_from_a_broken_rung_is_crossed_and_in_no_mean():
    made = sweep(CELLS, prompts=6, timed=3)

    def broken(item):
        rows = (replace(row, counters=replace(row.counters, accepted=row.counters.drafted)) for row in item.generations)
        return replace(item, generations=tuple(rows))

    bad = {job.cell_id for job in made.jobs if job.cell.drafter.name == "floor"}
    results = {id: tuple(map(broken, items)) if id in bad else items for id, items in made.results.items()}
    section = info(framed(replace(made, results=results)))
    costs, _ = parts(section, Table)
    above, mean = (by_name(costs, name)["+ cross-block"] for name in ("tiny-arith", "Arithmetic mean of the tasks"))
    assert above["Step: forwards"].text.endswith(" \u2717")
    assert above["Step: forwards"].flag == "alarm"
    assert mean["Step: forwards"].text == "\u2013"
    assert mean["NFE reduction"].text != "n/a"
    assert not any(
        line.startswith(("+ cross-block: ", "+ mass floor 0.1: helps", "+ mass floor 0.1: does"))
        for line in lines(section)
    )
    assert any(line.startswith("+ draft refresh: ") for line in lines(section))
