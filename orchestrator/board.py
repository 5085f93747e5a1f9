"""What there is to say of a run's progress, as numbers: what is done of each kind of work, how fast, how long it lasts.

A timed prompt costs several decodes and a studied one its own, so each kind has its own count and its own measured
cost; time left is what is open of each, at that cost, over the workers there are. All of it comes from events.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.events import RunEvent
from orchestrator.words import counted, duration

WINDOW = 200
WORDS = {"decode": "decoded", "timing": "timed", "study": "studied", "uncached": "uncached"}


@dataclass(slots=True)
class Rate:
    """Rows that came out since a moment: the count, and the last moments for a present rate."""

    since: float = 0.0
    rows: int = 0
    recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def add(self, now: float, rows: int) -> None:
        """Count rows in."""
        self.rows += rows
        self.recent.append((now, self.rows))

    def per_second(self) -> float:
        """Rows a second, over the window or since the beginning."""
        if not self.recent:
            return 0.0
        first, before = (self.since, 0) if len(self.recent) < WINDOW else self.recent[0]
        last, after = self.recent[-1]
        return (after - before) / max(last - first, 1e-9)


@dataclass(slots=True)
class Work:
    """One kind of work: rows to do, rows done, and the seconds that workers spent on those (loading left aside)."""

    todo: int = 0
    done: int = 0
    seconds: float = 0.0

    @property
    def cost(self) -> float | None:
        """Worker seconds a row, as measured; None before the first."""
        return self.seconds / self.done if self.done and self.seconds > 0 else None


@dataclass(slots=True)
class Board:
    """The numbers. `rates` are rows a second of each target and kind of work, failed ones left out."""

    clock: Callable[[], float] = time.monotonic
    last: float = 0.0
    failed: int = 0
    stored: int = 0
    cells: int = 0
    cells_done: int = 0
    workers: int = 0
    repeats: int = 1
    work: dict[str, Work] = field(default_factory=lambda: {kind: Work() for kind in WORDS})
    rates: dict[str, dict[str, Rate]] = field(default_factory=dict)

    def take(self, event: RunEvent) -> None:
        """Count an event in."""
        self.cells, self.cells_done = event.cells or self.cells, event.cells_done or self.cells_done
        if event.kind == "started":
            self.last, self.stored, self.repeats = self.clock(), event.stored, event.repeats or 1
            for kind in WORDS:
                self.work[kind].todo = getattr(event, kind)
        elif event.kind == "worker_ready":
            self.workers += 1
        elif event.kind == "worker_lost":
            self.workers = max(0, self.workers - 1)
        elif event.kind in ("item_done", "item_failed") and event.work in self.work:
            self.count(event)

    def count(self, event: RunEvent) -> None:
        """Count the rows of a finished item in. Failed ones are done, but add nothing to a rate."""
        now, work = self.clock(), self.work[event.work]
        work.done += event.rows
        work.seconds += max(0.0, event.seconds - event.loading)
        self.failed += event.failed
        good = max(0, event.rows - event.failed)
        self.rates.setdefault(event.target, {}).setdefault(event.work, Rate(since=self.last)).add(now, good)
        self.last = now

    def cost(self, kind: str) -> float | None:
        """Worker seconds a row of a kind: measured, or guessed from the other kinds; None before any result.

        A timed prompt is decoded by variant and draft-free, `repeats` times each after a warm-up each.
        """
        decodes = {"decode": 1, "study": 1, "timing": 2 * (self.repeats + 1), "uncached": 1}
        for known in (kind, *decodes):
            cost = self.work[known].cost
            if cost is not None:
                return cost * decodes[kind] / decodes[known]
        return None

    def seconds_left(self) -> float | None:
        """What is open of each kind at its cost, over the workers, less the time since the last result.

        None before the first result and behind the last one.
        """
        costs = {kind: self.cost(kind) for kind in self.work}
        open_rows = {kind: work.todo - work.done for kind, work in self.work.items()}
        seconds = sum(rows * (costs[kind] or 0.0) for kind, rows in open_rows.items())
        if all(cost is None for cost in costs.values()) or not any(rows > 0 for rows in open_rows.values()):
            return None
        return max(0.0, seconds / max(1, self.workers) - (self.clock() - self.last))

    def counts(self) -> str:
        """What is done of each kind that there is."""
        kinds = [f"{WORDS[kind]} {work.done}/{work.todo}" for kind, work in self.work.items() if work.todo]
        return ", ".join(kinds) or "nothing to do"

    def speeds(self, target: str) -> str:
        """Rows a second of a target, of each kind that it has done."""
        return ", ".join(f"{WORDS[kind]} {rate.per_second():.2f}/s" for kind, rate in self.rates[target].items())

    def line(self) -> str:
        """Everything on one line."""
        parts = [f"cells {self.cells_done}/{self.cells}", self.counts()]
        if self.stored:
            parts.append(f"{self.stored} stored before")
        parts.append(f"failed {self.failed}")
        parts += [f"{target} {self.speeds(target)}" for target in self.rates]
        left = self.seconds_left()
        if left is not None:
            parts.append(f"{duration(left)} left")
        parts.append(counted(self.workers, "worker"))
        return " | ".join(parts)
