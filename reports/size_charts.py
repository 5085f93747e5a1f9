"""The pictures of a size study: the time of a round as stacked bars, by budget, one panel a method and target.

The bar at 0 is draft-free decoding, timed beside the panel's own cells, so it carries their marks too. Panels of one
method stand in one row, the smallest target first, all on one scale.
"""

from collections import defaultdict

from reports import marks
from reports.frames import Frames
from reports.labels import Labels
from reports.model import Chart, Point
from reports.size_groups import SizeGroup, target
from sweeps.aggregate import CellResult
from sweeps.rounds import draft_free_rounds
from sweeps.statistics import Estimate

DRAFTER, FORWARD, REST = "drafter", "target forward", "walk and rest"
SERIES = (DRAFTER, FORWARD, REST)
MOST_PANELS = 12


def charts(group: SizeGroup, frames: Frames, labels: Labels) -> tuple[Chart, ...]:
    """One picture a task."""
    return tuple(chart(group, task, results, frames, labels) for task, results in group.by_task(labels))


def chart(group: SizeGroup, task: str, results: list[CellResult], frames: Frames, labels: Labels) -> Chart:
    """The picture of one task."""
    panels = defaultdict(list)
    for result in sorted(results, key=lambda r: labels.methods.index(labels.method[r.cell_id])):
        panels[labels.method[result.cell_id], target(result)].append(result)
    names = [key for method in labels.methods for name in group.targets if (key := (method, name)) in panels]
    points = [point for key in names[:MOST_PANELS] for point in panel(f"{key[1]}: {key[0]}", panels[key], frames)]
    more = f" {len(names) - MOST_PANELS} more panels: see the table." if len(names) > MOST_PANELS else ""
    return Chart(
        title=f"Time of a round: {task}, {group.title}.{more}",
        x="budget D (0: draft-free)",
        y="ms a round",
        points=tuple(points),
        shape="bars",
        series=SERIES,
        facet="target: method",
        of="Part",
        columns=len(group.targets),
    )


def panel(facet: str, results: list[CellResult], frames: Frames) -> list[Point]:
    """The bars of one method on one target."""
    whole, forward = draft_free_rounds([frames.rows[result.cell_id].timings for result in results])
    mark = marks.mark(*results, timed=True)
    points = []
    if whole.value is not None and forward.value is not None:
        points += [piece(facet, FORWARD, 0, forward, mark), difference(facet, 0, whole, (forward,), mark)]
    for result in results:
        time, budget, own = result.round_time, result.cell.drafter.budget, marks.mark(result, timed=True)
        points += [piece(facet, DRAFTER, budget, time.drafter, own), piece(facet, FORWARD, budget, time.forward, own)]
        points.append(difference(facet, budget, time.total, (time.drafter, time.forward), own))
    return points


def piece(facet: str, series: str, x: float, estimate: Estimate, mark: str) -> Point:
    """One piece of a bar."""
    assert estimate.value is not None, "a group holds timed cells only"
    return Point(facet=facet, series=series, x=x, y=estimate.value, low=estimate.low, high=estimate.high, mark=mark)


def difference(facet: str, x: float, whole: Estimate, parts: tuple[Estimate, ...], mark: str) -> Point:
    """What is left of a round, without an interval: the table has those of its parts."""
    left = (whole.value or 0.0) - sum(part.value or 0.0 for part in parts)
    return Point(facet=facet, series=REST, x=x, y=max(0.0, left), mark=mark)
