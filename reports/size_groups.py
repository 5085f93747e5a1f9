"""Cells of one family on targets of different size, side by side: what a size study compares.

Targets belong together when they share family, decoding rule, dtype, kind of cache and seed, and differ in the number
of their weights. A target whose number of weights is not known has no place here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reports.labels import Labels
from reports.text import count, visible
from sweeps.aggregate import CellResult

UNITS = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
HIDDEN = ("revision ", "digest ")


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeGroup:
    """Cells that differ in target, task and drafter only. `targets` are names, the smallest first; `results` are timed
    cells with drafts, by task, method, budget and size.
    """

    title: str
    family: str
    targets: tuple[str, ...]
    results: tuple[CellResult, ...]

    @property
    def rule(self) -> str:
        """The commit rule of its cells."""
        return self.results[0].cell.decode.rule

    def by_task(self, labels: Labels) -> Iterator[tuple[str, list[CellResult]]]:
        """The cells of each task, in the order in which tasks first appear."""
        tasks = defaultdict(list)
        for result in self.results:
            tasks[labels.task[result.cell_id]].append(result)
        yield from tasks.items()


def size_groups(results: Iterable[CellResult], labels: Labels) -> list[SizeGroup]:
    """The groups that have timed cells of two sizes or more."""
    groups: dict[tuple[object, ...], list[CellResult]] = defaultdict(list)
    for result in results:
        cell = result.cell
        if cell.target.parameters and not cell.is_baseline and result.round_time.n:
            key = (cell.target.family, cell.target.dtype, cell.target.cache, cell.decode, cell.seed)
            groups[key].append(result)
    kept = [own for own in groups.values() if len({result.cell.target.parameters for result in own}) > 1]
    families = len({own[0].cell.target.family for own in kept}) > 1
    seeds = len({own[0].cell.seed for own in kept}) > 1
    return [group_of(own, labels, families=families, seeds=seeds) for own in kept]


def group_of(results: list[CellResult], labels: Labels, *, families: bool, seeds: bool) -> SizeGroup:
    """One group; its title says what its cells share, without the target."""
    first = results[0]
    title = labels.setting[first.cell_id].removeprefix(f"{target(first)}, ")
    shared = [fact for fact in title.split(", ") if not fact.startswith(HIDDEN)]
    shared = [visible(first.cell.target.family, 80), *shared] if families else shared
    shared += [f"seed {first.cell.seed}"] if seeds else []
    tasks, methods = (list(dict.fromkeys(names[r.cell_id] for r in results)) for names in (labels.task, labels.method))
    ordered = sorted(results, key=size)
    return SizeGroup(
        title=", ".join(shared),
        family=first.cell.target.family,
        targets=tuple(dict.fromkeys(map(target, ordered))),
        results=tuple(
            sorted(
                ordered,
                key=lambda r: (
                    tasks.index(labels.task[r.cell_id]),
                    methods.index(labels.method[r.cell_id]),
                    r.cell.drafter.budget,
                    size(r),
                ),
            )
        ),
    )


def target(result: CellResult) -> str:
    """The name of a cell's target."""
    return visible(result.cell.target.name, 80)


def size(result: CellResult) -> int:
    """The number of weights of a cell's target."""
    return result.cell.target.parameters


def parameters(n: int) -> str:
    """A number of weights with three figures: `2.10 M`."""
    unit, letter = next(((unit, letter) for unit, letter in UNITS if n >= unit), (1.0, ""))
    if not letter:
        return count(n, "weight")
    value = n / unit
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {letter}"
