"""Finding and ending every process that descends from one, also those that left its session or lost their parent.

In a PID namespace the kernel does it: ending the first process ends all. Elsewhere the supervisor adopts orphans, and
in each round stops all it finds before it kills any, since a stopped process cannot fork away.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

END_SECONDS = 2.0


def _children(pid: int) -> list[int]:
    """Direct children by /proc/PID/task/*/children; empty when the process is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_bytes().split())
    return found


def _table() -> dict[int, list[int]]:
    """Parent to children from every /proc/PID/stat, for kernels without the children file."""
    found: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            parent = int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])
            found.setdefault(parent, []).append(int(name))
    return found


def descendants(pid: int) -> list[int]:
    """Every live or unreaped process below `pid`, parents first; empty where there is no /proc."""
    if not os.path.isdir("/proc/self/task"):
        return []
    direct = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
    table = {} if direct else _table()
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        below = _children(parent) if direct else table.get(parent, [])
        found += below
        todo += below
    return found


def end_all(pid: int, *, reaped: bool, own_namespace: bool) -> int:
    """End `pid` and all descendants of this process and reap them; the number that could not be ended.

    A process id that was `reaped` may belong to a stranger by now and is left alone.
    """
    with contextlib.suppress(OSError):
        if not reaped and not own_namespace:
            os.killpg(pid, signal.SIGKILL)
        if not reaped:
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + END_SECONDS
    while True:
        for number in () if own_namespace else (signal.SIGSTOP, signal.SIGKILL):
            for other in descendants(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(other, number)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return 0
        if time.monotonic() > deadline:
            return len(descendants(os.getpid()))
        time.sleep(0.002)
