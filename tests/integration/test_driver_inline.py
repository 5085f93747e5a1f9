"""The driver with the pool in this process: what is stored, what is retried, what is told, how it ends."""

import errno
import os
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.board import Board
from orchestrator.driver import run_plan
from orchestrator.events import read_events
from orchestrator.outcome import RunOutcome
from orchestrator.pool import PoolEvent
from orchestrator.pool_inline import InlinePool
from orchestrator.stop import Stop
from sweeps.belongs import read_history
from sweeps.cell import Cell
from sweeps.lock import LockedError, RunLock
from sweeps.origin import origin_of
from sweeps.records import ItemResult, WorkItem
from sweeps.results import load_results
from sweeps.store import RunDir
from sweeps.todo import Plan
from tests.drive import executions
from tests.fake_plan import RUNNER, Watch, a_plan, stored, timeless
from tests.fake_runner import answer


class NoPool(InlinePool):
    """A pool that must not be started."""

    def start(self, at_most: int = 0) -> tuple[str, ...]:
        raise AssertionError("the pool was started")


def go(plan: Plan, tmp_path: Path, watch: Watch | None = None, pool: Any = None, **options: Any) -> RunOutcome:
    pool = pool or InlinePool(runner_factory=RUNNER)
    return run_plan(plan, RunDir(tmp_path / "run"), pool, progress=watch or Watch(), **options)


def requested(tmp_path: Path, **options: Any) -> Plan:
    return a_plan(tmp_path, log=str(tmp_path / "log"), **options)


def test_a_run_stores_what_the_runner_answers_and_a_second_one_starts_nothing(tmp_path: Path) -> None:
    plan = requested(tmp_path, timed=2, repeats=3)
    outcome = go(plan, tmp_path)
    assert (outcome.done, outcome.failed, outcome.skipped, outcome.left, outcome.exit_code) == (10, 0, 0, 0, 0)
    cells = {job.cell_id: job.cell for job in plan.jobs}
    rows = stored(RunDir(tmp_path / "run"))
    assert sorted(rows) == sorted(executions(tmp_path))
    for result in rows.values():
        item = WorkItem(
            item_id=result.item_id,
            cell_id=result.cell_id,
            kind=result.kind,
            first=result.first,
            last=result.last,
            repeats=3 if result.kind == "timing" else 1,
        )
        assert result == timeless(answer(item, cells[result.cell_id]))
    watch = Watch()
    again = go(plan, tmp_path, watch, pool=NoPool(runner_factory=RUNNER))
    assert (again.done, again.skipped, again.exit_code) == (0, 10, 0)
    assert watch.kinds() == ["started", "finished"]


def test_every_kind_of_work_is_announced_and_reported_apart(tmp_path: Path) -> None:
    watch, board = Watch(), Board()
    go(requested(tmp_path, cells=3, prompts=5, timed=2, repeats=3), tmp_path, watch)
    started = watch.events[0]
    assert (started.decode, started.timing, started.study, started.repeats) == (3 * 5, 2 * 2, 0, 3)
    assert started.rows == 3 * 5 + 2 * 2
    done: Counter[str] = Counter()
    for event in watch.events:
        board.take(event)
        if event.kind == "item_done":
            assert f"-{event.work}-" in event.item_id
            assert event.seconds >= event.loading >= 0
            done[event.work] += event.rows
    assert done == {"decode": 15, "timing": 4}
    assert board.counts() == "decoded 15/15, timed 4/4"
    assert board.seconds_left() is None


def test_more_prompts_and_another_chunk_size_run_only_what_is_missing(tmp_path: Path) -> None:
    go(requested(tmp_path, cells=1, prompts=4, chunk=3), tmp_path)
    watch = Watch()
    outcome = go(requested(tmp_path, cells=1, prompts=9, chunk=4), tmp_path, watch)
    assert (outcome.done, outcome.skipped) == (5, 4)
    ranges = [tuple(int(part) for part in name.split("-")[2:4]) for name in executions(tmp_path)]
    assert ranges == [(0, 3), (3, 4), (4, 8), (8, 9)]
    assert watch.messages("changed") == ["spec measure.prompts: 4 -> 9", "spec measure.chunk: 3 -> 4"]


