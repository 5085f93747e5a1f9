"""Drafters on targets that their artifact was not made on, beside the native drafter and what needs no such file.

An artifact is told by its digest and a target by its weights, whatever a sweep calls either. Cells are held against
each other under one condition (all but target, task, seed and drafter).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from reports.frames import Frames
from reports.labels import Labels, apart, labels_of, setting_facts, varying
from reports.transfer_lines import Line, Place, fewest, kind, of_task
from sweeps.aggregate import CellResult
from sweeps.cell import canonical_json, drafter_identity

OF_TARGET = ("dtype ", "cache ", "approximate cache ", "revision ")  # facts of a setting that belong to its target


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What is compared under one setting and budget: `sources` (drafters that are transferred somewhere) on `targets`.

    `lines` are all drafters by target; `places` those at which a target has any cell.
    """

    title: str
    sources: tuple[tuple[str, str], ...]
    targets: tuple[str, ...]
    names: dict[tuple[str, str], str]
    lines: dict[str, tuple[Line, ...]]
    places: dict[str, tuple[Place, ...]]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of all targets."""
        return tuple(dict.fromkeys(task for places in self.places.values() for task, _ in places))

    def of_task(self, task: str) -> "Condition":
        """The same with the cells of one task alone."""
        lines = {
            target: tuple(filter(None, (of_task(line, task) for line in own))) for target, own in self.lines.items()
        }
        places = {target: tuple(place for place in own if place[0] == task) for target, own in self.places.items()}
        return replace(self, lines=lines, places=places)

    def line(self, source: tuple[str, str], target: str) -> Line | None:
        """A source's cells on a target; None where the run has none."""
        return next((line for line in self.lines[target] if (line.drafter, line.digest) == source), None)

    def native(self, line: Line) -> Line | None:
        """The drafter of that kind and those options that was made on a line's target; of several `fewest`."""
        own = [other for other in self.lines[line.target] if other.drafter == line.drafter and other.native]
        return fewest(own)

    def baselines(self, line: Line, *, trained: bool) -> list[Line]:
        """Drafters of other kinds on a line's target that need no artifact; with `trained` also native ones that do."""
        others = (other for other in self.lines[line.target] if kind(other) != kind(line))
        return [other for other in others if not other.digest or (trained and other.native)]

    def transferred(self) -> Iterator[Line]:
        """Every line that was made elsewhere, by target."""
        for target in self.targets:
            found = (self.line(source, target) for source in self.sources)
            yield from (line for line in found if line is not None and line.native is False)


def conditions(frames: Frames) -> tuple[Condition, ...]:
    """Every setting and budget in which a drafter was made on another target than it is used on."""
    results = [result for result in frames.results if drafts(result)]
    targets, labels = target_names(results), labels_of(frames.results)
    groups: dict[str, list[CellResult]] = defaultdict(list)
    for result in results:
        groups[canonical_json(shared(result))].append(result)
    titles = condition_titles([own[0] for own in groups.values()])
    made = (condition(title, own, targets, labels) for title, own in zip(titles, groups.values(), strict=True))
    return tuple(one for one in made if one.sources)


def drafts(result: CellResult) -> bool:
    """Whether a cell is a method's: neither draft-free nor a bound."""
    return not (result.cell.is_baseline or result.cell.drafter.oracle)


def shared(result: CellResult) -> dict[str, Any]:
    """What cells must have in common to be compared across targets."""
    return {**result.cell.identity()["decode"], "budget": result.cell.drafter.budget}


def condition(title: str, results: list[CellResult], targets: dict[str, str], labels: Labels) -> Condition:
    """The lines of one condition."""
    cells: dict[tuple[str, str, str], dict[Place, CellResult]] = defaultdict(dict)
    for result in results:
        place = (labels.task[result.cell_id], result.cell.seed)
        cells[targets[result.cell_id], options(result), result.cell.drafter.digest][place] = result
    lines: dict[str, list[Line]] = defaultdict(list)
    for (target, drafter, digest), own in cells.items():
        name = labels.method[next(iter(own.values())).cell_id]
        lines[target].append(Line(name=name, target=target, drafter=drafter, digest=digest, cells=own))
    every = [line for own in lines.values() for line in own]
    at_home = {(line.drafter, line.digest): place for place, line in enumerate(every) if line.native}
    away = dict.fromkeys((line.drafter, line.digest) for line in every if line.native is False)
    sources = tuple(sorted(away, key=lambda source: at_home.get(source, len(every))))  # in the order of the targets
    return Condition(
        title=title,
        sources=sources,
        targets=tuple(lines),
        names=source_names(sources, every),
        lines={target: tuple(own) for target, own in lines.items()},
        places={target: tuple(dict.fromkeys(p for line in own for p in line.cells)) for target, own in lines.items()},
    )


def options(result: CellResult) -> str:
    """A drafter's identity without its artifact: what the native one and a transferred one have in common."""
    return canonical_json(
        {name: value for name, value in drafter_identity(result.cell.drafter).items() if name != "digest"}
    )


def source_names(sources: tuple[tuple[str, str], ...], lines: list[Line]) -> dict[tuple[str, str], str]:
    """A source is called as it is where it is transferred, with the digest where two are called the same."""
    away = [line for line in lines if line.native is False]
    named = [next(line.name for line in away if (line.drafter, line.digest) == source) for source in sources]
    return dict(zip(sources, apart(named, [digest for _, digest in sources]), strict=True))


def target_names(results: Iterable[CellResult]) -> dict[str, str]:
    """The target of each cell: its name, and of dtype, cache and revision what tells two of that name apart."""
    named: dict[str, list[CellResult]] = defaultdict(list)
    for result in results:
        named[result.cell.target.name].append(result)
    names: dict[str, str] = {}
    for own in named.values():
        rows = [
            {"": facts[""]} | {key: facts[key] for key in OF_TARGET} | {"cache ": result.cell.target.cache}
            for result in own
            for facts in [setting_facts(result.cell)]
        ]
        told = apart(varying(rows, always=1), [result.cell.target.digest for result in own])
        names |= {result.cell_id: name for result, name in zip(own, told, strict=True)}
    return names


def condition_titles(results: list[CellResult]) -> list[str]:
    """Temperature and budget, and what else differs between conditions."""
    rows = []
    for result in results:
        facts = setting_facts(result.cell)
        own = {key: text for key, text in facts.items() if key not in ("", "T = ", *OF_TARGET)}
        rows.append({"T = ": facts["T = "], "D = ": str(result.cell.drafter.budget), **own})
    return varying(rows, always=2)
