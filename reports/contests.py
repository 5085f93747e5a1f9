"""Cells that differ in their drafters only, and what pairs of them say: forwards over forwards, by prompt.

Who needs fewer forwards is always asked of the same prompts at the same budget.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from reports.frames import Frames
from reports.labels import Labels
from sweeps.aggregate import CellResult
from sweeps.merge import NO_ROWS
from sweeps.statistics import Estimate, ratio_of_sums

POSITION, TOKEN, JOINT = "oracle_position", "oracle_token", "oracle_joint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Cells that differ in their drafters only: one setting, task, budget and seed."""

    task: str
    budget: int
    results: tuple[CellResult, ...]

    def oracle(self, kind: str) -> CellResult | None:
        """The oracle of a kind that has numbers."""
        return next((r for r in self.results if r.cell.drafter.kind == kind and r.n), None)


def contests(results: list[CellResult], labels: Labels) -> tuple[Contest, ...]:
    """The cells of a setting by task, budget and seed, in the order of the plan."""
    seeds = len({result.cell.seed for result in results}) > 1
    groups: dict[tuple[str, int], list[CellResult]] = defaultdict(list)
    for result in results:
        if not result.cell.is_baseline:
            task = labels.task[result.cell_id] + (f", seed {result.cell.seed}" if seeds else "")
            groups[task, result.cell.drafter.budget].append(result)
    return tuple(Contest(task=task, budget=budget, results=tuple(own)) for (task, budget), own in groups.items())


def forwards_ratio(frames: Frames, pairs: Iterable[tuple[CellResult, CellResult]]) -> Estimate:
    """NFE of the first over NFE of the second of each pair, over the prompts that both decoded."""
    above, below = [], []
    for one, other in pairs:
        ours, theirs = (frames.rows.get(result.cell_id, NO_ROWS).generations for result in (one, other))
        both = sorted(ours.keys() & theirs.keys())
        above += [ours[i].counters.nfe for i in both]
        below += [theirs[i].counters.nfe for i in both]
    return ratio_of_sums(above, below)


def duel(contest: Contest) -> list[tuple[CellResult, CellResult]]:
    """Token and position oracle of a contest, where it has both."""
    token, position = contest.oracle(TOKEN), contest.oracle(POSITION)
    return [(token, position)] if token and position else []


def verdict(ratio: Estimate) -> int:
    """1: the position oracle needs fewer forwards, -1: the token oracle, 0: neither, or no interval."""
    return 1 if ratio.above() else -1 if ratio.below() else 0
