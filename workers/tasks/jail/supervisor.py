"""The process between a worker and generated code: starts the runner, watches it, ends everything it started, reports.

It is a bare interpreter of its own, started for each row. It never runs generated code, so its word is the verdict
(`watch`). It also ends the row when the worker goes away, so that a killed worker leaves nothing behind.
"""

import contextlib
import json
import os
import shutil
import socket
import sys

from workers.tasks.jail import kernel, runner
from workers.tasks.jail.processes import end_all
from workers.tasks.jail.watch import Watch


def main() -> None:
    """Serve one request: arguments are the layers to leave out, standard input holds one line of JSON."""
    without = frozenset(sys.argv[1:])
    answer = os.dup(1)
    layers = _separate(without, answer)
    ours, theirs = socket.socketpair()
    output, printed = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        _wire(theirs.fileno(), printed)
        runner.run(without=without, layers=layers)
    theirs.close()
    os.close(printed)
    request = json.loads(sys.stdin.buffer.readline())
    watch = Watch(pid=pid, channel=ours, output=output, request=request, layers=layers)
    reason = watch.verdict()
    survivors = end_all(pid, reaped=watch.reaped, own_namespace=layers["processes"] == "pid namespace")
    if watch.abandoned:
        shutil.rmtree(os.getcwd(), ignore_errors=True)
        return
    watch.drain()
    if survivors:
        reason = f"{survivors} processes could not be ended"
    passed = watch.passed and not survivors
    reply = {"passed": passed, "reason": reason, "output": watch.text(), "layers": layers}
    os.write(answer, json.dumps(reply).encode() + b"\n")


def _separate(without: frozenset[str], answer: int) -> dict[str, str]:
    """Leave the machine's namespaces where that is allowed; returns which layers hold so far ("" where none does)."""
    layers = {"processes": "process tree", "network": "", "files": ""}
    with contextlib.suppress(OSError):
        kernel.adopt_orphans()
    if "namespaces" in without:
        return layers
    try:
        outside = kernel.enter_namespaces()
    except OSError as error:
        return {**layers, "refused": f"namespaces: {error}"}
    try:
        kernel.map_ids(*outside)
        return {**layers, "processes": "pid namespace", "network": "network namespace"}
    except OSError as error:  # half-way in: this process is of no use any more
        os.write(answer, json.dumps({"refused": "namespaces", "why": str(error)}).encode() + b"\n")
        os._exit(0)


def _wire(channel: int, printed: int) -> None:
    """Give the runner its files: nothing to read, its output, and the channel; no other."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    spare = os.dup(channel)
    os.dup2(spare, runner.CHANNEL, inheritable=False)
    os.closerange(runner.CHANNEL + 1, 256)
