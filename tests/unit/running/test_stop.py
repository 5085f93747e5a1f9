"""A second signal ends the process and everything below it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import subprocess, sys
from orchestrator.stop import kill_descendants
inner = (
    "import subprocess; p = subprocess.Popen(['sleep', '600'], start_new_session=True);"
    "print(p.pid, flush=True); p.wait()"
)
child = subprocess.Popen([sys.executable, '-c', inner], stdout=subprocess.PIPE, text=True)
print(child.pid, child.stdout.readline().strip(), flush=True)
kill_descendants()
print('still here', flush=True)
"""


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="descendants are found in /proc")
def test_descendants_die_whatever_session_they_opened() -> None:
    ended = subprocess.run((sys.executable, "-c", SCRIPT), capture_output=True, text=True, timeout=60, check=True)
    pids, last = ended.stdout.splitlines()
    assert last == "still here"
    deadline = time.monotonic() + 10
    while any(alive(int(pid)) for pid in pids.split()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(int(pid)) for pid in pids.split())
