"""A driver in a process of its own, for tests that kill it: `python -m tests.drive FOLDER PLAN_JSON [DEATH_JSON]`.

FOLDER gets `request.json`, `log` (executions) and `run` (the run directory). DEATH says where the process kills itself:
{"event": N} at the N-th event, {"rename": N} before the N-th result is renamed into place, {"renamed": N} right after.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from orchestrator.deadlines import Policy
from orchestrator.driver import run_plan
from orchestrator.events import RunEvent
from orchestrator.pool import Pool
from orchestrator.pool_inline import InlinePool
from orchestrator.stop import Stop
from sweeps.effort import ResourceSpec
from sweeps.store import RunDir
from tests.fake_plan import RUNNER, Watch, a_plan

ROOT = Path(__file__).parents[1]


class Deadly(Watch):
    """Kills the process at an event."""

    def __init__(self, death: dict[str, int]) -> None:
        super().__init__()
        self.death = death

    def show(self, event: RunEvent) -> None:
        super().show(event)
        if len(self.events) == self.death.get("event"):
            os.kill(os.getpid(), signal.SIGKILL)


def arm(death: dict[str, int]) -> None:
    """Kill the process around the N-th rename of a result file."""
    real, count = os.replace, 0

    def deadly(old: Path, new: Path) -> None:
        nonlocal count
        count += Path(new).parent.parent.name == "results"
        if count == death.get("rename"):
            os.kill(os.getpid(), signal.SIGKILL)
        real(old, new)
        if count == death.get("renamed"):
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = deadly  # type: ignore[assignment]


def main() -> int:
    """Run and print the outcome as one line."""
    folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    death = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
    arm(death)
    pool_name, policy = options.pop("pool", "inline"), Policy(**options.pop("policy", {}))
    plan = a_plan(folder, log=str(folder / "log"), **options)
    stop = Stop()
    with stop.on_signals():
        outcome = run_plan(
            plan, RunDir(folder / "run"), make_pool(pool_name, stop), progress=Deadly(death), stop=stop, policy=policy
        )
    print(json.dumps({"done": outcome.done, "failed": outcome.failed, "left": outcome.left}), flush=True)
    return outcome.exit_code


def make_pool(name: str, stop: Stop) -> Pool:
    """A pool by name; Ray is imported only where it is used."""
    if name == "inline":
        return InlinePool(runner_factory=RUNNER, stop=stop)
    from orchestrator.pool_ray import RayPool

    return RayPool(ResourceSpec(cpus=1.0, workers=2), runner_factory=RUNNER)


def launch(folder: Path, death: dict[str, int] | None = None, **options: Any) -> subprocess.Popen[str]:
    """Start such a driver in a session of its own."""
    command = [sys.executable, "-m", "tests.drive", str(folder), json.dumps(options), json.dumps(death or {})]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def drive(folder: Path, death: dict[str, int] | None = None, **options: Any) -> tuple[int, str]:
    """Run such a driver to its end; returns exit status and standard error."""
    process = launch(folder, death, **options)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def wait_for_events(folder: Path, kind: str, count: int, seconds: float = 60.0) -> None:
    """Until events.jsonl shows an event so many times."""
    log, deadline = folder / "run" / "events.jsonl", time.monotonic() + seconds
    while time.monotonic() < deadline:
        if log.exists() and log.read_text().count(f'"kind":"{kind}"') >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {count} events {kind} within {seconds} s")


def executions(folder: Path) -> list[str]:
    """Item ids in the order in which the fake runner was asked for them."""
    return (folder / "log").read_text().split()


if __name__ == "__main__":
    sys.exit(main())
