"""Progress for people: a live line on a terminal, plain lines elsewhere; never a reason for a run to fail.

Cells done, prompts a second of each target, time left, failures. All of it comes from the run's events.
"""

import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orchestrator.events import RunEvent, RunEventKind

PLAIN_SECONDS = 10.0
WINDOW = 200
ALWAYS: tuple[RunEventKind, ...] = (
    "changed",
    "note",
    "worker_lost",
    "item_retried",
    "item_failed",
    "quarantined",
    "interrupted",
    "stopped",
)


@dataclass(slots=True)
class Rate:
    """Rows finished for one target: the count, and the last moments for a present rate."""

    rows: int = 0
    recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def add(self, now: float, rows: int) -> None:
        """Count rows in."""
        self.rows += rows
        self.recent.append((now, self.rows))

    def per_second(self, began: float) -> float:
        """Rows a second, over the window or since `began`."""
        if not self.recent:
            return 0.0
        first, before = (began, 0) if len(self.recent) < WINDOW else self.recent[0]
        last, after = self.recent[-1]
        return (after - before) / max(last - first, 1e-9)


@dataclass(slots=True)
class Board:
    """What there is to say, as numbers."""

    clock: Callable[[], float] = time.monotonic
    began: float = 0.0
    todo: int = 0
    done: int = 0
    failed: int = 0
    stored: int = 0
    cells: int = 0
    cells_done: int = 0
    workers: int = 0
    rates: dict[str, Rate] = field(default_factory=dict)

    def take(self, event: RunEvent) -> None:
        """Count an event in."""
        self.cells, self.cells_done = event.cells or self.cells, event.cells_done or self.cells_done
        if event.kind == "started":
            self.began, self.todo, self.stored = self.clock(), event.rows, event.stored
        elif event.kind == "worker_ready":
            self.workers += 1
        elif event.kind == "worker_lost":
            self.workers = max(0, self.workers - 1)
        elif event.kind in ("item_done", "item_failed"):
            self.done += event.rows
            self.failed += event.failed
            self.rates.setdefault(event.target, Rate()).add(self.clock(), event.rows)

    def seconds_left(self) -> float | None:
        """At the present pace; None before the first result."""
        pace = sum(rate.per_second(self.began) for rate in self.rates.values())
        return (self.todo - self.done) / pace if pace > 0 else None

    def line(self) -> str:
        """Everything on one line."""
        parts = [f"cells {self.cells_done}/{self.cells}", f"prompts {self.done}/{self.todo}"]
        if self.stored:
            parts.append(f"{self.stored} stored before")
        parts.append(f"failed {self.failed}")
        parts += [f"{name} {rate.per_second(self.began):.2f}/s" for name, rate in self.rates.items()]
        left = self.seconds_left()
        if left is not None and self.done < self.todo:
            parts.append(f"{duration(left)} left")
        parts.append(f"{self.workers} workers")
        return " | ".join(parts)


class PlainProgress:
    """A line for everything that matters and one every ten seconds, to a stream of any encoding."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._board = Board(clock=clock)
        self._spoken = 0.0

    def show(self, event: RunEvent) -> None:
        """Count an event in, and say so when it matters."""
        self._board.take(event)
        if event.kind in ALWAYS:
            self._say(sentence(event))
        if event.kind in ("started", "finished") or self._clock() - self._spoken >= PLAIN_SECONDS:
            self._spoken = self._clock()
            self._say(self._board.line())

    def close(self) -> None:
        """Nothing is held open."""

    def _say(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "ascii"
        try:
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # a closed pipe is no reason to stop a run
            self._stream = _Nowhere()


class LiveProgress:
    """A line a target, redrawn in place; what matters scrolls by above it."""

    def __init__(self, console: Console) -> None:
        self._board = Board()
        self._console = console
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=4, transient=False)

    def show(self, event: RunEvent) -> None:
        """Count an event in; the display starts with the first one."""
        self._board.take(event)
        if not self._live.is_started:
            self._live.start()
        if event.kind in ALWAYS:
            self._console.print(Text(sentence(event)))

    def close(self) -> None:
        """Leave the last state on the screen."""
        self._live.stop()

    def _table(self) -> Table:
        board = self._board
        grid = Table.grid(padding=(0, 2))
        left = board.seconds_left()
        eta = f"{duration(left)} left" if left is not None and board.done < board.todo else ""
        colour = "red" if board.failed else "green"
        grid.add_row(
            f"cells [bold]{board.cells_done}[/]/{board.cells}",
            f"prompts [bold]{board.done}[/]/{board.todo}",
            f"[{colour}]failed {board.failed}[/]",
            f"{board.workers} workers",
            eta,
        )
        for name, rate in board.rates.items():
            grid.add_row(escape(name), f"{rate.rows} prompts", f"{rate.per_second(board.began):.2f}/s", "", "")
        return grid


class _Nowhere:
    """A stream that takes everything."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


def make_progress(stream: TextIO | None = None) -> LiveProgress | PlainProgress:
    """A live display when `stream` (standard error by default) is a terminal that can show one, else plain lines."""
    stream = stream if stream is not None else sys.stderr
    console = Console(file=stream)
    utf8 = (getattr(stream, "encoding", "") or "").lower().replace("-", "") == "utf8"
    return (
        LiveProgress(console)
        if console.is_terminal and not console.is_dumb_terminal and utf8
        else PlainProgress(stream)
    )


def sentence(event: RunEvent) -> str:
    """An event as a line."""
    what = " ".join(part for part in (event.kind.replace("_", " "), event.item_id, event.worker) if part)
    attempt = f" (attempt {event.attempt})" if event.attempt > 1 else ""
    return f"{what}{attempt}: {event.message}" if event.message else f"{what}{attempt}"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
