"""One driver a directory: alive keeps others off, dead does not."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from sweeps.lock import STALE_SECONDS, Holder, LockedError, RunLock, is_alive, process_start, this_process
from sweeps.store import RunDir, atomic_write

HOLD = """
import sys, time
from pathlib import Path
from sweeps.lock import RunLock
from sweeps.store import RunDir
lock = RunLock(RunDir(Path(sys.argv[1])))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
lock.release()
"""


def hold(folder: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock until its standard input closes."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_driver_is_kept_off_until_the_first_is_done(tmp_path: Path) -> None:
    first = hold(tmp_path)
    with pytest.raises(LockedError, match=f"in use by process {first.pid} on .* since 20"):
        RunLock(RunDir(tmp_path)).acquire()
    first.communicate("")
    with RunLock(RunDir(tmp_path)) as lock:
        assert lock.note == ""
        assert RunDir(tmp_path).lock.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_driver_leaves_a_lock_that_does_not_hold(tmp_path: Path) -> None:
    first = hold(tmp_path)
    first.kill()
    first.wait()
    with RunLock(RunDir(tmp_path)) as lock:
        assert lock.note.startswith(f"removed the stale lock of process {first.pid} on ")


def test_a_stopped_process_still_holds_and_a_zombie_does_not() -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    holder = replace(this_process(), pid=sleeper.pid, process_start=process_start(sleeper.pid))
    os.kill(sleeper.pid, 19)
    assert is_alive(holder, age=10_000)
    assert not is_alive(replace(holder, process_start="1"), age=0)  # the pid was given to another process
    sleeper.kill()
    deadline = time.monotonic() + 5
    while process_start(sleeper.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(holder, age=0)
    sleeper.wait()


@pytest.mark.parametrize(
    "change",
    [{"host": "elsewhere"}, {"pid_space": "pid:[1]"}, {"boot_id": ""}],
    ids=["another machine", "another container", "a system that does not say"],
)
def test_where_the_process_cannot_be_asked_the_heartbeat_counts(change: dict[str, str]) -> None:
    holder = replace(this_process(), **change)  # type: ignore[arg-type]
    assert is_alive(holder, age=STALE_SECONDS - 1)
    assert not is_alive(holder, age=STALE_SECONDS + 1)


def test_after_a_reboot_nobody_holds() -> None:
    assert not is_alive(replace(this_process(), boot_id="another boot"), age=0)


def test_the_heartbeat_is_the_files_time_by_the_file_systems_clock(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    there = replace(this_process(), host="elsewhere")
    atomic_write(run.lock, msgspec.json.encode(there))
    with pytest.raises(LockedError, match="elsewhere"):
        RunLock(run).acquire()
    old = time.time() - STALE_SECONDS - 5
    os.utime(run.lock, (old, old))
    with RunLock(run, heartbeat_seconds=0.02) as lock:
        assert "elsewhere" in lock.note
        os.utime(run.lock, (old, old))
        deadline = time.monotonic() + 5
        while run.lock.stat().st_mtime < old + 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert run.lock.stat().st_mtime > old + 1


def test_who_was_overtaken_notices_and_leaves_the_new_lock_alone(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    with RunLock(run) as lock:
        lock.check()
        other = replace(this_process(), token="other")
        atomic_write(run.lock, msgspec.json.encode(other))
        with pytest.raises(LockedError, match="taken over"):
            lock.check()
    assert msgspec.json.decode(run.lock.read_bytes(), type=Holder) == other


def test_of_many_that_find_a_stale_lock_one_gets_it(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    atomic_write(run.lock, msgspec.json.encode(replace(this_process(), boot_id="before")))
    locks = [RunLock(run) for _ in range(12)]
    won: list[RunLock] = []
    start = threading.Barrier(len(locks))

    def try_it(lock: RunLock) -> None:
        start.wait()
        try:
            lock.acquire()
        except LockedError:
            return
        won.append(lock)

    threads = [threading.Thread(target=try_it, args=(lock,)) for lock in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    won[0].check()
    won[0].release()


def test_an_illegible_lock_does_not_hold(tmp_path: Path) -> None:
    RunDir(tmp_path).lock.write_text("{half")
    with RunLock(RunDir(tmp_path)):
        pass
