"""Collecting draft-free trajectories on a worker pool: cells and a number of prompts in, trace files out.

A file on disk that is whole and belongs to its cell and prompt is not collected again; anything else is replaced. Only
this process writes, each file at once or not at all, so whatever ends a collection, the next one goes on from there.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orchestrator.crew import Crew
from orchestrator.deadlines import Placement
from orchestrator.events import RunEventKind
from orchestrator.pool import Pool
from orchestrator.scheduler import Clock, Scheduler
from orchestrator.stop import NeverStop
from sweeps.cell import Cell
from sweeps.records import Failure, ItemResult, WorkItem
from sweeps.store import atomic_write

CHUNK = 4  # prompts an item
NO_TRACE = Failure(kind="deterministic", type="MissingTrace", message="the worker returned no trace")


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectProgress:
    """Prompts so far: `kept` were on disk before, `done` are new, `failed` have no trace; `note` is for people."""

    total: int
    kept: int
    done: int
    failed: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Trace files in the order of cells and prompts, and the rows that failed."""

    paths: tuple[Path, ...]
    failures: tuple[Failure, ...]


def trace_path(folder: Path, cell: Cell, index: int) -> Path:
    """Where the trace of a cell's prompt lies below `folder`."""
    name = f"{cell.task.kind}-{cell.task.split}-T{cell.decode.temperature:g}-seed{cell.seed}-{cell.cell_id}"
    return folder / name / f"{index:06d}.trace"


def is_stored(path: Path, cell: Cell, index: int, *, states: bool = False) -> bool:
    """Whether a whole trace of that cell and prompt is at `path`, with hidden states where they are asked for."""
    from workers.replay.trace import decode_trace  # torch: not at import time

    if not path.is_file():
        return False
    try:
        trace = decode_trace(path.read_bytes())
    except ValueError:
        return False
    header = trace.header
    found = (header.cell_id, header.task_digest, header.split, header.prompt_index)
    return found == (cell.cell_id, cell.task.digest, cell.task.split, index) and trace.states >= states


def collect_traces(
    pool: Pool,
    cells: Mapping[Cell, int | range],
    folder: Path,
    *,
    states: bool = False,
    progress: Callable[[CollectProgress], None] | None = None,
    clock: Clock = time.monotonic,
) -> Collected:
    """Traces of so many first prompts of each (draft-free) cell, or of those in a range; starts and closes `pool`, if
    there is work. With `states` they hold hidden states too.

    A prompt that fails is a failure in the outcome and its siblings go on. Raises ValueError when the pool can never do
    the work, or no worker gets anything done.
    """
    wanted = {
        (cell.cell_id, index): trace_path(folder, cell, index)
        for cell, prompts in cells.items()
        for index in numbers(prompts)
    }
    missing = {
        cell.cell_id: [i for i in numbers(prompts) if not is_stored(wanted[cell.cell_id, i], cell, i, states=states)]
        for cell, prompts in cells.items()
    }
    collection = _Collection(pool, {cell.cell_id: cell for cell in cells}, wanted, clock, progress or (lambda _: None))
    items = [item for cell in cells for item in items_of(cell.cell_id, missing[cell.cell_id])]
    collection.run([replace(item, states=states) for item in items])
    failed = {(failure.cell_id, failure.row.prompt_index) for failure in collection.failures}
    paths = tuple(path for key, path in wanted.items() if key not in failed and path.is_file())
    return Collected(paths=paths, failures=tuple(failure.row for failure in collection.failures))


def numbers(prompts: int | range) -> range:
    """Some prompts of a split by number: the first ones, or those of a range."""
    return range(prompts) if isinstance(prompts, int) else prompts


def items_of(cell_id: str, indices: Sequence[int]) -> Iterator[WorkItem]:
    """Items over runs of neighbouring prompts, at most `CHUNK` each."""
    first = 0
    for at, index in enumerate(indices):
        if at + 1 == len(indices) or indices[at + 1] != index + 1 or at + 1 - first == CHUNK:
            start, last = indices[first], index + 1
            yield WorkItem(
                item_id=f"{cell_id}-trace-{start}-{last}", cell_id=cell_id, kind="trace", first=start, last=last
            )
            first = at + 1


@dataclass(frozen=True, slots=True)
class _FailedRow:
    cell_id: str
    row: Failure


@dataclass(slots=True)
class _Collection:
    """The desk of one collection."""

    pool: Pool
    cells: dict[str, Cell]
    wanted: dict[tuple[str, int], Path]
    clock: Clock
    progress: Callable[[CollectProgress], None]
    failures: list[_FailedRow] = field(default_factory=list)
    done: int = 0
    kept: int = 0

    def run(self, items: Sequence[WorkItem]) -> None:
        """Until every item is settled; the pool is closed whatever happens."""
        self.kept = len(self.wanted) - sum(item.last - item.first for item in items)
        self.report()
        if not items:
            return
        scheduler = Scheduler(items, {id: place_of(cell) for id, cell in self.cells.items()}, clock=self.clock)
        try:
            trouble = Crew(self.pool, scheduler, {item.item_id: item for item in items}, self, NeverStop()).work()
        finally:
            self.pool.close()
        if trouble:
            raise ValueError(f"traces: {trouble}")

    def cell(self, item: WorkItem) -> Cell:
        """The cell of an item."""
        return self.cells[item.cell_id]

    def check(self, item: WorkItem, result: ItemResult) -> None:
        """Raise ValueError unless these are traces of different prompts of the item."""
        found = indices_of(result)
        if result.item_id != item.item_id or len(set(found)) < len(found) or not set(found) <= prompts_of(item):
            raise ValueError(f"traces of prompts {found} for item {item.item_id}")

    def store(self, item: WorkItem, result: ItemResult, worker: str) -> None:
        """Write the item's traces and remember the rows that have none."""
        found = indices_of(result)
        for index, data in zip(found, result.traces, strict=True):
            atomic_write(self.wanted[item.cell_id, index], data)
            self.done += 1
        whole = result.failures[0] if result.failures else NO_TRACE
        rows = {row.prompt_index: row for row in result.failures}
        for index in sorted(prompts_of(item) - set(found)):
            self.failures.append(_FailedRow(item.cell_id, replace(rows.get(index, whole), prompt_index=index)))
        self.report(f"{whole.type}: {whole.message}" if result.failures else "")

    def tell(self, kind: RunEventKind, item: WorkItem | None = None, *, message: str = "", **fields: Any) -> None:
        """Report what people should know."""
        if kind == "worker_lost":
            self.report(f"worker {fields['worker']} lost: {message}")
        elif kind == "note":
            self.report(message)

    def report(self, note: str = "") -> None:
        """Report progress."""
        failed = len(self.failures)
        self.progress(CollectProgress(total=len(self.wanted), kept=self.kept, done=self.done, failed=failed, note=note))


def prompts_of(item: WorkItem) -> set[int]:
    """The prompts an item asks for."""
    return set(range(item.first, item.last))


def indices_of(result: ItemResult) -> list[int]:
    """The prompt of each trace of an answer. Raises ValueError for what is no trace."""
    from workers.replay.trace import decode_trace

    return [decode_trace(data).header.prompt_index for data in result.traces]


def place_of(cell: Cell) -> Placement:
    """Items of one target go to workers that hold it."""
    return Placement(target=f"{cell.target.name}/{cell.target.digest}/{cell.target.dtype}", group=cell.task.name)
