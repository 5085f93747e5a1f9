"""The pictures of a temperature study: forwards, agreement of stale draws, and quality, each against T."""

from collections.abc import Iterable, Mapping

from reports.labels import Labels
from reports.model import Chart, Point
from reports.temperature_findings import lost_from, quality
from sweeps.aggregate import CellResult
from sweeps.draws import bound_holds_for
from sweeps.statistics import Estimate

DRAFT_FREE, BOUND, ARGMAX, CORRECT = "draft-free", "bound for coupled", "argmax drawn", "correct"
MOST_PANELS = 12  # more are too small to read and make the page heavy
SERIES = (DRAFT_FREE, "coupled", "independent", BOUND, ARGMAX, CORRECT)


def charts(title: str, results: list[CellResult], labels: Labels) -> tuple[Chart, ...]:
    """The pictures that have a point; `results` have coupled noise first, then ascending temperatures."""
    budgets = len({r.cell.drafter.budget for r in results if not r.cell.is_baseline}) > 1
    tasks = {panel(result, labels, budgets): labels.task[result.cell_id] for result in results}
    lost = {task: lost_from(quality(r for r in results if labels.task[r.cell_id] == task)) for task in tasks.values()}
    grey = {facet: start for facet, task in (tasks | {task: task for task in lost}).items() if (start := lost[task])}
    made = (
        chart(f"Forwards a prompt (NFE): {title}", "NFE", nfe_points(results, labels, budgets), grey),
        chart(
            f"Stale draw equals the token: {title}", "% of commits", agreement_points(results, labels, budgets), grey
        ),
        chart(f"Quality, draft-free: {title}", "%", quality_points(results, labels), grey),
    )
    return tuple(one for one in made if one.points)


def chart(title: str, y: str, points: tuple[Point, ...], grey: Mapping[str, float]) -> Chart:
    """A picture over temperature; a series looks the same in all of them, a panel is grey where answers are lost."""
    panels = list(dict.fromkeys(point.facet for point in points))
    points = tuple(point for point in points if point.facet in panels[:MOST_PANELS])
    levels = {(point.facet, point.x) for point in points}
    notes = ["Grey: at most half of the right answers are left."] if grey else []
    notes += [f"{len(panels) - MOST_PANELS} more panels: see the table."] if len(panels) > MOST_PANELS else []
    return Chart(
        title=". ".join((title, *notes[:1])) + "".join(f" {note}" for note in notes[1:]),
        x="temperature",
        y=y,
        points=points,
        shape="lines",
        series=SERIES,
        facet="panel",
        of="Series",
        digits=1,
        zero=True,
        grey=tuple(start for start in grey.items() if start in levels),
    )


def nfe_points(results: list[CellResult], labels: Labels, budgets: bool) -> tuple[Point, ...]:
    """One panel a task and method: draft-free, coupled, independent."""
    points: list[Point] = []
    for result in (result for result in results if not result.cell.is_baseline):
        for noise in modes(result):
            points += point(panel(result, labels, budgets), noise, result, result.nfe)
    panels = {panel(r, labels, budgets): labels.task[r.cell_id] for r in results if not r.cell.is_baseline}
    free: dict[tuple[str, float], CellResult] = {}
    for result in (result for result in results if result.cell.is_baseline):
        free.setdefault((labels.task[result.cell_id], result.cell.decode.temperature), result)  # coupled ones first
    for facet, of_task in panels.items():
        for (task, _), result in free.items():
            points += point(facet, DRAFT_FREE, result, result.nfe) if task == of_task else []
    return in_order(points)


def agreement_points(results: list[CellResult], labels: Labels, budgets: bool) -> tuple[Point, ...]:
    """One panel a task and method: agreement of both modes, and the bound where the paper gives one."""
    points: list[Point] = []
    for result in results:
        facet = panel(result, labels, budgets)
        for noise in modes(result):
            points += point(facet, noise, result, result.draws.agreement, 100)
        if bound_holds_for(result.cell.decode):
            points += point(facet, BOUND, result, result.draws.bound, 100)
    return in_order(points)


def quality_points(results: list[CellResult], labels: Labels) -> tuple[Point, ...]:
    """One panel a task: how often the argmax is drawn and how often the answer is right, of the draft-free cells."""
    points: dict[tuple[str, str, float], Point] = {}
    for result in results:  # coupled ones come first; both modes sample one distribution
        if result.cell.is_baseline:
            for series, estimate in ((ARGMAX, result.draws.argmax), (CORRECT, result.correct)):
                for made in point(labels.task[result.cell_id], series, result, estimate, 100):
                    points.setdefault((made.facet, made.series, made.x), made)
    return in_order(points.values())


def panel(result: CellResult, labels: Labels, budgets: bool) -> str:
    """The name of a panel: task, method, and the budget where there are several."""
    budget = f", D = {labels.budget(result.cell)}" if budgets and not result.cell.is_baseline else ""
    return f"{labels.task[result.cell_id]}: {labels.method[result.cell_id]}{budget}"


def modes(result: CellResult) -> tuple[str, ...]:
    """The noise modes that a cell stands for: both where nothing is drawn."""
    return ("coupled", "independent") if result.cell.decode.temperature == 0 else (result.cell.decode.noise,)


def point(facet: str, series: str, result: CellResult, estimate: Estimate, scale: float = 1.0) -> list[Point]:
    """The mark of one cell, where it has a value."""
    if estimate.value is None:
        return []
    low, high = (None if end is None else scale * end for end in (estimate.low, estimate.high))
    y = scale * estimate.value
    return [Point(facet=facet, series=series, x=result.cell.decode.temperature, y=y, low=low, high=high)]


def in_order(points: Iterable[Point]) -> tuple[Point, ...]:
    """Points by panel, series and place."""
    return tuple(sorted(points, key=lambda p: (p.facet, SERIES.index(p.series), p.x)))
