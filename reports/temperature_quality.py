"""Draft-free quality by temperature: right answers and argmax draws, and from which temperature on answers are lost.

Prompts are the units: with confidence top1 both noise modes sample one distribution, so a prompt's answers under both
are pooled and its interval counts one prompt. With confidence sampled coupled noise has another: modes stay apart.
Findings and pictures read the same numbers here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reports import marks
from reports.labels import Labels
from reports.noise_modes import modes
from sweeps.aggregate import CellResult
from sweeps.draws import share
from sweeps.merge import NO_ROWS, CellRows
from sweeps.records import GenerationRecord
from sweeps.statistics import Estimate, clustered_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One temperature: `right` answers and `argmax` draws, of `right.n` prompts under each noise mode, with marks."""

    temperature: float
    right: Estimate
    argmax: Estimate
    modes: tuple[str, ...]
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """A task's draft-free levels by ascending temperature, of both noise modes (`mode` empty) or of one."""

    task: str
    mode: str
    levels: tuple[Level, ...]

    @property
    def name(self) -> str:
        """What is measured, for people."""
        return f"{self.task}, {self.mode} noise" if self.mode else self.task

    @property
    def answered(self) -> tuple[Level, ...]:
        """The levels that have scored answers."""
        return tuple(level for level in self.levels if level.right.value is not None)

    def lost(self, level: Level) -> bool:
        """Whether at most half of the coldest level's share of right answers is left, beyond the interval."""
        return self._sure(level) and (level.right.high or 0.0) <= self._half

    def kept(self, level: Level) -> bool:
        """Whether more than half of the coldest level's share is left, beyond the interval."""
        return self._sure(level) and level.right.above(self._half)

    @property
    def lost_from(self) -> float | None:
        """The temperature from which on every level is lost; None where none is."""
        start = None
        for level in reversed(self.answered):
            if not self.lost(level):
                break
            start = level.temperature
        return start

    @property
    def _half(self) -> float:
        """Half of the coldest level's share of right answers."""
        return (self.answered[0].right.value or 0.0) / 2

    def _sure(self, level: Level) -> bool:
        """Whether a comparison has an interval, and something that could be lost."""
        return self._half > 0 and level.right.has_interval and self.answered[0].right.has_interval


def qualities(results: Sequence[CellResult], rows: Mapping[str, CellRows], labels: Labels) -> tuple[Quality, ...]:
    """The draft-free quality of each task of a group of cells."""
    free = [result for result in results if result.cell.is_baseline]
    drawn = [result.cell.decode for result in free if result.cell.decode.temperature > 0]
    noises = sorted({decode.noise for decode in drawn})
    apart = len(noises) > 1 and any(decode.confidence == "sampled" for decode in drawn)
    made = []
    for task in dict.fromkeys(labels.task[result.cell_id] for result in free):
        own = [result for result in free if labels.task[result.cell_id] == task]
        for mode in noises if apart else ("",):
            chosen = [result for result in own if not mode or mode in modes(result)]
            made.append(Quality(task=task, mode=mode, levels=levels(chosen, rows)))
    return tuple(made)


def levels(free: Sequence[CellResult], rows: Mapping[str, CellRows]) -> tuple[Level, ...]:
    """The levels of some draft-free cells, coldest first."""
    made = []
    for temperature in sorted({result.cell.decode.temperature for result in free}):
        here = [result for result in free if result.cell.decode.temperature == temperature]
        by_prompt: dict[int, list[GenerationRecord]] = {}
        for result in filter(marks.are_sound, here):
            for index, row in rows.get(result.cell_id, NO_ROWS).generations.items():
                by_prompt.setdefault(index, []).append(row)
        drawn = dict.fromkeys(result.cell.decode.noise for result in here) if temperature > 0 else {}
        estimates = right(by_prompt.values()), argmax(by_prompt.values())
        level = Level(temperature=temperature, right=estimates[0], argmax=estimates[1], modes=tuple(drawn))
        made.append(replace(level, mark=marks.mark(*here)))
    return tuple(made)


def right(prompts: Iterable[Sequence[GenerationRecord]]) -> Estimate:
    """Share of right answers: Wilson's interval at the effective number of answers, prompts being the clusters."""
    scores = [[row.correct for row in own if row.correct is not None] for own in prompts]
    return clustered_share([sum(own) for own in scores], [len(own) for own in scores])


def argmax(prompts: Iterable[Sequence[GenerationRecord]]) -> Estimate:
    """Share of draws that are the fresh distribution's best, over the prompts that were watched."""
    letters = ["".join(row.drawn.argmax for row in own if row.drawn is not None) for own in prompts]
    watched = [own for own in letters if own]
    return share([own.count("1") for own in watched], [len(own) for own in watched])
