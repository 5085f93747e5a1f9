"""The pool that is this very process: the same items through the same guard, one after another, without Ray.

It cannot outlive an item that kills or hangs its process: that is what worker processes are for.
"""

import contextlib
from collections import deque

from orchestrator.pool import PoolEvent
from orchestrator.stop import Stop
from sweeps.cell import Cell
from sweeps.records import WorkItem
from workers.guard import RunnerFactory, RunsItems, make_runner, run_guarded

DEFAULT_RUNNER = "workers.runner:Runner"


class InlinePool:
    """One worker. An item handed in by `submit` runs in the next `wait`, where `stop` may interrupt it."""

    def __init__(
        self,
        *,
        runner_factory: RunnerFactory = DEFAULT_RUNNER,
        device: str = "cpu",
        threads: int = 1,
        stop: Stop | None = None,
    ) -> None:
        self._factory = runner_factory
        self._device = device
        self._threads = threads
        self._stop = stop
        self._made = 0
        self._runner: RunsItems | None = None
        self._work: tuple[WorkItem, Cell] | None = None
        self._events: deque[PoolEvent] = deque()

    def start(self, at_most: int = 0) -> tuple[str, ...]:
        """Make the runner. Raises what its class raises."""
        return (self._fresh(),)

    def submit(self, worker: str, item: WorkItem, cell: Cell) -> None:
        """Remember the item for the next `wait`."""
        assert worker == self._name, f"{worker} was replaced by {self._name}"
        assert self._work is None, "one item at a time"
        self._work = item, cell

    def wait(self, timeout: float) -> tuple[PoolEvent, ...]:
        """Run the item at hand, if any; never blocks without one. Raises KeyboardInterrupt when stopped in it."""
        if self._work is not None and self._runner is not None:
            (item, cell), self._work = self._work, None
            with self._stop.raising() if self._stop else contextlib.nullcontext():
                result = run_guarded(self._runner, item, cell)
            self._events.append(PoolEvent(kind="result", worker=self._name, result=result))
        events = tuple(self._events)
        self._events.clear()
        return events

    def replace(self, worker: str) -> str:
        """Drop the runner with all it has loaded and make another."""
        return self._fresh()

    def close(self) -> None:
        """Drop the runner."""
        self._runner = self._work = None
        self._events.clear()

    @property
    def _name(self) -> str:
        return f"inline-{self._made}"

    def _fresh(self) -> str:
        self._runner = None
        self._runner = make_runner(self._factory, self._device, self._threads)
        self._made += 1
        self._events.append(PoolEvent(kind="ready", worker=self._name))
        return self._name
