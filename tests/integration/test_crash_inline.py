"""The driver dies at every point of a run: the resumed store equals an undisturbed one, nothing stored ran twice."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.driver import run_plan
from orchestrator.events import read_events
from orchestrator.pool_inline import InlinePool
from sweeps.records import ItemResult
from sweeps.store import RunDir
from tests.drive import drive, executions, launch, wait_for_events
from tests.fake_plan import RUNNER, Watch, a_plan, stored

PLAN = {"cells": 2, "prompts": 4, "chunk": 2, "timed": 2, "repeats": 2}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ItemResult]:
    folder = tmp_path_factory.mktemp("undisturbed")
    run_plan(a_plan(folder, **PLAN), RunDir(folder / "run"), InlinePool(runner_factory=RUNNER), progress=Watch())
    return stored(RunDir(folder / "run"))


def on_disk(run: RunDir) -> set[str]:
    return {path.stem for path in run.results.rglob("*.json") if not path.name.startswith(".tmp-")}


@pytest.mark.parametrize(
    "death",
    [
        {"event": 1},
        {"event": 2},
        {"event": 3},
        {"event": 4},
        {"event": 8},
        {"event": 12},
        {"event": 13},
        {"rename": 1},
        {"rename": 3},
        {"renamed": 3},
        {"renamed": 5},
    ],
    ids=lambda death: "-".join(f"{where}{count}" for where, count in death.items()),
)
def test_killed_anywhere_a_resume_finds_everything_and_repeats_nothing(
    tmp_path: Path, undisturbed: dict[str, ItemResult], death: dict[str, int]
) -> None:
    run = RunDir(tmp_path / "run")
    status, _ = drive(tmp_path, death, **PLAN)
    assert status == -signal.SIGKILL
    survived, ran = on_disk(run), len(executions(tmp_path)) if (tmp_path / "log").exists() else 0
    status, errors = drive(tmp_path, **PLAN)
    assert (status, errors) == (0, "")
    assert stored(run) == undisturbed
    again = executions(tmp_path)[ran:]
    assert survived.isdisjoint(again)
    assert survived | set(again) == set(undisturbed)
    assert ran - len(survived) <= 1  # at most the item in flight was lost
    assert not list(run.root.rglob(".tmp-*"))
    assert not run.lock.exists()
    assert not run.quarantine.exists()


def test_killed_again_and_again_it_still_gets_there(tmp_path: Path, undisturbed: dict[str, ItemResult]) -> None:
    for _ in range(len(undisturbed)):
        status, _ = drive(tmp_path, {"renamed": 1}, **PLAN)
        assert status == -signal.SIGKILL
    assert drive(tmp_path, **PLAN) == (0, "")
    assert stored(RunDir(tmp_path / "run")) == undisturbed
    assert sorted(executions(tmp_path)) == sorted(undisturbed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_an_item_ends_at_once_keeps_rows_and_says_interrupted(tmp_path: Path, number: int) -> None:
    process = launch(tmp_path, seconds=0.05, faults={"decode-000002": {"what": "hang", "times": 1}}, **PLAN)
    wait_for_events(tmp_path, "item_started", 2)
    time.sleep(0.1)
    sent = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - sent < 5
    assert errors == ""
    events = list(read_events(tmp_path / "run" / "events.jsonl"))
    assert [event.kind for event in events[-2:]] == ["interrupted", "finished"]
    assert events[-2].message == signal.Signals(number).name
    assert len(stored(RunDir(tmp_path / "run"))) == 1
    assert drive(tmp_path, **PLAN) == (0, "")


def test_a_second_interrupt_ends_the_process_even_where_the_first_cannot(tmp_path: Path) -> None:
    program = (
        "import time, signal\nfrom orchestrator.stop import Stop\nstop = Stop()\n"
        "with stop.on_signals():\n    print('ready', flush=True)\n    while True: time.sleep(0.01)\n"
    )
    root = Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-c", program], cwd=root, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=10) == 130


def test_two_drivers_at_once_one_is_refused(tmp_path: Path) -> None:
    first = launch(tmp_path, seconds=0.5, **PLAN)
    wait_for_events(tmp_path, "item_started", 1)
    status, errors = drive(tmp_path, seconds=0.5, **PLAN)
    assert status == 1
    assert f"in use by process {first.pid}" in errors.splitlines()[-1]
    first.communicate(timeout=60)
    assert first.returncode == 0
    assert len(executions(tmp_path)) == 5
