"""Audit hook of the process that runs generated code: what it may not do inside its own interpreter, for ever.

It always refuses what would let the code read the memory in which the verdict's secret lies: ctypes, /proc, the
collector's lists. Only where the kernel refused to fence the process in does it also refuse sockets, writes outside the
folder, other programs and signals to other processes; that is weaker, since an audit hook sees only Python's own calls
(and not all of them: `os.mkfifo` and paths relative to an open folder pass).
"""

import os
import sys
from collections.abc import Callable

NEVER = frozenset(
    {
        "gc.get_objects",
        "gc.get_referrers",
        "gc.get_referents",
        "sys.addaudithook",
        "sys.setprofile",
        "sys.settrace",
    }
)
PROGRAMS = frozenset({"os.exec", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn", "subprocess.Popen"})
SIGNALS = frozenset({"os.kill", "os.killpg"})
# For each event the arguments that are paths being changed.
CHANGES = {
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (0, 1),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.removexattr": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.setxattr": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
}
AF_UNIX = 1
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def install(folder: str, *, files: bool, sockets: bool, signals: bool) -> None:
    """Refuse from now on what no row may do; with `files`, `sockets`, `signals` also what the kernel lets through."""
    sys.addaudithook(_hook(os.path.realpath(folder), files=files, sockets=sockets, signals=signals))


def _hook(home: str, *, files: bool, sockets: bool, signals: bool) -> Callable[[str, tuple[object, ...]], None]:
    real, getpid, inside = os.path.realpath, os.getpid, home + os.sep

    def refuse(what: str) -> None:
        raise PermissionError(f"the sandbox does not allow {what}")

    def check_path(event: str, path: object, changes: bool) -> None:
        if path is None or isinstance(path, int):
            return
        where = os.fsdecode(real(path))  # type: ignore[call-overload]
        if where == "/proc" or where.startswith("/proc/"):
            refuse(where)
        if files and changes and where not in (home, os.devnull) and not where.startswith(inside):
            refuse(f"{event} outside its folder")

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in NEVER or event.startswith("ctypes."):
            refuse(event)
        elif event == "import" and arguments[0] in ("ctypes", "_ctypes"):
            refuse("ctypes")
        elif event == "open":
            flags = arguments[2]
            check_path(event, arguments[0], isinstance(flags, int) and bool(flags & _WRITING))
        elif sockets and event == "socket.__new__" and arguments[1] != AF_UNIX:
            refuse("sockets")
        elif signals and event in SIGNALS and arguments[0] != getpid():
            refuse("signals to other processes")
        elif files and event in PROGRAMS:
            refuse(event)
        elif files:
            for index in CHANGES.get(event, ()):
                check_path(event, arguments[index], True)

    return hook
