"""What a table of methods shows, in words: for each setting and task the fewest forwards, and whether any is faster.

The best method is held against draft-free decoding and, paired by prompt, against its best rival: the drafter of
another kind with the fewest forwards at the same budget. Only timings that passed their gates speak of throughput.
"""

from collections.abc import Iterable

from reports.contests import forwards_ratio, verdict
from reports.frames import Frames
from reports.labels import Labels
from reports.phrases import evidence, fewer
from reports.text import count, number
from reports.winners import competes
from sweeps.aggregate import CellResult


def method_findings(frames: Frames, labels: Labels) -> list[str]:
    """One line for each setting and task in which a method has a number."""
    lines = []
    for setting, results in labels.by_setting(frames.results):
        for task in dict.fromkeys(labels.task[result.cell_id] for result in results):
            methods = [r for r in results if labels.task[r.cell_id] == task and competes(r)]
            best = fewest(methods)
            if best is not None:
                said = [forwards(frames, labels, best, methods), *throughput(labels, methods)]
                lines.append(f"{setting}, {task}: {' '.join(said)}")
    return lines


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


def throughput(labels: Labels, methods: list[CellResult]) -> Iterable[str]:
    """Whether any method is faster than draft-free decoding beyond its interval; nothing where nothing was timed."""
    timed = [result for result in methods if result.throughput.ratio.value is not None]
    passed = [result for result in timed if not result.throughput.doubts]
    failed = len(timed) - len(passed)
    left_out = f" {failed} of {count(len(timed), 'timing')} failed a gate and are left out." if failed else ""
    if passed:
        ahead = [result for result in passed if (result.throughput.ratio.low or 0) > 1]
        top = max(ahead or passed, key=lambda result: result.throughput.ratio.value or 0)
        ratio = top.throughput.ratio
        value = f"{number(ratio.value)} times draft-free ({evidence(ratio)})"
        if ahead:
            yield f"Faster than draft-free decoding: {name(labels, top)}, highest, {value}.{left_out}"
        else:
            yield (
                "No method is faster than draft-free decoding beyond its interval: "
                f"highest {value}, {name(labels, top)}.{left_out}"
            )
    elif timed:
        yield "No timing passed its gates: nothing is said of throughput."


def name(labels: Labels, result: CellResult) -> str:
    """Method and budget."""
    return f"{labels.method[result.cell_id]} at D = {result.cell.drafter.budget}"
