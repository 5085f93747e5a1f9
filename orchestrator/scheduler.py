"""Which item goes to which worker, when to give up on either: a pure state machine, no I/O, time injected.

An item is queued, running on one worker (an attempt), or in one final state: done, failed, or left (the run ended
without it). A worker is named once: what an old attempt still delivers is told from the present one by worker and item.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.deadlines import Deadlines, Placement, Policy
from sweeps.records import ItemKind, WorkItem

Clock = Callable[[], float]
State = Literal["queued", "running", "done", "failed", "left"]
Verdict = Literal["store", "retry", "give_up", "drop"]
KIND_ORDER: dict[ItemKind, int] = {"trace": 0, "decode": 1, "study": 2, "timing": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Hand this item to this worker."""

    worker: str
    item: WorkItem
    attempt: int


@dataclass(slots=True)
class _Task:
    item: WorkItem
    place: Placement
    order: int
    state: State = "queued"
    attempt: int = 0

    @property
    def rank(self) -> tuple[int, bool, int, int]:
        """Least first: tried before (poison is settled soon), baselines, decoding first, timing last, plan order."""
        return -self.attempt, not self.place.baseline, KIND_ORDER[self.item.kind], self.order


@dataclass(slots=True)
class _Worker:
    since: float
    task: _Task | None = None
    deadline: float = 0.0
    ready: bool = False
    used: bool = False
    target: str = ""


