"""The loop of a driver over a pool: items to workers, answers back, what is lost or hangs replaced.

A run and a collection of trajectories are this loop with different desks: a desk says what a good answer is, keeps it,
and tells people. The table of what is in flight is the scheduler's; nothing here touches a file.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from orchestrator.events import RunEventKind
from orchestrator.pool import Pool, PoolEvent
from orchestrator.scheduler import Assignment, Scheduler
from orchestrator.stop import StopFlag
from sweeps.cell import Cell
from sweeps.records import Failure, ItemResult, WorkItem
from workers.guard import failed

POLL_SECONDS = 0.5


class Desk(Protocol):
    """Where answers go."""

    def cell(self, item: WorkItem) -> Cell:
        """What an item is a piece of."""

    def check(self, item: WorkItem, result: ItemResult) -> None:
        """Raise ValueError when that is no answer to the item."""

    def store(self, item: WorkItem, result: ItemResult, worker: str) -> None:
        """Keep the last word on an item: an answer, or that it was given up. What it raises ends the loop."""

    def tell(self, kind: RunEventKind, item: WorkItem | None = None, **fields: Any) -> None:
        """Something happened (fields of `RunEvent`)."""


class Crew:
    """The workers of one loop. Whoever calls `work` closes the pool, whatever happens."""

    def __init__(
        self, pool: Pool, scheduler: Scheduler, items: Mapping[str, WorkItem], desk: Desk, stop: StopFlag
    ) -> None:
        self.pool, self.scheduler, self.items, self.desk, self.stop = pool, scheduler, items, desk, stop
        self.trouble = ""

    def work(self) -> str:
        """Until every item is settled, or a reason to end early (which is returned)."""
        for worker in self.pool.start(at_most=len(self.items)):
            self.scheduler.started(worker)
        while not (self.scheduler.finished or self.stop.is_set()):
            if self.scheduler.exhausted:
                return f"no worker gets anything done: {self.trouble}"
            for assignment in self.scheduler.assign():
                self.hand_out(assignment)
            for event in self.pool.wait(POLL_SECONDS):
                self.take(event)
            for worker in self.scheduler.overdue():
                self.lose(worker, "no answer by its deadline")
        return ""

    def hand_out(self, assignment: Assignment) -> None:
        """Give an item to its worker."""
        item = assignment.item
        self.pool.submit(assignment.worker, item, self.desk.cell(item))
        self.desk.tell("item_started", item, worker=assignment.worker, attempt=assignment.attempt)

    def take(self, event: PoolEvent) -> None:
        """Act on what a worker did."""
        if event.kind == "ready":
            self.scheduler.ready(event.worker)
            self.desk.tell("worker_ready", worker=event.worker, message=event.reason)
        elif event.kind == "lost":
            self.lose(event.worker, event.reason)
        elif event.kind == "note":
            self.desk.tell("note", message=event.reason)
        elif item := self.scheduler.running(event.worker) or self.late(event.result):
            self.answer(event.worker, item, event.result, event.reason)

    def late(self, result: ItemResult | None) -> WorkItem | None:
        """The item that a worker which was given up still answers."""
        return self.items.get(result.item_id) if result else None

    def answer(self, worker: str, item: WorkItem, result: ItemResult | None, reason: str) -> None:
        """Store a worker's answer, or try again; a worker that failed for reasons of its own is replaced."""
        attempt = self.scheduler.attempts(item.item_id)
        if result is not None:
            try:
                result = replace(result, attempt=attempt, finished_at=time.time())
                self.desk.check(item, result)
            except ValueError as error:
                result, reason = None, str(error)
        result = result or given_up(item, "UnreadableResult", f"the worker's answer is no result: {reason}", attempt)
        machine = [failure for failure in result.failures if failure.kind == "infrastructure"]
        load = result.load_seconds
        verdict = self.scheduler.result(worker, item.item_id, healthy=not machine, load_seconds=load)
        if verdict in ("store", "give_up"):
            self.desk.store(item, result, worker)
        elif verdict == "retry":
            self.desk.tell("item_retried", item, worker=worker, attempt=attempt, message=machine[0].message)
        if machine:
            self.lose(worker, f"replaced after {machine[0].type}: {machine[0].message}")

    def lose(self, worker: str, reason: str) -> None:
        """A worker is gone or useless: another one takes its place, its item is tried again or given up."""
        if not self.scheduler.knows(worker):
            return
        item, verdict = self.scheduler.lost(worker)
        self.trouble = reason
        self.desk.tell("worker_lost", worker=worker, message=reason)
        if item is not None and verdict == "retry":
            attempt = self.scheduler.attempts(item.item_id)
            self.desk.tell("item_retried", item, worker=worker, attempt=attempt, message=reason)
        elif item is not None and verdict == "give_up":
            attempt = self.scheduler.attempts(item.item_id)
            message = f"killed its worker {attempt} times: {reason}"
            self.desk.store(item, given_up(item, "WorkerLost", message, attempt), worker)
        self.scheduler.started(self.pool.replace(worker))


def given_up(item: WorkItem, kind: str, message: str, attempt: int) -> ItemResult:
    """The result of an item that no worker could finish."""
    result = failed(item, Failure(kind="infrastructure", type=kind, message=message))
    return replace(result, attempt=attempt, finished_at=time.time())
