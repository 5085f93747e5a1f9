"""Ctrl-C and SIGTERM: the first one asks the run to stop in order, the second one ends the process at once.

The handler only sets a flag, which the driver's loop sees within half a second; while an item runs in this very
process it also raises KeyboardInterrupt there, so that nobody waits for a long decode.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
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
            os._exit(EXIT_INTERRUPTED)  # stored results are whole at every moment, and workers die with us
        self.set(signal.Signals(number).name)
        if self._raising:
            raise KeyboardInterrupt


class NeverStop:
    """For callers without signals."""

    reason = ""

    def is_set(self) -> bool:
        """No."""
        return False
