"""A folder for a local Ray's sockets and logs: short enough for a socket's path, writable, ours, and gone afterwards.

A socket path has at most 107 bytes and Ray's own part of it is 65, so a deep TMPDIR needs a fallback. The owner holds
a file lock for its life: a folder without a holder is a killed driver's and is removed by the next start.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOCKET_BYTES = 107
RAY_PART = len("/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store")
PREFIX = "spot-"
OLD_SECONDS = 3600.0
OWNER = "owner"
MOST = SOCKET_BYTES - RAY_PART - len(f"/{PREFIX}1234567")
FREE_BYTES = 64_000_000
VARIABLES = ("RAY_TMPDIR", "TMPDIR")
FALLBACKS = ("/tmp", "/var/tmp", "/dev/shm")


@dataclass(slots=True)
class Scratch:
    """An own folder and the lock that shows it is in use. `note` says why it is not where TMPDIR points."""

    path: Path
    note: str
    _lock: int

    def remove(self) -> None:
        """Delete the folder."""
        with contextlib.suppress(OSError):
            os.close(self._lock)
        shutil.rmtree(self.path, ignore_errors=True)


def make_scratch() -> Scratch:
    """Make the folder. Raises ValueError with one line about every place that was tried."""
    faults = []
    for root, origin in _candidates():
        if fault := fault_of(root):
            faults.append(f"{origin} {root}: {fault}")
            continue
        remove_abandoned(root)
        note = f"{'; '.join(faults)}; Ray works in {root} instead" if faults else ""
        path = root / f"{PREFIX}{os.getpid()}"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(mode=0o700)
        return Scratch(path=path, note=note, _lock=_hold(path))
    raise ValueError(f"no folder for Ray's sockets: {'; '.join(faults)} (set TMPDIR to a short, writable folder)")


def fault_of(root: Path) -> str:
    """Why a folder cannot hold Ray's files ("" when it can)."""
    length = len(os.fsencode(root))
    if length > MOST:
        return f"{length} bytes long, sockets allow {MOST}"
    try:
        with tempfile.NamedTemporaryFile(dir=root, prefix=PREFIX):
            pass
        free = shutil.disk_usage(root).free
    except OSError as error:
        return f"not writable ({error.strerror})"
    return f"only {free // 10**6} MB free, {FREE_BYTES // 10**6} needed" if free < FREE_BYTES else ""


def remove_abandoned(root: Path) -> None:
    """Remove the folders of drivers that were killed.

    One without an owner's file is what late processes of such a driver made again; it goes when it is old.
    """
    for path in root.glob(f"{PREFIX}[0-9]*"):
        with contextlib.suppress(OSError):
            if not (path / OWNER).exists():
                if time.time() - path.stat().st_mtime > OLD_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
                continue
            descriptor = os.open(path / OWNER, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


def _hold(path: Path) -> int:
    descriptor = os.open(path / OWNER, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _candidates() -> Iterator[tuple[Path, str]]:
    for name in VARIABLES:
        if os.environ.get(name):
            yield Path(os.path.abspath(os.environ[name])), name
    yield from ((Path(folder), "folder") for folder in FALLBACKS)
