"""What happens during a run, as it happens: one JSON object a line, and the same objects for whoever shows progress.

The log is for machines and for reading afterwards; it decides nothing. A full disk silences it, it never stops a run.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

import msgspec

RunEventKind = Literal[
    "started",  # items and rows to do, rows already stored
    "changed",  # one line of the difference to the last start
    "note",  # something people should know
    "worker_ready",
    "worker_lost",
    "item_started",
    "item_done",
    "item_retried",
    "item_failed",  # an answer with failed rows, or given up
    "quarantined",  # a file under results/ was no result of this run and was moved away
    "interrupted",
    "stopped",  # ended early, `message` says why
    "finished",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """One line. `rows`, `failed` and `stored` count prompts (of a kind); `time` is wall-clock seconds since 1970.

    A start says how many rows of each kind are to do and how often a timed prompt is repeated; what happens to an item
    says its kind (`work`; for an uncached reference that is `uncached`). `seconds` is what a worker took for it, of
    which `loading` before the first prompt. `cells_done` of `cells` have every wanted row, good or failed.
    """

    kind: RunEventKind
    time: float = 0.0
    item_id: str = ""
    cell_id: str = ""
    target: str = ""
    worker: str = ""
    attempt: int = 0
    work: str = ""
    rows: int = 0
    decode: int = 0
    timing: int = 0
    study: int = 0
    uncached: int = 0
    repeats: int = 0
    failed: int = 0
    stored: int = 0
    items: int = 0
    cells: int = 0
    cells_done: int = 0
    seconds: float = 0.0
    loading: float = 0.0
    message: str = ""


class Progress(Protocol):
    """Who watches: gets every event, and is closed at the end."""

    def show(self, event: RunEvent) -> None:
        """Something happened."""

    def close(self) -> None:
        """It is over."""


class EventLog:
    """Appends events to a file and hands them on to `show`."""

    def __init__(self, path: Path, show: Callable[[RunEvent], None], now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._show = show
        self._now = now
        self._file: IO[bytes] | None = None

    def write(self, event: RunEvent) -> None:
        """Stamp an event with the time, append it as one line (without the fields that say nothing), show it."""
        stamped = {name: value for name, value in msgspec.to_builtins(event).items() if value not in ("", 0)}
        stamped = {"kind": event.kind, "time": round(self._now(), 3), **stamped}
        with contextlib.suppress(OSError):  # results matter, the log does not
            if self._file is None:
                self._file = _open(self._path)
            self._file.write(msgspec.json.encode(stamped) + b"\n")
        self._show(event)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()


def read_events(path: Path) -> Iterator[RunEvent]:
    """The events of a log; a line that a crash cut short is skipped."""
    with path.open("rb") as lines:
        for line in lines:
            with contextlib.suppress(msgspec.MsgspecError):
                yield msgspec.json.decode(line, type=RunEvent)


def _open(path: Path) -> IO[bytes]:
    """The log, open for appending, on a line of its own."""
    torn = path.exists() and path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"
    file = path.open("ab", buffering=0)
    if torn:
        file.write(b"\n")
    return file
