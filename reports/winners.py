"""Which of several cells is better beyond doubt: its interval excludes every rival.

Cells compete when they share setting, task and budget; lossy ones only with each other. One that failed its check
(broken claim, alarms) cannot win, and an oracle, which is no method, does not compete.
"""

from collections import defaultdict
from collections.abc import Iterable

from reports.contests import forwards_ratio
from reports.frames import Frames
from reports.labels import Labels
from reports.marks import is_broken
from sweeps.aggregate import CellResult
from sweeps.claims import Claim


def competes(result: CellResult) -> bool:
    """Whether a cell is a method whose numbers may be held against others'."""
    is_method = not (result.cell.is_baseline or result.cell.drafter.oracle)
    return is_method and not is_broken(result)


def is_lossy(result: CellResult) -> bool:
    """Whether a cell's output may be another than the target's."""
    return result.claim == Claim.LOSSY


def rivals(labels: Labels, results: Iterable[CellResult]) -> list[list[CellResult]]:
    """Cells that may be compared with each other."""
    groups = defaultdict(list)
    for result in results:
        cell = result.cell
        if competes(result):
            place = labels.setting[result.cell_id], labels.task[result.cell_id]
            key = (*place, cell.drafter.budget, cell.seed, is_lossy(result))
            groups[key].append(result)
    return list(groups.values())


def nfe_winners(frames: Frames, labels: Labels) -> set[str]:
    """Cells that need fewer forwards than every rival: its NFE over theirs, paired by prompt, is above 1 at 95 %.

    Cells with equal counts (one method under two names) do not beat each other, so neither wins.
    """
    winners = set()
    for group in rivals(labels, frames.results):
        ranked = sorted((r for r in group if r.nfe_reduction.value), key=lambda r: -(r.nfe_reduction.value or 0))
        for one in ranked:
            others = [other for other in ranked if other is not one]  # the best come first: most lose at once
            if others and all(fewer_forwards(frames, one, other) for other in others):
                winners.add(one.cell_id)
    return winners


def fewer_forwards(frames: Frames, one: CellResult, other: CellResult) -> bool:
    """Whether `one` needs fewer forwards than `other` over the prompts that both decoded."""
    return forwards_ratio(frames, [(other, one)]).above()


def throughput_winners(frames: Frames, labels: Labels) -> set[str]:
    """Cells whose throughput ratio has a lower end above the upper end of every rival's, all gates passed."""
    winners = set()
    for group in rivals(labels, frames.results):
        timed = [result for result in group if result.throughput.ratio.value is not None]
        ranked = sorted(timed, key=lambda r: -(r.throughput.ratio.value or 0))
        if len(ranked) < 2 or ranked[0].throughput.doubts:
            continue
        low, high = ranked[0].throughput.ratio.low, [rival.throughput.ratio.high for rival in ranked[1:]]
        if low is not None and all(end is not None and end < low for end in high):
            winners.add(ranked[0].cell_id)
    return winners
