"""Results, means across tasks and curves: what is promised, what a mean rests on, what is worth a picture."""

from statistics import geometric_mean

import pytest

from reports.model import Chart, Table
from reports.sections import across, curves, headline
from sweeps.means import geometric
from tests.synthetic import grid, sweep
from tests.unit.reports.conftest import framed

ONE = {"tasks": ("tiny-arith",), "budgets": (8,), "temperatures": (0.0,)}


def table_of(info):
    return next(part for group in info.groups for part in group.parts if isinstance(part, Table))


def test_a_claim_of_the_distribution_is_not_shown_as_a_broken_promise_of_tokens():
    frames = framed(sweep(grid(**{**ONE, "temperatures": (1.0,)}, noises=("independent",)), prompts=4, timed=0))
    info = headline.info(frames)
    drafted = [row for _, rows in table_of(info).groups for row in rows if row[0].text != "draft-free"]
    assert drafted
    for row in drafted:
        assert row[-2].text == "distribution-exact"
        assert row[-1].text in {f"not promised ({equal}/4)" for equal in range(5)}
        assert row[-1].flag == ""
    assert "Not promised: " in info.lead
    assert "Not promised" not in headline.info(framed(sweep(grid(**ONE), prompts=4, timed=0))).lead


def test_two_prompts_give_no_interval_and_nothing_bold():
    frames = framed(sweep(grid(**ONE), prompts=2, timed=2))
    values = [value for _, rows in table_of(headline.info(frames)).groups for row in rows for value in row]
    assert not any(value.best for value in values)
    assert {row[3].interval for _, rows in table_of(headline.info(frames)).groups for row in rows} == {""}
    assert "fewer than 3 prompts" in headline.info(frames).lead


def test_a_mean_over_tasks_says_once_what_it_is_and_has_an_interval():
    frames = framed(sweep(grid(budgets=(8,), temperatures=(0.0,), gammas=()), timed=0))
    info = across.info(frames)
    table = table_of(info)
    for head in table.heads:
        words = f"{head.name} {head.unit}".lower().split()
        assert len(set(words)) == len(words), head
    ((_, rows),) = table.groups
    ssd = next(row for row in rows if row[0].text == "ssd")
    reductions = [r.nfe_reduction for r in frames.results if r.cell.drafter.name == "ssd"]
    assert ssd[3].text == f"{geometric_mean(r.value for r in reductions):.2f}"
    mean = geometric(reductions)
    assert ssd[3].interval == f"{mean.low:.2f} – {mean.high:.2f}"
    assert "over the prompts of these tasks" in info.lead


def test_seeds_are_averaged_within_their_task():
    frames = framed(sweep(grid(budgets=(8,), temperatures=(1.0,), gammas=(), seeds=(0, 1)), timed=0))
    ((_, rows),) = table_of(across.info(frames)).groups
    assert [row[2].text for row in rows] == ["2", "2"]
    by_task = {}
    for result in frames.results:
        if result.cell.drafter.name == "spot":
            by_task.setdefault(result.cell.task.name, []).append(result.nfe_reduction.value)
    expected = sum(sum(values) / 2 for values in by_task.values()) / 2
    spot = next(row for row in rows if row[0].text == "spot")
    assert spot[4].text == f"{expected:.2f}"
    assert spot[4].interval


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (grid(**ONE, gammas=())[:2], False),  # one method at one budget
        (grid(**{**ONE, "tasks": ("a", "b")}, gammas=())[::3] + grid(**ONE, gammas=())[1:2], False),
        (grid(**ONE, gammas=()), True),  # two methods
        ([cell for cell in grid(**{**ONE, "budgets": (4, 8)}, gammas=()) if cell.drafter.name != "spot"], True),
    ],
)
def test_one_method_at_one_budget_is_worth_no_picture(cells, shown):
    info = curves.info(framed(sweep(tuple(cells), prompts=4, timed=0)))
    assert (info is not None) == shown
    assert info is None or all(isinstance(part, Chart) for group in info.groups for part in group.parts)
