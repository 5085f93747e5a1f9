"""What is wanted, and what of it is missing: resuming is plan minus done.

A `Job` says how many prompts of a cell are wanted; `missing_items` turns the prompts without a stored row into work
items. Item ids are a function of cell, kind and prompt range, so a larger prompt count adds items and changes none.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from sweeps.cell import Cell
from sweeps.checks import check
from sweeps.effort import MeasureSpec
from sweeps.records import ItemKind, WorkItem
from sweeps.results import Coverage
from sweeps.spec import SweepSpec
from sweeps.study import study_cell

KINDS: tuple[ItemKind, ...] = ("decode", "timing", "study")  # traces are files of their own, no results of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One cell and how much of it is wanted: decoded, timed (`repeats` times each) and studied prompts, from the first.

    `cell_id` is filled in from the cell; a stored job whose id no longer is its cell's id is refused. `reference`: the
    cell is only there for an approximate cache to be measured against, and is no method of the sweep.
    """

    cell: Cell
    prompts: int
    timed_prompts: int = 0
    repeats: int = 1
    studied_prompts: int = 0
    cell_id: str = ""
    reference: bool = False

    def __post_init__(self) -> None:
        actual = self.cell.cell_id
        check(self.cell_id in ("", actual), "cells.json: cell_id", self.cell_id, f"{actual} for this cell")
        object.__setattr__(self, "cell_id", actual)
        for name in ("prompts", "timed_prompts", "studied_prompts"):
            check(getattr(self, name) >= 0, f"job {actual}: {name}", getattr(self, name), "a whole number from 0")
        check(self.repeats >= 1, f"job {actual}: repeats", self.repeats, "a whole number from 1")

    def wanted(self, kind: ItemKind) -> int:
        """How many prompts of a kind."""
        return {"decode": self.prompts, "timing": self.timed_prompts, "study": self.studied_prompts}.get(kind, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A resolved sweep and its jobs, in the order in which they should preferably run."""

    spec: SweepSpec
    jobs: tuple[Job, ...]

    def __post_init__(self) -> None:
        ids = [job.cell_id for job in self.jobs]
        assert len(set(ids)) == len(ids), "a cell appears twice in the plan"
        gpus = self.spec.resources.gpus
        shared = gpus != int(gpus) and any(job.timed_prompts for job in self.jobs)
        check(not shared, "resources.gpus", gpus, "a whole number when prompts are timed (measure.timed_prompts)")


def jobs_of(
    cells: Iterable[Cell], measure: MeasureSpec, ordering: Collection[str] = (), references: Iterable[Cell] = ()
) -> tuple[Job, ...]:
    """One job a cell. A draft-free cell is timed beside its variants, and for itself only where it has none, or where
    the standard rule's draft-free cell is among `cells`, beside which that of another rule is timed.

    `ordering` are the drafter kinds that have an order model: each is studied once for each draft-free cell, in a job
    of its own behind the others (`study_cell`). `references` are uncached cells that nobody asked for by themselves:
    decoded last, since they cost most, and neither timed nor studied.
    """
    cells = tuple(cells)
    asked = {cell.cell_id for cell in cells}
    beside = {cell.timed_beside().cell_id for cell in cells if cell.timed_beside() != cell}
    jobs = tuple(
        Job(
            cell=cell,
            prompts=measure.prompts,
            timed_prompts=measure.timed_prompts if is_timed(cell, asked, beside) else 0,
            repeats=measure.repeats,
        )
        for cell in cells
    )
    few = min(measure.uncached_prompts, measure.prompts)
    uncached = tuple(Job(cell=cell, prompts=few, reference=True) for cell in references)
    if not measure.studied_prompts:
        return (*jobs, *uncached)
    studied = [study_cell(cell) for cell in reversed(cells) if cell.drafter.kind in ordering]
    by_id = {cell.cell_id: cell for cell in studied}  # of equal ones the first, in the order of the cells
    studies = (Job(cell=by_id[id], prompts=0, studied_prompts=measure.studied_prompts) for id in reversed(by_id))
    return *jobs, *studies, *uncached


def is_timed(cell: Cell, asked: Collection[str], beside: Collection[str]) -> bool:
    """Whether a cell has timings of its own; `beside` are the cells that others are timed beside."""
    against = cell.timed_beside()
    return not cell.is_baseline or cell.cell_id not in beside or (against != cell and against.cell_id in asked)


def item_of(job: Job, kind: ItemKind, first: int, last: int) -> WorkItem:
    """The item for prompts `[first, last)` of a job."""
    repeats = job.repeats if kind == "timing" else 1
    suffix = f"-r{repeats}" if kind == "timing" else ""
    item_id = f"{job.cell_id}-{kind}-{first:06d}-{last:06d}{suffix}"
    return WorkItem(item_id=item_id, cell_id=job.cell_id, kind=kind, first=first, last=last, repeats=repeats)


def missing_items(
    jobs: Iterable[Job], stored: Mapping[str, Coverage], *, chunk: int, retry_failed: bool = False
) -> tuple[WorkItem, ...]:
    """The items whose prompts have no stored row, at most `chunk` prompts each, cut at multiples of `chunk`.

    A failed row counts as stored unless `retry_failed`; a timing with fewer repeats than wanted counts as missing.
    """
    items = []
    for job in jobs:
        rows = stored.get(job.cell_id, Coverage())
        for kind in KINDS:
            missing = (
                index
                for index in range(job.wanted(kind))
                if not rows.has(kind, index, job.repeats) and (retry_failed or (kind, index) not in rows.failed)
            )
            items += [item_of(job, kind, first, last) for first, last in _ranges(missing, chunk)]
    return tuple(items)


def _ranges(indexes: Iterable[int], chunk: int) -> Iterator[tuple[int, int]]:
    """Runs `[first, last)` of consecutive indexes that do not cross a multiple of `chunk`."""
    first = last = -1
    for index in indexes:
        if index != last or index % chunk == 0:
            if last > first:
                yield first, last
            first = index
        last = index + 1
    if last > first:
        yield first, last