@pytest.mark.parametrize(
    ("what", "kind", "type_", "message"),
    [
        ("exit", "deterministic", "SystemExit", "3"),
        ("unpicklable", "deterministic", "tests.fake_runner.NeedsArguments", "code 7: no such tree"),
        ("none", "deterministic", "TypeError", "the runner returned str, not ItemResult"),
        ("memory", "infrastructure", "MemoryError", "cannot allocate 8 GiB"),
        ("garbage", "infrastructure", "UnreadableResult", "cell_id is 'elsewhere'"),
    ],
)
def test_a_failure_is_a_row_with_its_reason_and_the_rest_runs(
    tmp_path: Path, what: str, kind: str, type_: str, message: str
) -> None:
    plan = requested(tmp_path, faults={"decode-000002": {"what": what}})
    bad = plan.jobs[0].cell_id
    watch = Watch()
    outcome = go(plan, tmp_path, watch)
    assert (outcome.done, outcome.failed, outcome.left, outcome.exit_code) == (4, 4, 0, 1)
    (failure,) = stored(RunDir(tmp_path / "run"))[f"{bad}-decode-000002-000004"].failures
    assert (failure.kind, failure.type) == (kind, type_)
    assert message in failure.message
    attempts = 3 if kind == "infrastructure" else 1
    assert Counter(executions(tmp_path))[f"{bad}-decode-000002-000004"] == attempts
    assert len(watch.messages("item_retried")) == 2 * (attempts - 1)
    assert any(message in line for line in watch.messages("item_failed"))


def test_a_message_of_megabytes_is_cut(tmp_path: Path) -> None:
    go(requested(tmp_path, cells=1, faults={"decode-000000": {"what": "long"}}), tmp_path)
    results = stored(RunDir(tmp_path / "run"))
    (failure,) = next(result.failures for result in results.values() if result.failures)
    assert failure.type == "RuntimeError"
    assert failure.message.startswith("x" * 900)
    assert "characters" in failure.message
    assert len(failure.message) < 2_100
    assert len(failure.traceback) < 8_100


def test_a_failed_row_does_not_fail_its_siblings_and_stays_failed_until_asked(tmp_path: Path) -> None:
    plan = requested(tmp_path, cells=1, faults={"decode-000000": {"what": "row", "times": 1}})
    first = go(plan, tmp_path)
    assert (first.done, first.failed, first.exit_code) == (3, 1, 1)
    again = go(plan, tmp_path, pool=NoPool(runner_factory=RUNNER))
    assert (again.done, again.failed, again.exit_code) == (0, 1, 1)
    healed = go(plan, tmp_path, retry_failed=True)
    assert (healed.done, healed.failed, healed.exit_code) == (1, 0, 0)
    assert executions(tmp_path)[-1].endswith("decode-000000-000001")


def test_a_machine_trouble_that_passes_leaves_no_trace_but_the_attempt(tmp_path: Path) -> None:
    plan = requested(tmp_path, cells=1, faults={"decode-000000": {"what": "memory", "times": 2}})
    watch = Watch()
    assert go(plan, tmp_path, watch).exit_code == 0
    first = next(result for result in load_results(RunDir(tmp_path / "run")).results if result.first == 0)
    assert (first.attempt, first.failures) == (3, ())
    assert [event.kind for event in watch.events][:6] == [
        "started",
        "worker_ready",
        "item_started",
        "item_retried",
        "worker_lost",
        "worker_ready",
    ]


def test_files_that_are_no_results_are_moved_aside_with_a_line_and_run_again(tmp_path: Path) -> None:
    plan = requested(tmp_path)
    go(plan, tmp_path)
    run = RunDir(tmp_path / "run")
    before, names = stored(run), sorted(run.results.rglob("*.json"))
    os.truncate(names[0], 200)
    flipped = bytearray(names[1].read_bytes())
    flipped[-40] ^= 1
    names[1].write_bytes(flipped)
    (names[2].parent / "stranger.json").write_bytes(names[2].read_bytes())
    watch = Watch()
    outcome = go(plan, tmp_path, watch)
    assert (outcome.done, outcome.skipped, outcome.exit_code) == (4, 4, 0)
    assert stored(run) == before
    assert len(list(run.quarantine.iterdir())) == 3
    lines = watch.messages("quarantined")
    assert len(lines) == 3
    assert all("moved to quarantine/" in line for line in lines)
    assert sorted(Counter(executions(tmp_path)).values()) == [1, 1, 2, 2]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_full_disk_ends_the_run_with_one_line_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    plan = requested(tmp_path)
    run, real, results = RunDir(tmp_path / "run"), getattr(os, call), 0

    def full(first: Any, *rest: Any) -> Any:
        nonlocal results
        name = os.readlink(f"/proc/self/fd/{first}") if isinstance(first, int) else str(rest[0])
        if "/results/" in name and (".tmp-" in name or call == "replace"):
            results += 1
            if results > 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(first, *rest)

    watch = Watch()
    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        outcome = go(plan, tmp_path, watch)
    assert (outcome.done, outcome.left, outcome.exit_code) == (4, 4, 1)
    assert outcome.message.startswith(f"cannot write {run.results}")
    assert "No space left on device; stored results are whole" in outcome.message
    assert len(watch.messages("stopped")) == 1
    assert len(stored(run)) == 2
    assert not list(run.root.rglob(".tmp-*"))
    healed = go(plan, tmp_path)
    assert (healed.done, healed.skipped, healed.exit_code) == (4, 4, 0)


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "events.jsonl").mkdir()
    assert go(requested(tmp_path), tmp_path).exit_code == 0


