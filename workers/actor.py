"""The process side of a Ray worker: a plain class whose methods take and return JSON bytes, and never raise.

It imports neither Ray nor torch: the pool makes an actor of it, and its runner imports torch when the thread counts in
the environment are already set. Bytes, not objects, cross the process border, so nothing fails to unpickle.
"""

import os
import socket
from dataclasses import dataclass

import msgspec

from sweeps.cell import Cell
from sweeps.origin import code_digest
from sweeps.records import WorkItem
from workers.guard import RunnerFactory, RunsItems, failed, failure_of, make_runner, run_guarded


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a worker says first. `error` is why it cannot work ("" when it can)."""

    code_digest: str
    host: str
    pid: int
    omp_threads: str
    error: str = ""


class Worker:
    """Holds one runner, made on `hello`, and gives it one item at a time."""

    def __init__(self, factory: RunnerFactory, device: str, threads: int) -> None:
        self._factory = factory
        self._device = device
        self._threads = threads
        self._runner: RunsItems | None = None

    def hello(self) -> bytes:
        """Make the runner; a `Hello` as JSON."""
        error = ""
        try:
            self._runner = make_runner(self._factory, self._device, self._threads)
        except BaseException as broken:
            failure = failure_of(broken)
            error = f"{failure.type}: {failure.message}"
        hello = Hello(
            code_digest=code_digest(),
            host=socket.gethostname(),
            pid=os.getpid(),
            omp_threads=os.environ.get("OMP_NUM_THREADS", ""),
            error=error,
        )
        return msgspec.json.encode(hello)

    def run(self, item_json: bytes, cell_json: bytes) -> bytes:
        """Run a `WorkItem` of a `Cell`; an `ItemResult` as JSON."""
        assert self._runner is not None, "hello comes first"
        item = msgspec.json.decode(item_json, type=WorkItem, strict=True)
        cell = msgspec.json.decode(cell_json, type=Cell, strict=True)
        result = run_guarded(self._runner, item, cell)
        try:
            return msgspec.json.encode(result)
        except BaseException as broken:  # rows that are no JSON
            return msgspec.json.encode(failed(item, failure_of(broken)))
