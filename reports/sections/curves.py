"""NFE, NFE reduction and throughput ratio against the budget: one picture each, a panel a task, for each setting."""

from collections.abc import Callable

from reports import marks
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Chart, Group, Point, SectionInfo
from reports.text import TIMES, count
from sweeps.aggregate import CellResult
from sweeps.statistics import Estimate

MOST_SETTINGS = 8
TIMED = "Throughput ratio over draft-free"
MEASURES: tuple[tuple[str, str, Callable[[CellResult], Estimate], float | None], ...] = (
    ("Forwards a prompt (NFE)", "NFE", lambda result: result.nfe, None),
    ("NFE reduction over draft-free", f"NFE reduction ({TIMES})", lambda result: result.nfe_reduction, 1.0),
    (TIMED, f"throughput ratio ({TIMES})", lambda result: result.throughput.ratio, 1.0),
)


def info(frames: Frames) -> SectionInfo | None:
    """Three pictures a setting that has something to compare: several methods or several budgets."""
    labels = labels_of(frames.results)
    settings = [
        (setting, results) for setting, results in labels.by_setting(frames.results) if compares(results, labels)
    ]
    if not settings:
        return None
    groups = [
        Group(title=setting, parts=charts(setting, results, labels), folded=place >= 2)
        for place, (setting, results) in enumerate(settings[:MOST_SETTINGS])
    ]
    more = len(settings) - MOST_SETTINGS
    cuts = (
        (f"pictures of {count(more, 'more setting')}; their numbers are in report-data/cells.csv",) if more > 0 else ()
    )
    return SectionInfo(
        key="budget",
        title="Against the budget",
        lead="Whiskers are 95 % intervals over prompts. Every picture is followed by its numbers, and "
        "names below itself what cannot be relied on.",
        groups=tuple(groups),
        cuts=cuts,
    )


def compares(results: list[CellResult], labels: Labels) -> bool:
    """Whether cells with drafts and a number differ in method or budget: one dot on an axis shows nothing."""
    measured = [result for result in results if result.nfe.value is not None and not result.cell.is_baseline]
    return len({(labels.method[result.cell_id], result.cell.drafter.budget) for result in measured}) > 1


def charts(setting: str, results: list[CellResult], labels: Labels) -> tuple[Chart, ...]:
    """The pictures of one setting that have any point."""
    budgets = {result.cell.drafter.budget for result in results if not result.cell.is_baseline}
    made = []
    for title, axis, read, baseline in MEASURES:
        timed = title == TIMED
        found = (point_of(result, read(result), labels, timed=timed) for result in results)
        points = tuple(point for point in found if point is not None)
        if points:
            chart = Chart(
                title=f"{title}: {setting}",
                x="budget D" if len(budgets) > 1 else "method",
                y=axis,
                points=points,
                shape="lines" if len(budgets) > 1 else "dots",
                series=labels.methods,
                baseline=baseline,
            )
            made.append(chart)
    return tuple(made)


def point_of(result: CellResult, estimate: Estimate, labels: Labels, *, timed: bool) -> Point | None:
    """The mark of one cell; the draft-free cell is the rule, not a mark."""
    if result.cell.is_baseline or estimate.value is None:
        return None
    cell_id = result.cell_id
    return Point(
        facet=labels.task[cell_id],
        series=labels.method[cell_id],
        x=result.cell.drafter.budget,
        y=estimate.value,
        low=estimate.low,
        high=estimate.high,
        mark=marks.mark(result, timed=timed),
    )
