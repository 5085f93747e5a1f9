"""Collecting draft-free trajectories on a worker pool: cells and a number of prompts in, trace files out.

A file on disk that is whole and belongs to its cell and prompt is not collected again; anything else is replaced. Only
this process writes, each file at once or not at all, so whatever ends a collection, the next one goes on from there.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.deadlines import Placement
from orchestrator.pool import Pool, PoolEvent
from orchestrator.scheduler import Clock, Scheduler
from sweeps.cell import Cell
from sweeps.records import Failure, ItemResult, WorkItem
from sweeps.store import atomic_write

POLL_SECONDS = 0.5
CHUNK = 4  # prompts an item


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


def is_stored(path: Path, cell: Cell, index: int) -> bool:
    """Whether a whole trace of that cell and prompt is at `path`."""
    from workers.replay.trace import decode_trace  # torch: not at import time

    if not path.is_file():
        return False
    try:
        header = decode_trace(path.read_bytes()).header
    except ValueError:
        return False
    found = (header.cell_id, header.task_digest, header.split, header.prompt_index)
    return found == (cell.cell_id, cell.task.digest, cell.task.split, index)


def collect_traces(
    pool: Pool,
    cells: Mapping[Cell, int],
    folder: Path,
    *,
    progress: Callable[[CollectProgress], None] | None = None,
    clock: Clock = time.monotonic,
) -> Collected:
    """Traces of so many first prompts of each (draft-free) cell; starts and closes `pool`, if there is work.

    A prompt that fails is a failure in the outcome and its siblings go on. Raises ValueError when the pool can never do
    the work, or no worker gets anything done.
    """
    wanted = {
        (cell.cell_id, index): trace_path(folder, cell, index)
        for cell, prompts in cells.items()
        for index in range(prompts)
    }
    missing = {
        cell.cell_id: [i for i in range(prompts) if not is_stored(wanted[cell.cell_id, i], cell, i)]
        for cell, prompts in cells.items()
    }
    collection = _Collection(pool, {cell.cell_id: cell for cell in cells}, wanted, clock, progress or (lambda _: None))
    collection.run([item for cell in cells for item in items_of(cell.cell_id, missing[cell.cell_id])])
    failed = {(failure.cell_id, failure.row.prompt_index) for failure in collection.failures}
    paths = tuple(path for key, path in wanted.items() if key not in failed and path.is_file())
    return Collected(paths=paths, failures=tuple(failure.row for failure in collection.failures))


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
    """One run of the loop."""

    pool: Pool
    cells: dict[str, Cell]
    wanted: dict[tuple[str, int], Path]
    clock: Clock
    progress: Callable[[CollectProgress], None]
    failures: list[_FailedRow] = field(default_factory=list)
    done: int = 0
    kept: int = 0
    trouble: str = ""

    def run(self, items: Sequence[WorkItem]) -> None:
        """Until every item is settled; the pool is closed whatever happens."""
        self.kept = len(self.wanted) - sum(item.last - item.first for item in items)
        self.tell()
        if not items:
            return
        scheduler = Scheduler(items, {id: place_of(cell) for id, cell in self.cells.items()}, clock=self.clock)
        try:
            for worker in self.pool.start(at_most=len(items)):
                scheduler.started(worker)
            while not scheduler.finished:
                if scheduler.exhausted:
                    raise ValueError(f"traces: no worker gets anything done: {self.trouble}")
                for assignment in scheduler.assign():
                    cell = self.cells[assignment.item.cell_id]
                    self.pool.submit(assignment.worker, assignment.item, cell)
                for event in self.pool.wait(POLL_SECONDS):
                    self.take(scheduler, event)
                for worker in scheduler.overdue():
                    self.lose(scheduler, worker, "no answer by its deadline")
        finally:
            self.pool.close()

    def take(self, scheduler: Scheduler, event: PoolEvent) -> None:
        """Act on what a worker did."""
        if event.kind == "ready":
            scheduler.ready(event.worker)
        elif event.kind == "lost":
            self.lose(scheduler, event.worker, event.reason)
        elif event.kind == "result" and (item := scheduler.running(event.worker)):
            self.answer(scheduler, event.worker, item, event.result, event.reason)

    def answer(self, scheduler: Scheduler, worker: str, item: WorkItem, result: ItemResult | None, reason: str) -> None:
        """Store a worker's traces; try again when it failed for reasons of its own."""
        machine = [row for row in result.failures if row.kind == "infrastructure"] if result else []
        healthy = result is not None and result.item_id == item.item_id and not machine
        load = result.load_seconds if result else 0.0
        verdict = scheduler.result(worker, item.item_id, healthy=healthy, load_seconds=load)
        if not healthy:
            self.trouble = machine[0].message if machine else f"unreadable answer: {reason}"
        if verdict == "store" and result is not None:
            self.store(item, result)
        elif verdict == "give_up":
            self.give_up(item, self.trouble)
        if machine:
            self.lose(scheduler, worker, self.trouble)

    def lose(self, scheduler: Scheduler, worker: str, reason: str) -> None:
        """A worker is gone or useless: another one takes its place."""
        item, verdict = scheduler.lost(worker)
        self.trouble = reason
        if item is not None and verdict == "give_up":
            self.give_up(item, reason)
        self.tell(f"worker {worker} lost: {reason}")
        scheduler.started(self.pool.replace(worker))

    def store(self, item: WorkItem, result: ItemResult) -> None:
        """Write the item's traces and remember its failed rows."""
        from workers.replay.trace import decode_trace

        indices = set(range(item.first, item.last))
        for data in result.traces:
            index = decode_trace(data).header.prompt_index
            assert index in indices, f"trace of prompt {index} in an item of {item.first} to {item.last}"
            indices.remove(index)
            atomic_write(self.wanted[item.cell_id, index], data)
            self.done += 1
        reason = result.failures[0] if result.failures else None
        for index in sorted(indices):
            self.fail(item, index, next((row for row in result.failures if row.prompt_index == index), reason))
        self.tell(f"{reason.type}: {reason.message}" if reason else "")

    def give_up(self, item: WorkItem, reason: str) -> None:
        """No worker could finish the item."""
        failure = Failure(kind="infrastructure", type="WorkerLost", message=reason)
        for index in range(item.first, item.last):
            self.fail(item, index, failure)
        self.tell(reason)

    def fail(self, item: WorkItem, index: int, failure: Failure | None) -> None:
        """A prompt without a trace."""
        failure = failure or Failure(kind="deterministic", type="MissingTrace", message="the worker returned no trace")
        self.failures.append(_FailedRow(item.cell_id, replace(failure, prompt_index=index)))

    def tell(self, note: str = "") -> None:
        """Report progress."""
        failed = len(self.failures)
        self.progress(CollectProgress(total=len(self.wanted), kept=self.kept, done=self.done, failed=failed, note=note))


def place_of(cell: Cell) -> Placement:
    """Items of one target go to workers that hold it."""
    return Placement(target=f"{cell.target.name}/{cell.target.digest}/{cell.target.dtype}", group=cell.task.name)
