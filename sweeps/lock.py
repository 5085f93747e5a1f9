"""One driver a run directory: a lock file that says who drives, and knows when that driver is gone.

On the holder's own machine its process is asked for (pid and start time, so that a reused pid is no holder); from
another machine, container or after a reboot only the heartbeat counts, compared by the clock of the file system.
"""

import contextlib
import fcntl
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from sweeps.store import RunDir, atomic_write

HEARTBEAT_SECONDS = 10.0
STALE_SECONDS = 120.0


class LockedError(ValueError):
    """Another driver holds the run directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who drives. `process_start` is the kernel's start tick of the process; "" where the system does not say."""

    token: str
    host: str
    pid: int
    boot_id: str
    pid_space: str
    process_start: str
    since: float


def this_process() -> Holder:
    """The holder that this process is."""
    return Holder(
        token=secrets.token_hex(8),
        host=socket.gethostname(),
        pid=os.getpid(),
        boot_id=_text("/proc/sys/kernel/random/boot_id"),
        pid_space=_link("/proc/self/ns/pid"),
        process_start=process_start(os.getpid()),
        since=time.time(),
    )


def process_start(pid: int) -> str:
    """Start tick of a living process, "" when there is none or the system has no /proc."""
    stat = _text(f"/proc/{pid}/stat")
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""


class RunLock:
    """Holds a run directory. `check` raises once somebody else took it (this process was thought dead)."""

    def __init__(self, run: RunDir, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self.run = run
        self.holder = this_process()
        self.note = ""
        self._interval = heartbeat_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True, name="lock-heartbeat")

    def acquire(self) -> None:
        """Take the directory; `note` then tells of a stale lock that was removed, if any. Raises LockedError."""
        self.run.root.mkdir(parents=True, exist_ok=True)
        with _guard(self.run.root):
            holder, age = self._holder()
            if holder is not None and is_alive(holder, age):
                who = f"process {holder.pid} on {holder.host} since {_clock(holder.since)}"
                raise LockedError(f"{self.run.root} is in use by {who}: wait for it or stop it")
            if holder is not None:
                self.note = f"removed the stale lock of process {holder.pid} on {holder.host}"
            atomic_write(self.run.lock, msgspec.json.encode(self.holder))
        self._thread.start()

    def check(self) -> None:
        """Raise LockedError unless this process still holds the directory."""
        holder, _ = self._holder()
        if holder is None or holder.token != self.holder.token:
            raise LockedError(f"{self.run.root} was taken over by another driver: this one stops")

    def release(self) -> None:
        """Stop the heartbeat and remove the lock, if it is still ours."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        holder, _ = self._holder()
        if holder is not None and holder.token == self.holder.token:
            self.run.lock.unlink(missing_ok=True)

    def __enter__(self) -> "RunLock":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _beat(self) -> None:
        while not self._stop.wait(self._interval):
            with contextlib.suppress(OSError):
                os.utime(self.run.lock)

    def _holder(self) -> tuple[Holder | None, float]:
        """Who is written in the lock (None: nobody, or nothing legible) and the age of the last heartbeat."""
        try:
            data = self.run.lock.read_bytes()
            beat = self.run.lock.stat().st_mtime
        except FileNotFoundError:
            return None, 0.0
        try:
            return msgspec.json.decode(data, type=Holder, strict=True), _now(self.run.root) - beat
        except msgspec.MsgspecError:
            return None, 0.0


def is_alive(holder: Holder, age: float) -> bool:
    """Whether a holder whose last heartbeat was `age` seconds ago still drives."""
    here = this_process()
    if holder.host == here.host and holder.boot_id and here.boot_id:
        if holder.boot_id != here.boot_id:
            return False  # that machine was restarted
        if holder.pid_space == here.pid_space:
            return process_start(holder.pid) == holder.process_start
    return age < STALE_SECONDS


@contextlib.contextmanager
def _guard(folder: Path) -> Iterator[None]:
    """Only one process of this machine at a time looks at the lock and takes it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: the rename still decides
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _now(folder: Path) -> float:
    """The present by the clock of the file system of `folder`."""
    probe = folder / f".tmp-clock-{os.getpid()}"
    try:
        probe.write_bytes(b"")
        return probe.stat().st_mtime
    except OSError:  # a full disk: our own clock must do
        return time.time()
    finally:
        probe.unlink(missing_ok=True)


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
