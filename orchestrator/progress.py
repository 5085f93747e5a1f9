"""Progress for people: a live line on a terminal, plain lines elsewhere; never a reason for a run to fail.

What is done of each kind of work, how fast each target goes, time left, failures: the numbers of a `Board`.
"""

import sys
import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orchestrator.board import Board
from orchestrator.events import RunEvent, RunEventKind
from orchestrator.words import counted, duration

PLAIN_SECONDS = 10.0
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


class PlainProgress:
    """A line for everything that matters and one every ten seconds, to a stream of any encoding."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._board = Board(clock=clock)
        self._spoken = 0.0
        self._last = ""

    def show(self, event: RunEvent) -> None:
        """Count an event in, and say so when it matters."""
        self._board.take(event)
        if event.kind in ALWAYS:
            self._say(sentence(event))
        if event.kind in ("started", "finished") or self._clock() - self._spoken >= PLAIN_SECONDS:
            self._spoken = self._clock()
            if (line := self._board.line()) != self._last:  # the end often has nothing new to say
                self._say(line)
            self._last = line

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
        grid.add_row(
            f"cells [bold]{board.cells_done}[/]/{board.cells}",
            f"[bold]{board.counts()}[/]",
            f"[{'red' if board.failed else 'green'}]failed {board.failed}[/]",
            counted(board.workers, "worker"),
            f"{duration(left)} left" if left is not None else "",
        )
        for target in board.rates:
            grid.add_row(escape(target), board.speeds(target), "", "", "")
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
