"""What a table of methods shows, in words: for each setting and task the fewest forwards, and whether any is faster.

The best method is held against draft-free decoding and, paired by prompt, against its best rival: the drafter of
another kind with the fewest forwards at the same budget. Only timings that passed their gates speak of throughput.
"""

from collections import defaultdict
from collections.abc import Iterable

from reports.contests import forwards_ratio, verdict
from reports.frames import Frames
from reports.labels import Labels
from reports.phrases import evidence, fewer
from reports.text import count, number
from reports.winners import competes, is_lossy
from sweeps.aggregate import CellResult


def by_place(results: Iterable[CellResult], labels: Labels) -> dict[str, list[CellResult]]:
    """The methods that compete with each other, by setting and task; lossy ones apart."""
    places: dict[str, list[CellResult]] = defaultdict(list)
    for setting, own in labels.by_setting(results):
        for result in filter(competes, own):
            lossy = ", methods that may change the output" if is_lossy(result) else ""
            places[f"{setting}, {labels.task[result.cell_id]}{lossy}"].append(result)
    return places


def forwards_findings(frames: Frames, labels: Labels) -> list[str]:
    """One line for each setting and task in which a method has a number."""
    places = by_place(frames.results, labels).items()
    found = ((place, methods, fewest(methods)) for place, methods in places)
    return [f"{place}: {forwards(frames, labels, best, methods)}" for place, methods, best in found if best is not None]


def throughput_findings(frames: Frames, labels: Labels) -> list[str]:
    """Where a method is faster than draft-free decoding beyond its interval, and in one line that none is elsewhere."""
    timed = [result for result in frames.results if competes(result) and result.throughput.ratio.value is not None]
    passed = [result for result in timed if not result.throughput.doubts]
    if not passed:
        return ["No timing passed its gates: nothing is said of throughput."] if timed else []
    lines, slow = [], []
    for place, methods in by_place(passed, labels).items():
        ahead = [result for result in methods if result.throughput.ratio.above()]
        slow += [] if ahead else [(fastest(methods), place)]
        if ahead:
            top = fastest(ahead)
            lines.append(f"{place}: {name(labels, top)} has {faster(top)}, beyond its interval.")
    if slow:
        top = fastest(result for result, _ in slow)
        place = next(place for result, place in slow if result is top)
        text = f"No method is faster than draft-free decoding beyond its interval{' elsewhere' if lines else ''}"
        lines.append(f"{text}: highest is {faster(top)}, of {name(labels, top)} ({place}).")
    if failed := len(timed) - len(passed):
        lines[-1] += f" {failed:,} of {count(len(timed), 'timing')} failed a gate and are left out."
    return lines


def fastest(methods: Iterable[CellResult]) -> CellResult:
    """The cell with the highest throughput ratio."""
    return max(methods, key=lambda result: result.throughput.ratio.value or 0)


def faster(result: CellResult) -> str:
    """A throughput ratio in words."""
    ratio = result.throughput.ratio
    return f"{number(ratio.value)} times the throughput of draft-free decoding ({evidence(ratio)})"


def fewest(methods: Iterable[CellResult]) -> CellResult | None:
    """The cell with the greatest NFE reduction, where one has any."""
    measured = [result for result in methods if result.nfe_reduction.value]
    return max(measured, key=lambda result: result.nfe_reduction.value or 0, default=None)


def rival_of(best: CellResult, methods: Iterable[CellResult]) -> CellResult | None:
    """The best drafter of another kind at the same budget and seed."""
    own = best.cell
    return fewest(
        result
        for result in methods
        if result.cell.drafter.kind != own.drafter.kind
        and (result.cell.drafter.budget, result.cell.seed) == (own.drafter.budget, own.seed)
    )


def forwards(frames: Frames, labels: Labels, best: CellResult, methods: list[CellResult]) -> str:
    """The best method against draft-free decoding and against its best rival."""
    text = f"{name(labels, best)} needs {fewer(best.nfe_reduction, 'draft-free decoding')}"
    rival = rival_of(best, methods)
    ratio = forwards_ratio(frames, [(rival, best)] if rival else [])
    if rival is None or ratio.value is None:
        return f"{text}."
    other = labels.method[rival.cell_id]
    if verdict(ratio) > 0:
        return f"{text}, and {fewer(ratio, f'the best rival at that budget, {other}')}."
    doubt = f"NFE ratio {number(ratio.value)} ({evidence(ratio)})"
    return f"{text}. That it needs fewer than the best rival at that budget, {other}, is not beyond doubt: {doubt}."


def name(labels: Labels, result: CellResult) -> str:
    """Method and budget."""
    return f"{labels.method[result.cell_id]} at D = {result.cell.drafter.budget}"
