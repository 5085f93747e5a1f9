"""One drafter on one target, and two of them against each other: forwards over forwards on the same prompts.

A prompt that was decoded with several seeds counts once.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import fmean

from reports.frames import Frames
from reports.marks import are_sound
from sweeps.aggregate import CellResult
from sweeps.merge import NO_ROWS
from sweeps.records import GenerationRecord
from sweeps.statistics import Estimate, ratio_of_sums

Place = tuple[str, int]  # a task and a seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One drafter on one target under one condition: its cells by task and seed. `drafter` is what it shares with the
    native one: its identity without the artifact.
    """

    name: str
    target: str
    drafter: str
    digest: str
    cells: dict[Place, CellResult]

    @property
    def results(self) -> tuple[CellResult, ...]:
        """Its cells."""
        return tuple(self.cells.values())

    @property
    def first(self) -> CellResult:
        """One of its cells: drafter, target and claim are the same in all."""
        return self.results[0]

    @property
    def native(self) -> bool | None:
        """Whether its artifact was made on its target (None: it has none, or does not say on which)."""
        return self.first.cell.is_native

    @property
    def n(self) -> int:
        """Prompts decoded."""
        return sum(result.n for result in self.results)


def kind(line: Line) -> str:
    """The entry of the table of drafters that a line is of."""
    return line.first.cell.drafter.kind


def fewest(lines: Iterable[Line]) -> Line | None:
    """The line with the greatest NFE reduction (the arithmetic mean over its tasks and seeds).

    One that has no number, is broken, or lacks tasks or seeds which another has, is taken where there is no other.
    """

    def rank(line: Line) -> tuple[bool, bool, int, float]:
        values = reductions(line)
        return bool(values), are_sound(*line.results), len(values), fmean(values) if values else 0.0

    return max(lines, key=rank, default=None)


def reductions(line: Line) -> list[float]:
    """The NFE reductions of a line's cells that have one."""
    return [result.nfe_reduction.value for result in line.results if result.nfe_reduction.value is not None]


def of_task(line: Line, task: str) -> Line | None:
    """A line's cells of one task; None where it has none."""
    cells = {place: result for place, result in line.cells.items() if place[0] == task}
    return replace(line, cells=cells) if cells else None


def by_prompt(frames: Frames, *lines: Line) -> list[list[tuple[GenerationRecord, ...]]]:
    """For each prompt of each task, the generations of `lines`, a tuple for each seed with which all decoded it.

    Tasks and seeds with a broken cell are left out where there are others. Prompts are the sampling unit: with more
    seeds one is better known, but there are not more of them.
    """
    found: dict[tuple[str, int], list[tuple[GenerationRecord, ...]]] = defaultdict(list)
    shared = [place for place in lines[0].cells if all(place in line.cells for line in lines)]
    sound = [place for place in shared if are_sound(*(line.cells[place] for line in lines))]
    for place in sound or shared:
        rows = [frames.rows.get(line.cells[place].cell_id, NO_ROWS).generations for line in lines]
        for index in sorted(set.intersection(*(set(own) for own in rows))):
            found[place[0], index].append(tuple(own[index] for own in rows))
    return list(found.values())


def paired(frames: Frames, line: Line, other: Line) -> list[tuple[float, float]]:
    """NFE of `line` and of `other` for each prompt that both decoded, the mean over its seeds."""
    return [
        (fmean(own.counters.nfe for own, _ in seeds), fmean(theirs.counters.nfe for _, theirs in seeds))
        for seeds in by_prompt(frames, line, other)
    ]


def versus(frames: Frames, line: Line, other: Line | None) -> Estimate:
    """NFE of `other` over NFE of `line` on the prompts that both decoded. Above 1: `line` needs fewer forwards."""
    both = paired(frames, line, other) if other is not None else []
    return ratio_of_sums([theirs for _, theirs in both], [ours for ours, _ in both])


def loss(ratio: Estimate) -> Estimate:
    """The share of the native NFE reduction that is lost, from native NFE over own NFE; negative: it is better."""
    value, low, high = (None if end is None else 1 - end for end in (ratio.value, ratio.high, ratio.low))
    return replace(ratio, value=value, low=low, high=high)
