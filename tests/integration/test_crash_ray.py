"""A real driver with its own local Ray: killed, interrupted, resumed, in an environment that gets in the way."""

import os
import signal
import time
from pathlib import Path

import pytest

from orchestrator.driver import run_plan
from orchestrator.events import read_events
from orchestrator.pool_inline import InlinePool
from orchestrator.scratch import PREFIX
from sweeps.store import RunDir
from tests.drive import executions, launch, wait_for_events
from tests.fake_plan import RUNNER, Watch, a_plan, stored

PLAN = {"cells": 3, "prompts": 6, "chunk": 2, "timed": 2, "repeats": 2}


def session_members(leader: int) -> list[int]:
    """Living processes of the session that `leader` began."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            members.append(int(stat.parent.name))
    return members


@pytest.mark.slow
def test_killed_then_interrupted_then_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = tmp_path / "undisturbed"
    run_plan(
        a_plan(undisturbed, **PLAN), RunDir(undisturbed / "run"), InlinePool(runner_factory=RUNNER), progress=Watch()
    )
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    run = RunDir(tmp_path / "run")

    killed = launch(tmp_path, seconds=0.1, pool="ray", **PLAN)
    wait_for_events(tmp_path, "item_done", 2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    survived = set(stored(run))
    assert survived

    slow = {"decode-000004": {"what": "hang", "times": 1}}
    interrupted = launch(tmp_path, seconds=0.1, pool="ray", faults=slow, **PLAN)
    wait_for_events(tmp_path, "started", 2)
    wait_for_events(tmp_path, "item_done", len(survived) + 2)
    os.killpg(interrupted.pid, signal.SIGINT)  # as Ctrl-C does: every process of the foreground group
    sent = time.monotonic()
    _, errors = interrupted.communicate(timeout=60)
    assert interrupted.returncode == 130
    while session_members(interrupted.pid) and time.monotonic() < sent + 10:
        time.sleep(0.1)
    assert session_members(interrupted.pid) == []
    assert errors == ""
    kept = set(stored(run))
    assert kept > survived
    assert not Path("/tmp", f"{PREFIX}{interrupted.pid}").exists()

    finished = launch(tmp_path, pool="ray", **PLAN)
    _, errors = finished.communicate(timeout=120)
    assert (finished.returncode, errors) == (0, "")
    assert stored(run) == stored(RunDir(undisturbed / "run"))
    notes = {event.message for event in read_events(run.events) if event.kind == "note"}
    assert any(note.startswith("RAY_ADDRESS=127.0.0.1:1 is ignored") for note in notes)
    assert any(f"TMPDIR {deep}: " in note and "Ray works in /tmp instead" in note for note in notes)
    ran = executions(tmp_path)
    assert all(ran.count(item) == 1 for item in survived)  # what was stored never ran again
    assert len(ran) <= len(set(ran)) + 4  # at most two workers' items in flight were lost, twice
    assert not Path("/tmp", f"{PREFIX}{killed.pid}").exists()  # a killed driver's files go with the next start
