"""The pictures of a temperature study: forwards a token, agreement of stale draws, and quality, each against T.

Lengths differ between noise modes from T = 2 on, so forwards are shown for each generated token, as the findings
compare them; the table has NFE. By the standard rule draft-free decoding takes one forward a token by construction: a
rule, not a curve.
"""

from collections.abc import Iterable, Mapping, Sequence

from reports import marks
from reports.labels import Labels
from reports.model import Chart, Point
from reports.noise_modes import forwards_a_token, modes
from reports.temperature_quality import Quality
from sweeps.aggregate import CellResult
from sweeps.draws import bound_holds_for
from sweeps.statistics import Estimate

BOUND, ARGMAX, CORRECT = "bound for coupled", "argmax drawn", "correct"
PER_TOKEN = "forwards a token"
MOST_PANELS = 12  # more are too small to read and make the page heavy
SERIES = ("coupled", "independent", BOUND, ARGMAX, CORRECT)


def charts(title: str, results: list[CellResult], qualities: Sequence[Quality], labels: Labels) -> tuple[Chart, ...]:
    """The pictures that have a point; `results` have coupled noise first, then ascending temperatures."""
    budgets = len({r.cell.drafter.budget for r in results if not r.cell.is_baseline}) > 1
    grey = {quality.name: quality.lost_from for quality in qualities}
    for result in results:
        starts = [one.lost_from for one in qualities if one.task == labels.task[result.cell_id]]
        lost = [start for start in starts if start is not None]
        grey[panel(result, labels, budgets)] = max(lost) if lost and len(lost) == len(starts) else None
    greyed = {facet: start for facet, start in grey.items() if start is not None}
    agreement = agreement_points(results, labels, budgets)
    per_token = token_points(results, labels, budgets)
    rule = 1.0 if all(result.cell.decode.commit == "standard" for result in results) else None
    made = (
        chart(f"Forwards for each generated token: {title}", PER_TOKEN, per_token, greyed, rule),
        chart(f"Stale draw equals the token: {title}", "% of commits", agreement, greyed),
        chart(f"Quality, draft-free: {title}", "%", quality_points(qualities), greyed),
    )
    return tuple(one for one in made if one.points)


def chart(title: str, y: str, points: tuple[Point, ...], grey: Mapping[str, float], rule: float | None = None) -> Chart:
    """A picture over temperature; a series looks the same in all of them, a panel is grey where answers are lost.

    `rule` is what draft-free decoding takes by construction.
    """
    panels = list(dict.fromkeys(point.facet for point in points))
    points = tuple(point for point in points if point.facet in panels[:MOST_PANELS])
    levels = {(point.facet, point.x) for point in points}
    notes = [f"Dashed: draft-free, {rule:g} by construction."] if rule is not None else []
    notes += ["Grey: at most half of the right answers are left, beyond the interval."] if grey else []
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
        baseline=rule,
        digits=3 if y == PER_TOKEN else 1,
        zero=True,
        grey=tuple(start for start in grey.items() if start in levels),
    )


def token_points(results: list[CellResult], labels: Labels, budgets: bool) -> tuple[Point, ...]:
    """One panel a task and method: coupled and independent, lengths of texts apart; draft-free is a rule at 1."""
    points: list[Point] = []
    for result in (result for result in results if not result.cell.is_baseline):
        for noise in modes(result):
            temperature = result.cell.decode.temperature
            points += point(
                panel(result, labels, budgets), noise, temperature, forwards_a_token(result), mark=marks.mark(result)
            )
    return in_order(points)


def agreement_points(results: list[CellResult], labels: Labels, budgets: bool) -> tuple[Point, ...]:
    """One panel a task and method: agreement of both modes, and the bound where the paper gives one."""
    points: list[Point] = []
    for result in results:
        facet, temperature = panel(result, labels, budgets), result.cell.decode.temperature
        mark = marks.mark(result)
        for noise in modes(result):
            points += point(facet, noise, temperature, result.draws.agreement, 100, mark)
        if bound_holds_for(result.cell.decode):
            points += point(facet, BOUND, temperature, result.draws.bound, 100, mark)
    return in_order(points)


def quality_points(qualities: Sequence[Quality]) -> tuple[Point, ...]:
    """One panel a task: how often the argmax is drawn and how often the answer is right, of the draft-free cells."""
    points: list[Point] = []
    for quality in qualities:
        for level in quality.levels:
            for series, estimate in ((ARGMAX, level.argmax), (CORRECT, level.right)):
                points += point(quality.name, series, level.temperature, estimate, 100, level.mark)
    return in_order(points)


def panel(result: CellResult, labels: Labels, budgets: bool) -> str:
    """The name of a panel: task, method, and the budget where there are several."""
    budget = f", D = {labels.budget(result.cell)}" if budgets and not result.cell.is_baseline else ""
    return f"{labels.task[result.cell_id]}: {labels.method[result.cell_id]}{budget}"


def point(facet: str, series: str, x: float, estimate: Estimate, scale: float = 1.0, mark: str = "") -> list[Point]:
    """The mark of an estimate at temperature `x`, where it has a value."""
    if estimate.value is None:
        return []
    low, high = (None if end is None else scale * end for end in (estimate.low, estimate.high))
    return [Point(facet=facet, series=series, x=x, y=scale * estimate.value, low=low, high=high, mark=mark)]


def in_order(points: Iterable[Point]) -> tuple[Point, ...]:
    """Points by panel, series and place."""
    return tuple(sorted(points, key=lambda p: (p.facet, SERIES.index(p.series), p.x)))
