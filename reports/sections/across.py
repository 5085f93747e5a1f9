"""Means across tasks, where every task has a number: the geometric one, and the arithmetic one that the paper gives."""

from collections import defaultdict
from collections.abc import Callable

from reports import marks
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Group, Head, SectionInfo, Table, Value
from reports.shown import shown
from reports.text import TIMES
from sweeps.aggregate import CellResult
from sweeps.means import arithmetic, geometric, over_seeds
from sweeps.statistics import Estimate, undefined

HEADS = (
    Head(name="Method", number=False),
    Head(name="D", meaning="budget"),
    Head(name="Tasks"),
    Head(
        name="NFE reduction",
        unit=f"{TIMES}, geometric mean",
        meaning="geometric mean over tasks of draft-free NFE over NFE",
    ),
    Head(name="NFE reduction", unit=f"{TIMES}, arithmetic mean", meaning="arithmetic mean over tasks"),
    Head(name="Throughput ratio", unit=f"{TIMES}, geometric mean", meaning="geometric mean over tasks"),
    Head(name="Throughput ratio", unit=f"{TIMES}, arithmetic mean", meaning="arithmetic mean over tasks"),
)


def info(frames: Frames) -> SectionInfo | None:
    """One table a setting with two tasks or more; None when there is none."""
    labels = labels_of(frames.results)
    groups: list[Group] = []
    for setting, results in labels.by_setting(frames.results):
        tasks = {labels.task[result.cell_id] for result in results}
        if len(tasks) > 1:
            rows = tuple(rows_of(results, labels, len(tasks)))
            if rows:
                table = Table(caption=f"Means over tasks: {setting}", heads=HEADS, groups=(("", rows),))
                groups.append(Group(title=setting, parts=(table,), folded=len(groups) > 3))
    if not groups:
        return None
    lead = (
        "Only methods with a sound number on every task are averaged; a task counts once, whatever its number of "
        "prompts. "
        "Ranges are 95 % intervals over the prompts of these tasks: they say nothing of other tasks. "
        f"{marks.LEAD} \u2020: a timing in the mean failed a gate. Both: on one of the tasks."
    )
    return SectionInfo(key="across", title="Across tasks", lead=lead, groups=tuple(groups))


def rows_of(results: list[CellResult], labels: Labels, tasks: int) -> list[tuple[Value, ...]]:
    """One row a method and budget."""
    by_method: dict[tuple[str, int], list[CellResult]] = defaultdict(list)
    for result in results:
        if not result.cell.is_baseline:
            by_method[labels.method[result.cell_id], result.cell.drafter.budget].append(result)
    rows = []
    for (_, budget), cells in by_method.items():
        reductions = by_task(cells, labels, lambda cell: cell.nfe_reduction)
        ratios = by_task(cells, labels, lambda cell: cell.throughput.ratio)
        reduced, timed = both_means(reductions, tasks), both_means(ratios, tasks)
        if any(mean.value is not None for mean in (*reduced, *timed)) or marks.broken(*cells):
            texts = [marks.method(labels, *cells), Value(str(budget)), Value(str(len(reductions)))]
            times = (shown(mean) if mean.value is None else marks.doubted(shown(mean), *cells) for mean in timed)
            rows.append((*texts, *map(shown, reduced), *times))
    return rows


def by_task(cells: list[CellResult], labels: Labels, read: Callable[[CellResult], Estimate]) -> list[Estimate]:
    """One estimate a task: the mean over its seeds; a task where one is undefined or broken has none."""
    found: dict[str, list[Estimate]] = defaultdict(list)
    for cell in cells:
        found[labels.task[cell.cell_id]].append(undefined() if marks.is_broken(cell) else read(cell))
    means = (over_seeds(estimates) for estimates in found.values())
    return [mean for mean in means if mean.value is not None]


def both_means(estimates: list[Estimate], tasks: int) -> tuple[Estimate, Estimate]:
    """Geometric and arithmetic mean, where every task has a value."""
    if len(estimates) < tasks:
        return undefined(), undefined()
    return geometric(estimates), arithmetic(estimates)
