"""One row under way, as the supervisor sees it: talks to the runner, collects output, keeps the limits, decides.

Passed means one thing only: the runner sent this row's second secret, which it does after the tests ran to their end.
Everything else that arrives on the channel, or that the runner's end says, is at most a reason for a failure.
"""

import contextlib
import json
import os
import secrets
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any

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
    _reason: str = ""
    _introduced: bool = False
    _secrets: tuple[str, str] = field(default_factory=lambda: (secrets.token_hex(16), secrets.token_hex(16)))

    def verdict(self) -> str:
        """ "passed", or why not."""
        limits = self.request["limits"]
        deadline = time.monotonic() + limits["wall_seconds"]
        os.set_blocking(self.output, False)
        self.channel.settimeout(limits["wall_seconds"])
        self._say(json.dumps(limits), *self._secrets, json.dumps(self.request["code"]))
        with selectors.DefaultSelector() as ready:
            for source in (self.channel, self.output, sys.stdin):
                ready.register(source, selectors.EVENT_READ)
            while not self._reason:
                left = deadline - time.monotonic()
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
                    return self._reason or f"output limit of {limits['output_kb']} kB"
                if len(descendants(os.getpid())) > limits["processes"]:
                    return self._reason or f"process limit of {limits['processes']}"
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
        try:
            self.channel.sendall("".join(line + "\n" for line in lines).encode())
        except OSError:  # the runner is gone or stuck: the loop finds out which
            return

    def _hear(self) -> None:
        chunk = self.channel.recv(1 << 16)
        if not chunk:
            self._reason = self._ended()
        *lines, self._heard = (self._heard + chunk)[-(1 << 17) :].split(b"\n")
        for line in lines:
            said = line.decode(errors="replace")
            if said == self._secrets[0]:
                self._say(json.dumps([self.request["tests"], self.request["names"]]))
            elif said == self._secrets[1]:
                self._reason = self._reason or "passed"
            else:
                self._note(said)

    def _note(self, said: str) -> None:
        """A line without a secret: what the runner says about itself, or anything the code wrote there."""
        with contextlib.suppress(ValueError, AttributeError, TypeError):
            message = json.loads(said)
            if isinstance(message.get("failed"), str):
                self._reason = self._reason or message["failed"] or "failed"
            elif not self._introduced:  # the runner's first line, before any generated code
                self._introduced = True
                self.layers.update(message["layers"])

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
        number = os.WTERMSIG(status)
        if (
            number == signal.SIGKILL
            and usage
            and usage.ru_utime + usage.ru_stime >= self.request["limits"]["cpu_seconds"] - 0.1
        ):
            return f"CPU time limit of {self.request['limits']['cpu_seconds']} s"
        return f"killed by {signal.Signals(number).name} before the tests ended"
