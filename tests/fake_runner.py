"""A runner without torch: its rows are a pure function of cell and prompt, and it misbehaves on request.

The request is a JSON file named by the target's path (no part of a cell's identity): `log` is appended one line an
execution, `seconds` is how long a prompt takes, `faults` maps a part of an item id to what goes wrong (the
first `times` times, always where `times` is absent).
"""

import hashlib
import json
import os
import signal
import threading
import time
from pathlib import Path

from sweeps.cell import Cell
from sweeps.records import Counters, Failure, GenerationRecord, ItemResult, TimingRecord, WorkItem


class NeedsArguments(Exception):  # noqa: N818
    """Cannot be unpickled: its constructor wants two arguments. Holds a lock, too."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"code {code}: {reason}")
        self.lock = threading.Lock()


class FakeRunner:
    """The runner the pools are tested with."""

    def __init__(self, device: str, threads: int) -> None:
        self.threads = threads
        self.omp = os.environ.get("OMP_NUM_THREADS", "")

    def run(self, item: WorkItem, cell: Cell) -> ItemResult:
        """Log the execution, misbehave if asked to, else answer."""
        request = json.loads(Path(cell.target.path).read_text()) if cell.target.path else {}
        before = log_execution(request.get("log"), item.item_id)
        for part, fault in request.get("faults", {}).items():
            if part in item.item_id and sum(part in line for line in before) < fault.get("times", 10**9):
                broken = misbehave(fault["what"], item)
                if broken is not None:
                    return broken
        time.sleep(request.get("seconds", 0.0) * (item.last - item.first))
        return answer(item, cell)


def log_execution(path: str | None, item_id: str) -> list[str]:
    """Append a line; returns the lines before."""
    if not path:
        return []
    log = Path(path)
    before = log.read_text().split() if log.exists() else []
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{item_id}\n".encode())
    os.close(descriptor)
    return before


def misbehave(what: str, item: WorkItem) -> ItemResult | None:
    """Fail in the way that was asked for."""
    if what == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        time.sleep(3600)
    if what == "exit":
        raise SystemExit(3)
    if what == "memory":
        raise MemoryError("cannot allocate 8 GiB")
    if what == "unpicklable":
        raise NeedsArguments(7, "no such tree")
    if what == "long":
        raise RuntimeError("x" * 5_000_000)
    if what == "garbage":
        return ItemResult(item_id=item.item_id, cell_id="elsewhere", kind=item.kind, first=item.first, last=item.last)
    if what == "none":
        return "not a result"  # type: ignore[return-value]
    if what == "row":
        row = Failure(kind="deterministic", type="ValueError", message="prompt too long", prompt_index=item.first)
        good = tuple(generation(item.cell_id, index) for index in range(item.first + 1, item.last))
        return ItemResult(
            item_id=item.item_id,
            cell_id=item.cell_id,
            kind=item.kind,
            first=item.first,
            last=item.last,
            generations=good,
            failures=(row,),
        )
    return None


def answer(item: WorkItem, cell: Cell) -> ItemResult:
    """A good result."""
    indexes = range(item.first, item.last)
    decode, timing, trace = item.kind == "decode", item.kind == "timing", item.kind == "trace"
    return ItemResult(
        item_id=item.item_id,
        cell_id=item.cell_id,
        kind=item.kind,
        first=item.first,
        last=item.last,
        generations=tuple(generation(cell.cell_id, index) for index in indexes) if decode else (),
        timings=tuple(timed(cell.cell_id, index, item.repeats) for index in indexes) if timing else (),
        traces=tuple(f"{cell.cell_id} {index}".encode() for index in indexes) if trace else (),
    )


def generation(cell_id: str, index: int) -> GenerationRecord:
    """The row of a prompt: tokens are a hash of cell and prompt."""
    ids = tuple(hashlib.sha256(f"{cell_id} {index}".encode()).digest()[:8])
    counters = Counters(
        nfe=8,
        prefill_forwards=1,
        prefill_positions=4,
        kv_passes=0,
        positions=64,
        accepted=(0,) * 8,
        drafted=(0,) * 8,
        merged=0,
        drafter_calls=0,
    )
    return GenerationRecord(
        prompt_id=f"p{index}",
        prompt_index=index,
        prompt_tokens=4,
        output_ids=ids,
        tokens_generated=8,
        tokens_kept=8,
        finish_reason="length",
        text=f"text {index} é 漢",
        correct=True,
        score_reason="",
        order=tuple(range(8)),
        rounds=tuple(range(8)),
        margins=(None, *([0.5] * 7)),
        counters=counters,
    )


def timed(cell_id: str, index: int, repeats: int) -> TimingRecord:
    """A timing row."""
    return TimingRecord(
        prompt_id=f"p{index}",
        prompt_index=index,
        tokens_kept=8,
        nfe=4,
        baseline_nfe=8,
        identical=True,
        variant_seconds=(0.5,) * repeats,
        baseline_seconds=(1.0,) * repeats,
        drafter_seconds=0.1,
        forward_seconds=0.3,
        walk_seconds=0.1,
    )
