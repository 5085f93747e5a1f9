"""The last line of defence around a runner: whatever it raises or returns becomes an `ItemResult` that can travel.

A failure is a row, never an exception that crosses a process: classes with required arguments, locks, or modules only
one side has would hide the real error or take the worker with them. Only a keyboard interrupt passes.
"""

import errno
import traceback
from collections.abc import Callable
from typing import Protocol

from sweeps.cell import Cell
from sweeps.records import Failure, FailureKind, ItemResult, WorkItem
from workers.catalog import resolve

MESSAGE_CHARACTERS = 2_000
TRACEBACK_CHARACTERS = 8_000
MACHINE_ERRORS = (errno.ENOSPC, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EIO, errno.ESTALE)


class RunsItems(Protocol):
    """What a pool needs of a runner."""

    def run(self, item: WorkItem, cell: Cell) -> ItemResult:
        """Decode, time or trace the prompts of an item."""


RunnerFactory = str | Callable[[str, int], RunsItems]


def make_runner(factory: RunnerFactory, device: str, threads: int) -> RunsItems:
    """A runner from its class or "module:attribute"."""
    make = resolve(factory) if isinstance(factory, str) else factory
    runner: RunsItems = make(device, threads)
    return runner


def run_guarded(runner: RunsItems, item: WorkItem, cell: Cell) -> ItemResult:
    """What `runner` returns, or the failure of the whole item. Raises nothing but KeyboardInterrupt."""
    try:
        result = runner.run(item, cell)
        if not isinstance(result, ItemResult):
            raise TypeError(f"the runner returned {type(result).__name__}, not ItemResult")
        return result
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: code under test may not end a worker
        return failed(item, failure_of(error))


def failed(item: WorkItem, failure: Failure) -> ItemResult:
    """The result of an item that has nothing but a failure."""
    return ItemResult(
        item_id=item.item_id,
        cell_id=item.cell_id,
        kind=item.kind,
        first=item.first,
        last=item.last,
        failures=(failure,),
    )


def failure_of(error: BaseException) -> Failure:
    """An exception as a row: its class, its message and its traceback, each cut to a bound."""
    try:
        message = str(error)
    except Exception as broken:
        message = f"(its message cannot be shown: {type(broken).__name__})"
    try:
        trace = "".join(traceback.format_exception(error))
    except Exception:
        trace = ""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return Failure(
        kind=failure_kind(error),
        type=name,
        message=_printable(_cut(message, MESSAGE_CHARACTERS)),
        traceback=_printable(_cut(trace, TRACEBACK_CHARACTERS)),
    )


def failure_kind(error: BaseException) -> FailureKind:
    """Infrastructure when another try, elsewhere or later, may well succeed: memory, disk, open files, the GPU."""
    names = {kind.__name__ for kind in type(error).__mro__}
    machine = isinstance(error, OSError) and error.errno in MACHINE_ERRORS
    if isinstance(error, MemoryError) or machine or names & {"OutOfMemoryError", "AcceleratorError"}:
        return "infrastructure"
    return "deterministic"


def _cut(text: str, most: int) -> str:
    """Both ends of a text that is too long."""
    if len(text) <= most:
        return text
    half = most // 2 - 20
    return f"{text[:half]} [... {len(text) - 2 * half} characters ...] {text[-half:]}"


def _printable(text: str) -> str:
    """Text without lone surrogates, which no UTF-8 file can hold."""
    return text.encode("utf-8", "backslashreplace").decode()
