"""Grading answers in `\\boxed{}` by mathematical equality, as MATH500 is: `math-verify` decides, in its own process.

The last closed box is the answer; `\\fbox` counts as a box, an unclosed box does not, and no box is a wrong answer.
What `math-verify` decides is taken as it is: for the gold `28\\%` it accepts `28`, `28 percent` and `0.28`. An answer
that takes it too long is wrong with that reason. Never raises for any text; safe in threads.
"""

import atexit
import contextlib
import errno
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

from workers.tasks.base import Score
from workers.tasks.boxes import last_box
from workers.tasks.texts import clean

SECONDS = 5.0
MAX_LENGTH = 2000  # characters of an answer that is compared; longer is no answer
_PERCENT = re.compile(r"(?i)\s*(?:\\text\{\s*percent\s*\}|\bpercent\b)")


class Comparer:
    """A client of `workers.tasks.mathserver`: starts it when first asked, and again after it ran out of time."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._server: subprocess.Popen[str] | None = None

    def compare(self, gold: str, answer: str) -> tuple[bool, str]:
        """Whether both are equal, and why not where there is more to say. Raises OSError when it cannot start."""
        with self._lock:
            server = self._started()
            assert server.stdin is not None
            assert server.stdout is not None
            reply = ""
            with contextlib.suppress(BrokenPipeError):
                server.stdin.write(json.dumps([gold, answer]) + "\n")
                server.stdin.flush()
                reply = server.stdout.readline()
            if reply:
                verdict = json.loads(reply)
                return bool(verdict["equal"]), str(verdict["why"])
            self._end()
            return False, f"not compared within {self._seconds:g} s or the memory limit"

    def close(self) -> None:
        """End the server, if there is one."""
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[str]:
        if self._server is None:
            command = [sys.executable, "-m", "workers.tasks.mathserver", str(self._seconds)]
            self._server = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=Path(__file__).parents[2],
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
            assert self._server.stdout is not None
            if self._server.stdout.readline() != "ready\n":
                self._end()
                raise OSError(errno.EIO, "math-verify could not start: is the package math-verify installed?")
        return self._server

    def _end(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.communicate()
            self._server = None


_COMPARER = Comparer()
atexit.register(_COMPARER.close)


def gold_box(gold: str) -> str:
    """The expression of a gold answer: its last box, else after its last `####`, else all. ValueError if empty."""
    found = last_box(gold) or gold.rpartition("####")[2].strip()
    if not found:
        raise ValueError("is empty")
    return found


def score_boxed(gold: str, text: str) -> Score:
    """Correct when the last box is mathematically equal to the gold expression."""
    answer = last_box(text)
    if not answer:
        return Score(correct=False, reason="no closed \\boxed{} with an answer", extracted=None)
    wanted, shown = _normal(gold_box(gold)), clean(answer, limit=MAX_LENGTH)
    given = _normal(shown)
    if len(answer) > MAX_LENGTH:
        return Score(correct=False, reason=f"an answer of more than {MAX_LENGTH} characters", extracted=shown)
    equal, why = (True, "") if given == wanted else _COMPARER.compare(wanted, given)
    reason = "equal" if equal else why or f"expected {clean(wanted, limit=60)}"
    return Score(correct=equal, reason=reason, extracted=shown)


def _normal(expression: str) -> str:
    """Without dollar signs and outer spaces, and with `percent` as `\\%`."""
    return _PERCENT.sub(r"\\%", expression.replace("\\$", "").replace("$", "")).strip()
