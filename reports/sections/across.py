"""Means across tasks, where every task has a number: the geometric one, and the arithmetic one that the paper gives."""

from collections import defaultdict
from statistics import fmean, geometric_mean

from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Group, Head, SectionInfo, Table, Value
from reports.text import number
from sweeps.aggregate import CellResult

HEADS = (
    Head(name="Method", number=False),
    Head(name="D", meaning="budget"),
    Head(name="Tasks"),
    Head(name="NFE reduction", unit="ratio, geometric", meaning="geometric mean over tasks of draft-free NFE over NFE"),
    Head(name="NFE reduction", unit="ratio, arithmetic", meaning="arithmetic mean over tasks"),
    Head(name="Throughput ratio", unit="ratio, geometric", meaning="geometric mean over tasks"),
    Head(name="Throughput ratio", unit="ratio, arithmetic", meaning="arithmetic mean over tasks"),
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
        "Only methods with a number on every task are averaged; a task counts once, whatever its number of prompts. "
        "\u2717: a claim of identity did not hold on one of the tasks. \u2020: a timing in the mean failed a gate."
    )
    return SectionInfo(key="across", title="Across tasks", lead=lead, groups=tuple(groups))


def rows_of(results: list[CellResult], labels: Labels, tasks: int) -> list[tuple[Value, ...]]:
    """One row a method and budget."""
    by_method: dict[tuple[str, int], list[CellResult]] = defaultdict(list)
    for result in results:
        if not result.cell.is_baseline:
            by_method[labels.method[result.cell_id], result.cell.drafter.budget].append(result)
    rows = []
    for (method, budget), cells in by_method.items():
        reductions = values_by_task(cells, labels, [cell.nfe_reduction.value for cell in cells])
        ratios = values_by_task(cells, labels, [cell.throughput.ratio.value for cell in cells])
        means = [*both_means(reductions, tasks), *both_means(ratios, tasks)]
        if any(mean is not None for mean in means):
            broken = any(cell.claim_holds is False for cell in cells)
            texts = [
                Value(f"{method} \u2717", flag="alarm") if broken else Value(method),
                Value(str(budget)),
                Value(str(len(reductions))),
            ]
            doubtful = any(cell.throughput.doubts for cell in cells)
            reduced, timed = means[:2], means[2:]
            rows.append(
                (*texts, *(Value(number(mean)) for mean in reduced), *(doubted(mean, doubtful) for mean in timed))
            )
    return rows


def doubted(mean: float | None, doubtful: bool) -> Value:
    """A mean of throughput ratios, marked when one of them failed a gate."""
    if mean is None or not doubtful:
        return Value(number(mean))
    return Value(f"{number(mean)} \u2020", flag="warning")


def values_by_task(cells: list[CellResult], labels: Labels, values: list[float | None]) -> list[float]:
    """One value a task: the mean over its seeds; a task where one is undefined has none."""
    by_task = defaultdict(list)
    for cell, value in zip(cells, values, strict=True):
        by_task[labels.task[cell.cell_id]].append(value)
    return [fmean(v for v in found if v is not None) for found in by_task.values() if None not in found]


def both_means(values: list[float], tasks: int) -> tuple[float | None, float | None]:
    """Geometric and arithmetic mean, where every task has a value."""
    if len(values) < tasks or min(values) <= 0:
        return None, None
    return geometric_mean(values), fmean(values)
