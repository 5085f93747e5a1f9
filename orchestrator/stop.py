"""Ctrl-C and SIGTERM: the first one asks the run to stop in order, the second one ends the process at once.

The handler only sets a flag, which the driver's loop sees within half a second; while an item runs in this very
process it also raises KeyboardInterrupt there, so that nobody waits for a long decode.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Protocol

EXIT_INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopFlag(Protocol):
    """A `threading.Event` or an `orchestrator.stop.Stop`."""

    def is_set(self) -> bool:
        """Whether the run should stop."""


class Stop:
    """A flag that is set once, with the name of the signal that set it."""

    def __init__(self) -> None:
        self.reason = ""
        self._raising = False

    def is_set(self) -> bool:
        """Whether the run should stop."""
        return bool(self.reason)

    def set(self, reason: str = "stopped") -> None:
        """Ask the run to stop."""
        self.reason = self.reason or reason

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """While the body runs, a signal raises KeyboardInterrupt in it."""
        self._raising = True
        try:
            if self.is_set():
                raise KeyboardInterrupt
            yield
        finally:
            self._raising = False

    @contextlib.contextmanager
    def on_signals(self) -> Iterator["Stop"]:
        """Listen to SIGINT and SIGTERM while the body runs (in the main thread; elsewhere it changes nothing)."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.is_set():
            kill_descendants()
            os._exit(EXIT_INTERRUPTED)  # stored results are whole at every moment
        self.set(signal.Signals(number).name)
        if self._raising:
            raise KeyboardInterrupt


def kill_descendants() -> None:
    """Kill every process below this one, as /proc tells (elsewhere they end by themselves, within half a minute)."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            parent = int(entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    found = list(children.get(os.getpid(), ()))
    for pid in found:
        found += children.get(pid, ())
    for pid in found:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


class NeverStop:
    """For callers without signals."""

    reason = ""

    def is_set(self) -> bool:
        """No."""
        return False
