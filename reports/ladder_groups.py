"""The ladders of a run by what they share but the task, and what they say together: means over tasks, outputs pooled.

A cell that failed, is incomplete or is broken is shown where it stands and enters no mean.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reports import marks
from reports.frames import Frames, base_id
from reports.labels import Labels
from sweeps.aggregate import CellResult
from sweeps.agreement import Outputs, outputs_of, pairs_of
from sweeps.ladder import Ladder, Rung, ladders
from sweeps.merge import NO_ROWS
from sweeps.records import GenerationRecord
from sweeps.statistics import Estimate, ratio_of_sums, undefined

Read = Callable[[Rung], Estimate]
Mean = Callable[[list[Estimate]], Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderGroup:
    """Ladders that differ in their task only: `keys` of all rungs, from the lowest; `names` say what they add."""

    title: str
    ladders: tuple[tuple[str, Ladder], ...]
    keys: tuple[str, ...]
    names: dict[str, str]

    @property
    def over_standard(self) -> bool:
        """Whether the standard rule is a rung; else throughput is over threshold decoding."""
        return self.ladders[0][1].over_standard

    @property
    def drafted(self) -> tuple[str, ...]:
        """The rungs with drafts."""
        return tuple(key for key in self.keys if not self.rungs(key)[0].result.cell.is_baseline)

    def rung(self, ladder: Ladder, key: str) -> Rung | None:
        """The rung of a ladder; None where it has none."""
        return next((rung for rung in ladder.rungs if key_of(rung) == key), None)

    def rungs(self, key: str) -> list[Rung]:
        """The rung of every task that has it."""
        found = (self.rung(ladder, key) for _, ladder in self.ladders)
        return [rung for rung in found if rung is not None]

    def unsound(self, key: str) -> list[str]:
        """The tasks on which a rung is missing, incomplete or broken."""
        found = [(task, self.rung(ladder, key)) for task, ladder in self.ladders]
        return [task for task, rung in found if rung is None or not is_sound(rung.result)]

    def before(self, ladder: Ladder, rung: Rung) -> Rung | None:
        """The rung below another one of its ladder; None for the lowest."""
        place = ladder.rungs.index(rung)
        return ladder.rungs[place - 1] if place else None

    def stepped(self, key: str) -> bool:
        """Whether a rung and the one below it are sound on every task, so that the step between them counts."""
        below = [
            self.before(ladder, rung) for _, ladder in self.ladders if (rung := self.rung(ladder, key)) is not None
        ]
        sound = all(rung is not None and is_sound(rung.result) for rung in below)
        return sound and not self.unsound(key) and len({key_of(rung) for rung in below if rung is not None}) == 1

    def mean(self, key: str, read: Read, of: Mean) -> Estimate:
        """A mean over the tasks; undefined where one of them has no sound number."""
        return of([read(rung) for rung in self.rungs(key)]) if not self.unsound(key) else undefined()


def is_sound(result: CellResult) -> bool:
    """Whether all that was asked of a cell is there, and holds."""
    timed = not (result.n_timing_failed or result.n_timing_missing)
    return bool(result.n) and result.n == result.n_expected and timed and not marks.is_broken(result)


def is_doubted(rung: Rung) -> bool:
    """Whether a timing behind a rung's throughput failed a gate: of a drafted one beside threshold decoding too."""
    result, links = rung.result, rung.result.pace.doubts if rung.result.pace else ()
    timed = not result.cell.is_baseline and result.throughput.ratio.value is not None
    return bool(links or (timed and result.throughput.doubts))


def key_of(rung: Rung) -> str:
    """What a rung is called in every task."""
    return rung.name if rung.result.cell.is_baseline else rung.result.cell.drafter.name


def ladder_groups(frames: Frames, labels: Labels) -> list[LadderGroup]:
    """The groups in the order of the plan."""
    groups: dict[tuple[object, ...], list[tuple[str, Ladder]]] = defaultdict(list)
    seeds = len({result.cell.seed for result in frames.results}) > 1
    found = list(ladders(frames.results, frames.rows))
    kinds = len({ladder.top.cell.drafter.kind for ladder in found}) > 1
    for ladder in found:
        cell, cell_id = ladder.top.cell, ladder.top.cell_id
        title = [labels.setting[cell_id], f"D = {cell.drafter.budget}"]
        title += [f"seed {cell.seed}"] if seeds else []
        title += [cell.drafter.kind] if kinds else []
        groups[", ".join(title), cell.drafter.digest, ladder.over_standard].append((labels.task[cell_id], ladder))
    return [group_of(str(title), own) for (title, *_), own in groups.items()]


def group_of(title: str, own: list[tuple[str, Ladder]]) -> LadderGroup:
    """A group; rungs of one name that say the same of themselves are told apart by their drafters' names."""
    named: dict[str, str] = {}
    for _, ladder in own:
        for rung in ladder.rungs:
            named.setdefault(key_of(rung), rung.name)
    twice = {name for name in named.values() if list(named.values()).count(name) > 1}
    names = {key: f"{name} ({key})" if name in twice else name for key, name in named.items()}
    return LadderGroup(title=title, ladders=tuple(own), keys=tuple(named), names=names)


def pooled_forwards(frames: Frames, pairs: Iterable[tuple[CellResult, CellResult]]) -> Estimate:
    """NFE of the first over NFE of the second of each pair, over the prompts of all pairs together."""
    rows = [
        (own, other)
        for one, two in pairs
        for own, other in pairs_of(generations(frames, one), generations(frames, two))
    ]
    return ratio_of_sums([own.counters.nfe for own, _ in rows], [other.counters.nfe for _, other in rows])


def pooled_outputs(frames: Frames, pairs: Iterable[tuple[CellResult, str]]) -> Outputs:
    """Outputs of cells beside those of the cells with these ids, over the prompts of all pairs together."""
    found = [
        pair
        for result, other in pairs
        for pair in pairs_of(generations(frames, result), frames.rows.get(other, NO_ROWS).generations)
    ]
    return outputs_of(found)


def generations(frames: Frames, result: CellResult) -> dict[int, GenerationRecord]:
    """The generations of a cell by prompt."""
    return frames.rows.get(result.cell_id, NO_ROWS).generations


def threshold_id(result: CellResult) -> str:
    """Id of the draft-free cell by a cell's own rule."""
    return base_id(result)


def standard_id(result: CellResult) -> str:
    """Id of the draft-free cell by the standard rule."""
    return result.cell.baseline().timed_beside().cell_id
