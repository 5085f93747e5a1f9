"""Whatever a runner does, a result that can travel comes back."""

import errno
import threading

import msgspec
import pytest

from sweeps.records import ItemResult, WorkItem
from tests.fake_plan import a_cell
from tests.fake_runner import NeedsArguments, answer
from workers.actor import Hello, Worker
from workers.guard import failure_kind, failure_of, make_runner, run_guarded

CELL = a_cell()
ITEM = WorkItem(item_id="i", cell_id=CELL.cell_id, kind="decode", first=0, last=2)


class Raises:
    """A runner that raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def run(self, item: WorkItem, cell: object) -> ItemResult:
        raise self.error


class Mute(Exception):  # noqa: N818
    """Its message cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class OutOfMemoryError(RuntimeError):
    """As torch names it."""


@pytest.mark.parametrize(
    ("error", "type_", "message", "kind"),
    [
        (ValueError("bad prompt"), "ValueError", "bad prompt", "deterministic"),
        (SystemExit(3), "SystemExit", "3", "deterministic"),
        (NeedsArguments(1, "r"), "tests.fake_runner.NeedsArguments", "code 1: r", "deterministic"),
        (Mute(), f"{__name__}.Mute", "(its message cannot be shown: RuntimeError)", "deterministic"),
        (MemoryError("8 GiB"), "MemoryError", "8 GiB", "infrastructure"),
        (OutOfMemoryError("CUDA"), f"{__name__}.OutOfMemoryError", "CUDA", "infrastructure"),
        (OSError(errno.ENOSPC, "full"), "OSError", "[Errno 28] full", "infrastructure"),
        (FileNotFoundError(errno.ENOENT, "gone"), "FileNotFoundError", "[Errno 2] gone", "deterministic"),
        (ValueError("lone \ud800 surrogate"), "ValueError", "lone \\ud800 surrogate", "deterministic"),
    ],
)
def test_an_exception_becomes_a_row(error: BaseException, type_: str, message: str, kind: str) -> None:
    result = run_guarded(Raises(error), ITEM, CELL)
    (failure,) = result.failures
    assert (failure.type, failure.message, failure.kind, failure.prompt_index) == (type_, message, kind, -1)
    assert "raise self.error" in failure.traceback or type_.endswith("Mute")
    assert msgspec.json.decode(msgspec.json.encode(result), type=ItemResult) == result


def test_a_message_of_megabytes_keeps_both_ends() -> None:
    failure = failure_of(ValueError("begin " + "x" * 5_000_000 + " end"))
    assert failure.message.startswith("begin x")
    assert failure.message.endswith("x end")
    assert len(failure.message) < 2_100


def test_a_keyboard_interrupt_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_guarded(Raises(KeyboardInterrupt()), ITEM, CELL)


def test_kinds_follow_the_class_not_the_text() -> None:
    assert failure_kind(ValueError("out of memory")) == "deterministic"


class Rows:
    """A runner whose rows are no JSON."""

    def __init__(self, device: str, threads: int) -> None:
        self.threads = threads

    def run(self, item: WorkItem, cell: object) -> ItemResult:
        lock = threading.Lock()
        return ItemResult(
            item_id=item.item_id,
            cell_id=item.cell_id,
            kind="decode",
            first=item.first,
            last=item.last,
            generations=(lock,),  # type: ignore[arg-type]
        )


def test_a_worker_speaks_json_both_ways() -> None:
    worker = Worker("tests.fake_runner:FakeRunner", "cpu", 1)
    hello = msgspec.json.decode(worker.hello(), type=Hello)
    assert hello.error == ""
    answered = worker.run(msgspec.json.encode(ITEM), msgspec.json.encode(CELL))
    assert msgspec.json.decode(answered, type=ItemResult) == answer(ITEM, CELL)


def test_a_worker_that_cannot_start_says_why() -> None:
    hello = msgspec.json.decode(Worker("no.such.module:Runner", "cpu", 1).hello(), type=Hello)
    assert hello.error == "ModuleNotFoundError: No module named 'no'"


def test_rows_that_cannot_travel_become_a_failure() -> None:
    worker = Worker(Rows, "cpu", 1)
    worker.hello()
    answered = worker.run(msgspec.json.encode(ITEM), msgspec.json.encode(CELL))
    (failure,) = msgspec.json.decode(answered, type=ItemResult).failures
    assert failure.type == "TypeError"


def test_a_runner_is_made_from_its_name_or_itself() -> None:
    assert make_runner(Rows, "cpu", 3).threads == 3  # type: ignore[attr-defined]
    assert make_runner("tests.fake_runner:FakeRunner", "cpu", 2).threads == 2  # type: ignore[attr-defined]