class Scheduler:
    """Told what happened (`started`, `ready`, `result`, `lost`), it answers what to do (`assign`, `overdue`)."""

    def __init__(
        self,
        items: Iterable[WorkItem],
        places: Mapping[str, Placement],
        *,
        clock: Clock,
        policy: Policy | None = None,
    ) -> None:
        self._clock = clock
        self._policy = policy or Policy()
        self._tasks = {
            item.item_id: _Task(item=item, place=places[item.cell_id], order=order) for order, item in enumerate(items)
        }
        self._workers: dict[str, _Worker] = {}
        self._deadlines = Deadlines(self._policy)
        self._queues: dict[str, list[tuple[tuple[int, bool, int, int], str]]] = {}
        self._waiting: dict[str, list[_Task]] = {}
        self._decoding: dict[str, int] = {}
        self._open = len(self._tasks)
        self._start_losses = 0
        self._stored = 0
        self._given_up = 0
        for task in self._tasks.values():
            if task.item.kind == "decode":
                self._decoding[task.item.cell_id] = self._decoding.get(task.item.cell_id, 0) + 1
        for task in self._tasks.values():
            self._enqueue(task)

    # ---- questions

    @property
    def finished(self) -> bool:
        """Whether every item is in a final state."""
        return self._open == 0

    @property
    def exhausted(self) -> bool:
        """Whether going on makes no sense: workers do not even start, or nothing but failures comes of them."""
        starts = self._policy.start_losses * max(1, len(self._workers))
        return self._start_losses >= starts or (self._stored == 0 and self._given_up >= self._policy.hopeless)

    def state(self, item_id: str) -> State:
        """Where an item is."""
        return self._tasks[item_id].state

    def counts(self) -> dict[State, int]:
        """How many items are in each state."""
        totals: dict[State, int] = {"queued": 0, "running": 0, "done": 0, "failed": 0, "left": 0}
        for task in self._tasks.values():
            totals[task.state] += 1
        return totals

    def knows(self, worker: str) -> bool:
        """Whether a worker is one of the present ones."""
        return worker in self._workers

    def running(self, worker: str) -> WorkItem | None:
        """The item in flight on a worker."""
        known = self._workers.get(worker)
        return known.task.item if known and known.task else None

    def assign(self) -> tuple[Assignment, ...]:
        """Give every idle worker the best item for it."""
        given = []
        for name, worker in self._workers.items():
            if worker.ready and worker.task is None and (task := self._pop(worker)):
                now = self._clock()
                worker.deadline = now + self._deadlines.allowance(
                    task.item, task.place, loaded=worker.target == task.place.target
                )
                worker.task, worker.since, worker.target, worker.used = task, now, task.place.target, True
                task.state, task.attempt = "running", task.attempt + 1
                given.append(Assignment(worker=name, item=task.item, attempt=task.attempt))
        return tuple(given)

    def overdue(self) -> tuple[str, ...]:
        """Workers past their deadline: hung with an item, or never ready."""
        now = self._clock()
        return tuple(
            name
            for name, worker in self._workers.items()
            if (not worker.ready or worker.task is not None) and now >= worker.deadline
        )

    # ---- events

    def started(self, worker: str) -> None:
        """A worker is on its way."""
        now = self._clock()
        self._workers[worker] = _Worker(since=now, deadline=now + self._policy.start_seconds)

    def ready(self, worker: str) -> None:
        """A worker can take items. Unknown (replaced) workers are ignored."""
        if worker in self._workers:
            self._workers[worker].ready = True

    def result(self, worker: str, item_id: str, *, healthy: bool, load_seconds: float = 0.0) -> Verdict:
        """A worker answered. `healthy` is false when the answer is an infrastructure failure or unreadable.

        store: write it (at most once an item) - retry: queued again - give_up: the last attempt
        failed too, write that - drop: the item is settled already (a late answer of an attempt that was given up).
        """
        task = self._tasks.get(item_id)
        known = self._workers.get(worker)
        present = known is not None and known.task is task
        if known is not None and present:
            if healthy and task is not None:
                self._deadlines.learn(task.item, task.place, self._clock() - known.since - load_seconds)
            known.task = None
        if task is None or task.state not in ("queued", "running"):
            return "drop"
        if healthy:
            self._start_losses = 0
            self._stored += 1
            self._settle(task, "done")
            return "store"
        return self._failed_attempt(task) if present else "drop"

    def lost(self, worker: str) -> tuple[WorkItem | None, Verdict]:
        """A worker is gone, with the item it had in flight: retry it, or give it up (it killed its last worker)."""
        known = self._workers.pop(worker, None)
        if known is None:
            return None, "drop"
        self._start_losses += not known.used
        if known.task is None or known.task.state != "running":
            return None, "drop"
        return known.task.item, self._failed_attempt(known.task)

    def attempts(self, item_id: str) -> int:
        """How often an item was handed out."""
        return self._tasks[item_id].attempt

    def leave(self) -> None:
        """The run ends: what is not settled is left for the next one."""
        for task in self._tasks.values():
            if task.state in ("queued", "running"):
                self._settle(task, "left")

    # ---- inside

    def _failed_attempt(self, task: _Task) -> Verdict:
        if task.attempt >= self._policy.attempts:
            self._given_up += 1
            self._settle(task, "failed")
            return "give_up"
        task.state = "queued"
        self._enqueue(task)
        return "retry"

    def _settle(self, task: _Task, state: State) -> None:
        task.state = state
        self._open -= 1
        cell = task.item.cell_id
        if task.item.kind == "decode":
            self._decoding[cell] -= 1
            if not self._decoding[cell]:
                for waiting in self._waiting.pop(cell, ()):
                    self._enqueue(waiting)

    def _enqueue(self, task: _Task) -> None:
        """Queue a task; a timing waits until its cell is decoded."""
        if task.item.kind == "timing" and self._decoding.get(task.item.cell_id):
            self._waiting.setdefault(task.item.cell_id, []).append(task)
        else:
            heapq.heappush(self._queues.setdefault(task.place.target, []), (task.rank, task.item.item_id))

    def _pop(self, worker: _Worker) -> _Task | None:
        """The best task for a worker: of its loaded target, else of the target with most work for each worker."""
        for target in self._by_need(worker.target):
            queue = self._queues[target]
            while queue:
                task = self._tasks[heapq.heappop(queue)[1]]
                if task.state == "queued":  # else it was settled by a late answer
                    return task
        return None

    def _by_need(self, loaded: str) -> list[str]:
        holders = [worker.target for worker in self._workers.values()]
        need = {target: len(queue) / (1 + holders.count(target)) for target, queue in self._queues.items() if queue}
        return sorted(need, key=lambda target: (target != loaded, -need[target], target))
