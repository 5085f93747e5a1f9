"""The process that runs generated code: fences itself in, runs the code, then the tests, then announces the end.

It is forked before the request arrives and reads it from a socket, so what it must not know yet is not in its memory:
the tests come only after the code ran. The announcements carry secrets which no frame, module or variable holds while
the code runs: they are arguments of C callables in a C iterator (`_steps`), and the guard refuses to list objects.
"""

import builtins
import collections
import contextlib
import functools
import json
import linecache
import marshal
import operator
import os
import random
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any, BinaryIO

from workers.tasks.jail import guard, kernel

CHANNEL = 3  # the socket to the supervisor
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/alternatives", "/etc/localtime")
HOOK = "audit hook"
MAX_REASON = 300


def run(*, without: frozenset[str], layers: dict[str, str]) -> None:
    """Serve one request on file 3 and leave the process; `layers` says what holds already. Never returns."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _fence(os.getcwd(), without, layers)
        stream = os.fdopen(CHANNEL, "rb", closefd=False)
        _limit(json.loads(stream.readline()))
        guard.install(
            os.getcwd(),
            files=layers["files"] == HOOK,
            sockets=layers["network"] == HOOK,
            signals=layers["processes"] != "pid namespace",
        )
        os.write(CHANNEL, json.dumps({"layers": layers}).encode() + b"\n")
        _forget_ourselves()
        random.seed(0)  # a verdict must not depend on luck
        collections.deque(map(operator.call, _steps(stream)), maxlen=0)
    except BaseException as error:
        _report(error)
    _flush()
    os._exit(0)


def _steps(stream: BinaryIO) -> tuple[Callable[[], Any], ...]:
    """What happens, in order; the first exception ends it.

    The code may replace any builtin and any function of a module, so `run_tests` looks up nothing that it could reach:
    its tools are C callables bound here, before the code runs, and shared with no other step.
    """
    tell_code, tell_tests = (functools.partial(os.write, CHANNEL, stream.readline()) for _ in range(2))
    code, module = json.loads(stream.readline()), ModuleType("solution")
    pristine = dict(vars(builtins))

    def run_code() -> None:
        sys.modules["solution"] = module  # dataclasses and pickling look there
        exec(compile(code, "<solution>", "exec", dont_inherit=True), vars(module))

    def run_tests(
        space: dict[str, Any] = vars(module),  # noqa: B008 - all defaults are bound on purpose, see above
        builtins: dict[str, Any] = pristine,
        next_line: Callable[[], bytes] = stream.readline,
        from_hex: Callable[[str], bytes] = bytes.fromhex,
        loads: Callable[[bytes], Any] = marshal.loads,
        make: Callable[..., Any] = compile,
        execute: Callable[..., None] = exec,
        lines: dict[str, Any] = linecache.cache,
    ) -> None:
        tests, names = loads(from_hex(next_line().decode()))
        lines["<tests>"] = (0, None, tests.splitlines(keepends=True), "<tests>")
        visible = {name: value for name, value in space.items() if not names or name in names}
        compiled = make(tests, "<tests>", "exec", dont_inherit=True)
        execute(compiled, {**visible, "__name__": "tests", "__builtins__": builtins})

    return run_code, tell_code, run_tests, _flush, tell_tests


def _fence(folder: str, without: frozenset[str], layers: dict[str, str]) -> None:
    """Apply the kernel's layers to this process and write down which one holds."""
    with contextlib.suppress(OSError):
        kernel.die_with_parent(signal.SIGKILL)
    if "landlock" not in without:
        python = (sys.base_prefix, sys.base_exec_prefix, *(p for p in sys.path[1:] if os.path.isdir(p)))
        with contextlib.suppress(OSError):
            kernel.landlock(folder, (*SYSTEM, *python), DEVICES)
            layers["files"] = "landlock"
    if not layers["files"] and layers["processes"] == "pid namespace":
        with contextlib.suppress(OSError):
            kernel.mount_read_only(folder)
            layers["files"] = "read-only mounts"
    with contextlib.suppress(OSError):
        kernel.drop_capabilities()
    if "seccomp" not in without:
        with contextlib.suppress(OSError):
            kernel.forbid_sockets()
            layers["network"] = " and ".join(filter(None, ("seccomp", layers["network"])))
    for what in ("files", "network"):
        layers[what] = layers[what] or HOOK


def _limit(limits: dict[str, int]) -> None:
    """Resource limits, soft and hard alike: reaching the CPU limit is a SIGKILL."""
    values = {
        resource.RLIMIT_CPU: limits["cpu_seconds"],
        resource.RLIMIT_AS: limits["memory_mb"] << 20,
        resource.RLIMIT_FSIZE: limits["file_mb"] << 20,
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_CORE: 0,
    }
    for kind, wanted in values.items():
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file that grows too large is an OSError


def _forget_ourselves() -> None:
    """Take this package and ctypes out of reach of `import`, and leave the standard library's search path only."""
    for name in [n for n in sys.modules if n.partition(".")[0] in ("workers", "ctypes", "_ctypes")]:
        del sys.modules[name]
    sys.modules["__main__"] = ModuleType("__main__")
    sys.path.pop(0)
    sys.argv = ["solution"]


def _report(error: BaseException) -> None:
    """Send why it failed, with the line of the tests where there is one."""
    with contextlib.suppress(BaseException):
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
        lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == "<tests>"]
        if lines:
            text += f" in line {lines[-1].lineno} of the tests: {lines[-1].line}"
        os.write(CHANNEL, json.dumps({"failed": text[:MAX_REASON]}).encode() + b"\n")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
