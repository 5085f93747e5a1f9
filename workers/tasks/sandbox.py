"""Running generated code against tests, outside of the worker and fenced in: `run_tests`.

A worker starts a bare interpreter for each row (`jail.supervisor`), which forks the process that runs the code
(`jail.runner`). Three layers, each with what it falls back to; `Outcome.layers` says which ones held:

- processes: a PID namespace (all end together), else adoption of orphans and a stop-then-kill walk over the tree;
- network: seccomp (no socket but AF_UNIX, for programs too) beside an empty network namespace, else an audit hook;
- files: Landlock (write in the row's folder only, read there and in the system's and Python's folders), else read-only
  mounts, else an audit hook, which then also refuses to start programs.

Limits on CPU time, memory, file size and open files are the kernel's; wall time, output and the number of processes are
watched (every 50 ms). The verdict is the supervisor's: exit codes, printed text and patched builtins do not reach it.
What stays possible is what the tests themselves accept, such as a result object that claims to equal everything.
"""

import contextlib
import errno
import functools
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from workers.tasks.texts import clean

GRACE_SECONDS = 5.0  # for starting and ending processes, beyond the row's own wall time
LAYERS = ("namespaces", "landlock", "seccomp")
_ROOT = str(Path(__file__).parents[2])
_START = f"import sys; sys.path.insert(0, {_ROOT!r}); from workers.tasks.jail.supervisor import main; main()"


class SandboxError(OSError):
    """The sandbox itself could not start or report: nothing is known about the code. Another try may well succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one row may use. CPU time, memory, file size and open files count for each of its processes."""

    wall_seconds: float = 10.0
    cpu_seconds: int = 5
    memory_mb: int = 1024
    file_mb: int = 64
    open_files: int = 64
    processes: int = 32
    output_kb: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`reason` is "passed" or says what went wrong; `output` is what was printed, cut in the middle beyond 8 kB."""

    passed: bool
    reason: str
    seconds: float
    output: str
    layers: dict[str, str] = field(default_factory=dict)


def run_tests(
    code: str,
    tests: str,
    *,
    limits: Limits = Limits(),
    names: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> Outcome:
    """Run `code` as a module, then `tests` with its names: passed when the tests run to their end without an exception.

    `names` restricts what the tests see of the code (all of it when empty), so that a helper of the same name as one
    of theirs cannot stand in for it; builtins are always the original ones. `without` leaves out some of LAYERS. Blocks
    for `limits.wall_seconds` and a small grace at most. Raises SandboxError when the sandbox fails, for no code.
    """
    left_out = tuple(sorted({*without, *_refused()}))
    request = {"code": code, "tests": tests, "names": names, "limits": asdict(limits)}
    started = time.monotonic()
    reply = _ask(request, left_out, limits.wall_seconds + GRACE_SECONDS)
    if "refused" in reply:
        _refused().add(str(reply["refused"]))
        return run_tests(code, tests, limits=limits, names=names, without=without)
    return Outcome(
        passed=bool(reply["passed"]),
        reason=clean(str(reply["reason"])),
        seconds=time.monotonic() - started,
        output=str(reply["output"]),
        layers=dict(reply["layers"]),
    )


@functools.cache
def _refused() -> set[str]:
    """Layers that this machine turned out to grant only by half; found once a process."""
    return set()


def _ask(request: dict[str, Any], without: tuple[str, ...], seconds: float) -> dict[str, Any]:
    """One request, one reply, from a supervisor in a folder of its own that is gone afterwards."""
    folder = tempfile.mkdtemp(prefix="spot-row-")
    command = [getattr(sys, "_base_executable", "") or sys.executable, "-s", "-S", "-P", "-c", _START, *without]
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        ) as process:
            text = _exchange(process, json.dumps(request).encode() + b"\n", seconds)
    except OSError as error:
        raise SandboxError(error.errno, f"the sandbox could not start: {error}") from error
    finally:
        _remove(folder)
    try:
        reply: dict[str, Any] = json.loads(text.splitlines()[-1])
        return reply
    except (ValueError, IndexError):
        how = f"{text[-500:].decode(errors='replace')!r}, status {process.returncode}"
        raise SandboxError(errno.EIO, f"the sandbox gave no verdict: {how}") from None


def _exchange(process: subprocess.Popen[bytes], request: bytes, seconds: float) -> bytes:
    """Send the request and read the reply to its end; the input stays open, since its end means that we are gone."""
    assert process.stdin is not None
    assert process.stdout is not None
    deadline, text = time.monotonic() + seconds, b""
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(request)
        process.stdin.flush()
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            if ready.select(max(0.0, deadline - time.monotonic())):
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                if not chunk:
                    return text
                text += chunk
    os.killpg(process.pid, signal.SIGKILL)
    return text


def _environment(folder: str) -> dict[str, str]:
    """Nothing of the worker's environment (tokens, proxies, PYTHON*) but what an interpreter may need to start."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    fixed = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8:backslashreplace", "LANG": "C.UTF-8"}
    return {**kept, **fixed, "PATH": os.defpath, "HOME": folder, "TMPDIR": folder}


def _remove(folder: str) -> None:
    """Remove a folder whatever the code did to its permissions or depth."""
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        for command in (["chmod", "-R", "u+rwx", folder], ["rm", "-rf", folder]):
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