def test_the_log_goes_on_after_a_torn_line(tmp_path: Path) -> None:
    plan = requested(tmp_path)
    go(plan, tmp_path)
    log = RunDir(tmp_path / "run").events
    log.write_bytes(log.read_bytes()[:-20])
    go(plan, tmp_path)
    kinds = [event.kind for event in read_events(log)]
    assert kinds[0] == "started"
    assert kinds[-2:] == ["started", "finished"]
    assert kinds.count("finished") == 1


def test_a_second_driver_is_refused_and_the_first_one_is_not_disturbed(tmp_path: Path) -> None:
    plan = requested(tmp_path)
    with RunLock(RunDir(tmp_path / "run")), pytest.raises(LockedError, match="in use by process"):
        go(plan, tmp_path)
    assert go(plan, tmp_path).exit_code == 0


def test_a_driver_that_was_taken_over_writes_no_more(tmp_path: Path) -> None:
    plan, run = requested(tmp_path), RunDir(tmp_path / "run")

    class Overtaken(Watch):
        def show(self, event: Any) -> None:
            super().show(event)
            if event.kind == "item_done":
                run.lock.write_bytes(run.lock.read_bytes().replace(b'"token":"', b'"token":"x'))

    outcome = go(plan, tmp_path, Overtaken())
    assert (outcome.done, outcome.left, outcome.exit_code) == (2, 6, 1)
    assert "taken over" in outcome.message


def test_other_code_is_refused_before_any_work(tmp_path: Path) -> None:
    plan = requested(tmp_path)
    go(plan, tmp_path)
    other = replace(origin_of((), 0.0), code_digest="0" * 20)
    more = requested(tmp_path, prompts=6)
    with pytest.raises(ValueError, match="made with other code or libraries"):
        go(more, tmp_path, pool=NoPool(runner_factory=RUNNER), origin=other)
    watch = Watch()
    assert go(more, tmp_path, watch, origin=other, accept_changes=True).done == 4
    assert any(line.startswith("code digest: ") for line in watch.messages("changed"))
    assert len(read_history(RunDir(tmp_path / "run")).starts) == 2


def test_a_foreign_folder_stays_as_it_is(tmp_path: Path) -> None:
    plan = requested(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "photo.jpg").touch()
    with pytest.raises(ValueError, match=r"holds photo\.jpg"):
        go(plan, tmp_path)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["photo.jpg"]


def test_a_stop_between_items_keeps_what_is_done(tmp_path: Path) -> None:
    plan, stop = requested(tmp_path), threading.Event()

    class Stopping(Watch):
        def show(self, event: Any) -> None:
            super().show(event)
            if event.kind == "item_done":
                stop.set()

    watch = Stopping()
    outcome = go(plan, tmp_path, watch, stop=stop)
    assert (outcome.done, outcome.left, outcome.interrupted, outcome.exit_code) == (2, 6, True, 130)
    assert watch.kinds()[-2:] == ["interrupted", "finished"]
    assert go(plan, tmp_path).exit_code == 0


def test_an_interrupt_in_an_item_drops_only_that_item(tmp_path: Path) -> None:
    stop = Stop()

    class Interrupted:
        def __init__(self, device: str, threads: int) -> None:
            self.count = 0

        def run(self, item: WorkItem, cell: Cell) -> ItemResult:
            self.count += 1
            if self.count == 2:
                stop.set("SIGINT")
                raise KeyboardInterrupt
            return answer(item, cell)

    plan = requested(tmp_path)
    outcome = go(plan, tmp_path, pool=InlinePool(runner_factory=Interrupted, stop=stop), stop=stop)
    assert (outcome.done, outcome.left, outcome.exit_code) == (2, 6, 130)
    assert not any(result.failures for result in stored(RunDir(tmp_path / "run")).values())


def test_workers_that_never_start_end_the_run_and_leave_the_items(tmp_path: Path) -> None:
    class DeadPool(InlinePool):
        def start(self, at_most: int = 0) -> tuple[str, ...]:
            return (self.replace(""),)

        def replace(self, worker: str) -> str:
            self._made += 1
            self._events.append(PoolEvent(kind="lost", worker=self._name, reason="ModuleNotFoundError: torch"))
            return self._name

    outcome = go(requested(tmp_path), tmp_path, pool=DeadPool(runner_factory=RUNNER))
    assert (outcome.done, outcome.failed, outcome.left, outcome.exit_code) == (0, 0, 8, 1)
    assert outcome.message == "no worker gets anything done: ModuleNotFoundError: torch"
