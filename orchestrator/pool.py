"""The contract of a worker pool: Ray actors or this very process, driven the same way.

A pool starts workers, gives each at most one item at a time and reports what happened. It decides nothing: retries,
deadlines and the order of work belong to the scheduler, files to the driver.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from sweeps.cell import Cell
from sweeps.records import ItemResult, WorkItem

EventKind = Literal["ready", "result", "lost", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolEvent:
    """Something a worker did: it became ready, finished its item, or was lost (dead, unreachable).

    A `note` is something people should know (`reason`). A `result` event without a result: the worker lives, but what
    it answered cannot be read (`reason` says why).
    """

    kind: EventKind
    worker: str
    result: ItemResult | None = None
    reason: str = ""


class Pool(Protocol):
    """Workers, one item in flight each."""

    def start(self, at_most: int = 0) -> tuple[str, ...]:
        """Start all workers, but no more than `at_most` (0: no bound); returns their names, not ready yet.

        Raises ValueError at once when the demand can never be met here.
        """

    def submit(self, worker: str, item: WorkItem, cell: Cell) -> None:
        """Hand an item to an idle worker; returns at once (an inline pool may run it in the next `wait`)."""

    def wait(self, timeout: float) -> tuple[PoolEvent, ...]:
        """Events since the last call; blocks up to `timeout` seconds for the first.

        Raises ValueError when no worker will ever do (it runs other code than the driver).
        """

    def replace(self, worker: str) -> str:
        """Kill a worker for good and start a fresh one in its place; returns the new one's name, not ready yet."""

    def close(self) -> None:
        """Stop everything this pool started. Safe to call twice and after an interrupt."""
