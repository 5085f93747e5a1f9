"""The driver: plan minus done, handed to a pool, stored. The only writer of a run directory.

The loop is `Crew`'s. Whatever ends it (done, Ctrl-C, a full disk, no workers), stored rows stay, the pool is closed,
and the next start does what is missing.
"""

import time
from contextlib import closing
from typing import Any

from orchestrator.crew import Crew
from orchestrator.deadlines import Placement, Policy
from orchestrator.events import EventLog, Progress, RunEvent, RunEventKind
from orchestrator.opening import open_results
from orchestrator.outcome import RunOutcome, tally
from orchestrator.pool import Pool
from orchestrator.scheduler import Clock, Scheduler
from orchestrator.stop import NeverStop, StopFlag
from sweeps.belongs import check_belongs, record_start
from sweeps.cell import Cell
from sweeps.lock import LockedError, RunLock
from sweeps.origin import Origin, origin_of
from sweeps.records import ItemResult, WorkItem
from sweeps.results import Loaded, verified
from sweeps.store import RunDir, atomic_write
from sweeps.todo import KINDS, Job, Plan, missing_items

UNCACHED = "uncached"


def run_plan(
    plan: Plan,
    run: RunDir,
    pool: Pool,
    *,
    progress: Progress,
    clock: Clock = time.monotonic,
    stop: StopFlag | None = None,
    policy: Policy | None = None,
    origin: Origin | None = None,
    retry_failed: bool = False,
    accept_changes: bool = False,
) -> RunOutcome:
    """Run what is missing of `plan` in `run`; when nothing is, the pool is not even started.

    Raises ValueError, before any work, when the directory is somebody else's, in use, or was made with other code or
    libraries (unless `accept_changes`), and when the pool can never meet its demand.
    """
    check_belongs(run, plan.spec.name)
    origin = origin or origin_of((), time.time())
    with RunLock(run) as lock, closing(progress), closing(EventLog(run.events, progress.show)) as log:
        notes = record_start(run, plan, origin, accept_changes=accept_changes)
        for line in notes:
            log.write(RunEvent(kind="changed", message=line))
        if lock.note:
            log.write(RunEvent(kind="note", message=lock.note))
        loaded = open_results(run, log)
        items = missing_items(plan.jobs, loaded.cells, chunk=plan.spec.measure.chunk, retry_failed=retry_failed)
        places = {job.cell_id: place_of(job) for job in plan.jobs}
        scheduler = Scheduler(items, places, clock=clock, policy=policy)
        drive = _Drive(plan, run, pool, lock, log, loaded, items, scheduler, stop or NeverStop())
        return drive.run()


def place_of(job: Job) -> Placement:
    """Items of one target and cache go to workers that hold it; of equal lengths and budgets take comparable time."""
    spec = job.cell.target
    target = f"{spec.name}/{spec.digest[:12]}/{spec.dtype}/{spec.cache}"
    drafter = job.cell.drafter
    decode = job.cell.decode
    group = f"{job.cell.task.name}/{decode.max_new_tokens}/{decode.commit}/{drafter.kind}/{drafter.budget}"
    return Placement(target=target, group=group, baseline=job.cell.is_baseline and not job.reference)


class _Drive:
    """The desk of one run: files are written here only."""

    def __init__(
        self,
        plan: Plan,
        run: RunDir,
        pool: Pool,
        lock: RunLock,
        log: EventLog,
        loaded: Loaded,
        items: tuple[WorkItem, ...],
        scheduler: Scheduler,
        stop: StopFlag,
    ) -> None:
        self.run_dir, self.pool, self.lock, self.log, self.loaded = run, pool, lock, log, loaded
        self.scheduler, self.stop = scheduler, stop
        self.jobs = {job.cell_id: job for job in plan.jobs}
        self.items = {item.item_id: item for item in items}
        self.before = tally(plan.jobs, loaded)
        self.missing = dict.fromkeys(self.jobs, 0)
        for item in items:
            self.missing[item.cell_id] += item.last - item.first
        self.complete = sum(not rows for rows in self.missing.values())

    def run(self) -> RunOutcome:
        """Drive to the end, close the pool, say how it ended."""
        kinds: dict[str, Any] = dict.fromkeys((*KINDS, UNCACHED), 0)
        for item in self.items.values():
            kinds[self.work_of(item)] += item.last - item.first
        kept, repeats = self.before.good, max((item.repeats for item in self.items.values()), default=1)
        self.tell("started", items=len(self.items), rows=sum(kinds.values()), stored=kept, repeats=repeats, **kinds)
        message, interrupted = "", False
        if self.items:
            try:
                message = Crew(self.pool, self.scheduler, self.items, self, self.stop).work()
                interrupted = self.stop.is_set() and not self.scheduler.finished
            except KeyboardInterrupt:
                interrupted = True
            except (OSError, LockedError) as error:
                what = error.strerror if isinstance(error, OSError) and error.strerror else error
                message = f"{what}; stored results are whole, the same command goes on from there"
            except ValueError as error:
                self.tell("stopped", message=str(error))
                raise
            finally:
                self.pool.close()
        self.scheduler.leave()
        after = tally(self.jobs.values(), self.loaded)
        if interrupted:
            self.tell("interrupted", rows=after.open, message=getattr(self.stop, "reason", ""))
        elif message:
            self.tell("stopped", rows=after.open, message=message)
        self.tell("finished", stored=after.good, failed=after.failed, rows=after.open)
        return RunOutcome(
            done=after.good - kept,
            failed=after.failed,
            skipped=kept,
            left=after.open,
            interrupted=interrupted,
            message=message,
        )

    def cell(self, item: WorkItem) -> Cell:
        """The cell of an item."""
        return self.jobs[item.cell_id].cell

    def work_of(self, item: WorkItem) -> str:
        """The kind of an item for whoever watches: a reference costs several times what other decoding does."""
        return UNCACHED if self.jobs[item.cell_id].reference else item.kind

    def check(self, item: WorkItem, result: ItemResult) -> None:
        """Raise ValueError when a worker's answer is no result of the item."""
        verified(item, result)

    def store(self, item: WorkItem, result: ItemResult, worker: str) -> None:
        """Write a result. Raises OSError (disk) or LockedError (another driver took over)."""
        data = verified(item, result)
        self.lock.check()
        atomic_write(self.run_dir.result(item.cell_id, item.item_id), data)
        self.loaded.add(result)
        self.missing[item.cell_id] -= item.last - item.first
        self.complete += not self.missing[item.cell_id]
        bad = result.failures
        self.tell(
            "item_failed" if bad else "item_done",
            item,
            worker=worker,
            attempt=result.attempt,
            failed=item.last - item.first if bad and bad[0].prompt_index == -1 else len(bad),
            seconds=result.seconds,
            loading=result.load_seconds,
            message=f"{bad[0].type}: {bad[0].message}" if bad else "",
        )

    def tell(self, kind: RunEventKind, item: WorkItem | None = None, **fields: Any) -> None:
        """Log and show an event; every one of them carries how many cells are complete."""
        if item is not None:
            target = self.jobs[item.cell_id].cell.target.name
            rows = item.last - item.first
            work = self.work_of(item)
            what = {"item_id": item.item_id, "cell_id": item.cell_id, "target": target, "work": work, "rows": rows}
            fields = {**what, **fields}
        self.log.write(RunEvent(kind=kind, cells=len(self.jobs), cells_done=self.complete, **fields))
