"""The pictures of a ladder: throughput over standard decoding and forwards a prompt, a bar a rung, a panel a task.

Rungs whose output may differ are hollow and say so; a tick is the fewest forwards in which its steps can be taken.
"""

from collections.abc import Callable, Iterator

from reports import marks
from reports.ladder_groups import LadderGroup, is_doubted, is_sound, key_of
from reports.ladder_tables import over_lowest
from reports.model import Chart, Point
from reports.text import TIMES
from sweeps.claims import Claim
from sweeps.ladder import Rung
from sweeps.means import arithmetic
from sweeps.statistics import Estimate, undefined

MEAN = "mean of the tasks"
MOST_PANELS = 9


def charts(group: LadderGroup) -> tuple[Chart, ...]:
    """The pictures that have a bar beside that of standard decoding."""
    lowest = "standard" if group.over_standard else "threshold"
    above = tuple(key for key in group.keys if group.rungs(key)[0].result.cell.decode.commit != "standard")
    made = (
        chart(
            group,
            group.keys,
            f"Throughput over {lowest} decoding",
            f"throughput over {lowest} ({TIMES})",
            over_lowest(group),
            lambda rung: undefined(),
            timed=True,
        ),
        chart(group, above, "Forwards a prompt", "NFE", lambda rung: rung.result.nfe, lambda rung: rung.least),
    )
    return tuple(one for one in made if len({point.series for point in one.points}) > 1)


def chart(
    group: LadderGroup,
    keys: tuple[str, ...],
    title: str,
    axis: str,
    read: Callable[[Rung], Estimate],
    least: Callable[[Rung], Estimate],
    *,
    timed: bool = False,
) -> Chart:
    """One picture of these rungs."""
    points = [
        point for task, ladder in group.ladders for point in of_task(group, task, ladder.rungs, read, least, timed)
    ]
    if len(group.ladders) > 1:
        points += of_all(group, read, least, timed)
    panels = list(dict.fromkeys(point.facet for point in points))
    more = len(panels) - MOST_PANELS
    points = [point for point in points if point.series in {group.names[key] for key in keys}]
    notes = [] if timed else ["Tick: the fewest for its steps."]
    notes += ["Hollow: lossy."] if any(point.open for point in points) else []
    notes += [f"{more} more panels: see the table."] if more > 0 else []
    return Chart(
        title=" ".join((f"{title}: {group.title}.", *notes)),
        x="rung",
        y=axis,
        points=tuple(point for point in points if point.facet in panels[:MOST_PANELS]),
        shape="rungs",
        series=tuple(group.names[key] for key in group.keys),
        of="Rung",
        baseline=1.0 if timed else None,
        text="Claim",
        least="" if timed else "Fewest for its steps",
    )


def of_task(
    group: LadderGroup,
    task: str,
    rungs: tuple[Rung, ...],
    read: Callable[[Rung], Estimate],
    least: Callable[[Rung], Estimate],
    timed: bool,
) -> Iterator[Point]:
    """The bars of one task."""
    for rung in rungs:
        mark = marks.mark(rung.result) + doubt(rung, timed)
        yield from bar(task, group.names[key_of(rung)], rung, read(rung), least(rung), mark)


def of_all(
    group: LadderGroup, read: Callable[[Rung], Estimate], least: Callable[[Rung], Estimate], timed: bool
) -> Iterator[Point]:
    """The bars of the mean over tasks, of the rungs that are sound on all."""
    for key in group.keys:
        rungs = group.rungs(key)
        if all(is_sound(rung.result) for rung in rungs):
            mark = next((found for rung in rungs if (found := doubt(rung, timed))), "")
            value, low = group.mean(key, read, arithmetic), group.mean(key, least, arithmetic)
            yield from bar(MEAN, group.names[key], rungs[0], value, low, mark)


def bar(facet: str, series: str, rung: Rung, value: Estimate, least: Estimate, mark: str) -> Iterator[Point]:
    """One bar, where it has a value."""
    if value.value is not None:
        cell = rung.result.cell
        yield Point(
            facet=facet,
            series=series,
            x=0.0,
            y=value.value,
            low=value.low,
            high=value.high,
            mark=mark,
            text="draft-free" if cell.is_baseline else rung.result.claim,
            open=rung.result.claim == Claim.LOSSY,
            least=least.value if cell.decode.commit == "threshold" else None,
        )


def doubt(rung: Rung, timed: bool) -> str:
    """The dagger of a throughput that rests on a timing which failed a gate; a bar without a value is not drawn."""
    return f" {marks.GATE}" if timed and is_doubted(rung) else ""
