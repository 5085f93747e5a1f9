"""One row under way, as the supervisor sees it: talks to the runner, collects output, keeps the limits, decides.

Passed means one thing only: the runner sent this row's second secret, which it does after the tests ran to their end.
Everything else that arrives on the channel, or that the runner's end says, is at most a reason for a failure.
"""

import contextlib
import json
import marshal
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from workers.tasks.jail import runner
from workers.tasks.jail.processes import descendants

POLL_SECONDS = 0.05
KEPT_BYTES = 4096  # of the output, at each end


@dataclass(slots=True, kw_only=True)
class Watch:
    """One row under way: talks to the runner, collects its output, keeps the limits that the kernel does not keep."""

    pid: int
    channel: socket.socket
    output: int
    request: dict[str, Any]
    layers: dict[str, str]
    abandoned: bool = False
    reaped: bool = False
    total: int = 0
    head: bytes = b""
    tail: bytes = b""
    _heard: bytes = b""
    passed: bool = False
    _reason: str = ""
    _deadline: float = 0.0
    _introduced: bool = False
    _secrets: tuple[str, str] = field(default_factory=lambda: (os.urandom(16).hex(), os.urandom(16).hex()))

    def verdict(self) -> str:
        """Serve the row to its end and say how it ended; `passed` is the verdict."""
        limits = self.request["limits"]
        self._deadline = time.monotonic() + limits["wall_seconds"]
        os.set_blocking(self.output, False)
        self._say(json.dumps(limits), *self._secrets, json.dumps(self.request["code"]))
        with selectors.DefaultSelector() as ready:
            for source in (self.channel, self.output, sys.stdin):
                ready.register(source, selectors.EVENT_READ)
            while not self._reason:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    return f"wall time limit of {limits['wall_seconds']:g} s"
                for key, _ in ready.select(min(left, POLL_SECONDS)):
                    if key.fileobj is sys.stdin:
                        self.abandoned = True
                        return "abandoned"
                    if key.fileobj is self.channel:
                        self._hear()
                    elif not self.drain():
                        ready.unregister(self.output)
                if self.total > limits["output_kb"] << 10:
                    self._fail(f"output limit of {limits['output_kb']} kB")
                if len(descendants(os.getpid())) > limits["processes"]:
                    self._fail(f"process limit of {limits['processes']}")
        return self._reason

    def drain(self) -> bool:
        """Read what was printed; False at its end. Keeps the first and the last few kilobytes."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):
                chunk = os.read(self.output, 1 << 16)
                if not chunk:
                    return False
                self.total += len(chunk)
                self.head += chunk[: KEPT_BYTES - len(self.head)]
                self.tail = (self.tail + chunk)[-KEPT_BYTES:]
        return True

    def text(self) -> str:
        """What was printed, cut in the middle when it is long."""
        if self.total <= KEPT_BYTES:
            return self.head.decode(errors="replace")
        cut = max(0, self.total - 2 * KEPT_BYTES)
        rest = self.tail[-(self.total - KEPT_BYTES) :].decode(errors="replace")
        middle = f"\n[{cut} bytes left out]\n" if cut else ""
        return self.head.decode(errors="replace") + middle + rest

    def _say(self, *lines: str) -> None:
        self.channel.settimeout(max(0.01, self._deadline - time.monotonic()))
        with contextlib.suppress(OSError):  # the runner is gone or stuck: the loop finds out which
            self.channel.sendall("".join(line + "\n" for line in lines).encode())

    def _hear(self) -> None:
        chunk = self.channel.recv(1 << 16)
        if not chunk:
            self._fail(self._ended())
        *lines, self._heard = (self._heard + chunk)[-(1 << 17) :].split(b"\n")
        for line in lines:
            said = line.decode(errors="replace")
            if said == self._secrets[0]:
                self._say(marshal.dumps((self.request["tests"], self.request["names"])).hex())
            elif said == self._secrets[1]:
                self.passed = not self._reason
                self._reason = self._reason or "passed"
            else:
                self._note(said)

    def _note(self, said: str) -> None:
        """A line without a secret: what the runner says about itself, or anything the code wrote there."""
        with contextlib.suppress(Exception):
            message = json.loads(said)
            if "failed" in message:
                self._fail(str(message["failed"])[: runner.MAX_REASON])
            elif not self._introduced:  # the runner's first line, before any generated code
                self._introduced = True
                self.layers.update(message["layers"])

    def _fail(self, reason: str) -> None:
        """The first end that is heard of counts; a failure that calls itself "passed" is given no name."""
        self._reason = self._reason or (reason if reason != "passed" else "") or "failed"

    def _ended(self) -> str:
        """How the runner left without a verdict."""
        deadline = time.monotonic() + 1.0
        status, usage = 0, None
        while time.monotonic() < deadline:
            done, status, usage = os.wait4(self.pid, os.WNOHANG)
            if done:
                self.reaped = True
                break
            time.sleep(0.002)
        else:
            return "closed its channel before the tests ended"
        if not os.WIFSIGNALED(status):
            return f"left with status {os.waitstatus_to_exitcode(status)} before the tests ended"
        number, allowed = os.WTERMSIG(status), self.request["limits"]["cpu_seconds"]
        used = usage.ru_utime + usage.ru_stime if usage else 0.0
        if number == signal.SIGKILL and used >= allowed / 2:  # the kernel counts in ticks, coarser than `used`
            return f"CPU time limit of {allowed} s"
        return f"killed by signal {number} ({signal.strsignal(number)}) before the tests ended"
