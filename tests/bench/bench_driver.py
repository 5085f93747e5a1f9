"""What the driver adds to an item that does nothing, inline and on Ray, and Ray Tune on as many no-op trials beside it.

python tests/bench/bench_driver.py [items] [trials]

Start-up is told apart: an item's overhead is the time between the first and the last answer, over the items between.
Everything a real item pays is in it: scheduling, sending, checking, one flushed and renamed file, the log. A Tune trial
pays for its own actor's start, which is how Tune runs a cell.
"""

import contextlib
import io
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")

from orchestrator.driver import run_plan
from orchestrator.events import RunEvent
from orchestrator.pool import Pool
from orchestrator.pool_inline import InlinePool
from sweeps.effort import ResourceSpec
from sweeps.store import RunDir
from tests.bench.common import report
from tests.fake_plan import RUNNER, Watch, a_plan


class Stamps(Watch):
    """Remembers when answers were stored."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def show(self, event: RunEvent) -> None:
        if event.kind == "item_done":
            self.times.append(time.perf_counter())


def overhead(pool: Pool, items: int, folder: Path) -> dict[str, float]:
    """Seconds an item between the first and the last of `items`, and seconds until the first one."""
    plan, watch = a_plan(folder, cells=1, prompts=items, chunk=1), Stamps()
    began = time.perf_counter()
    outcome = run_plan(plan, RunDir(folder / "run"), pool, progress=watch)
    assert outcome.done == items, outcome
    first, last = watch.times[0], watch.times[-1]
    return {"ms_per_item": (last - first) / (items - 1) * 1000, "first_item_s": first - began}


def tune_overhead(trials: int, folder: Path) -> dict[str, Any]:
    """Milliseconds a trial that Ray Tune takes for a function that returns at once, on the Ray that is running."""
    try:
        from ray import tune
    except ImportError as error:
        return {"ms_per_trial": None, "why": str(error)}
    tuner = tune.Tuner(
        tune.with_resources(lambda config: {"done": 1}, {"cpu": 1}),
        param_space={"index": tune.grid_search(list(range(trials)))},
        run_config=tune.RunConfig(storage_path=str(folder), name="noop", verbose=0),
    )
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        results = tuner.fit()
    assert len(results) == trials
    assert not results.errors
    return {"ms_per_trial": (time.perf_counter() - began) / trials * 1000}


def main(items: int = 200, trials: int = 16) -> None:
    """Print one JSON line; the ratio is within this one run, on one Ray, with one worker a CPU on both sides."""
    import ray

    from orchestrator.pool_ray import RayPool

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inline = overhead(InlinePool(runner_factory=RUNNER), items, folder / "inline")
        ray.init("local", include_dashboard=False, log_to_driver=False, logging_level="error")
        cpus = int(ray.cluster_resources()["CPU"])
        on_ray = overhead(RayPool(ResourceSpec(), runner_factory=RUNNER), items, folder / "ray")
        tune = tune_overhead(trials, folder / "tune")
        ray.shutdown()
    ratio = tune["ms_per_trial"] / on_ray["ms_per_item"] if tune["ms_per_trial"] else None
    report(
        "driver",
        items=items,
        inline_ms_per_item=round(inline["ms_per_item"], 2),
        ray_ms_per_item=round(on_ray["ms_per_item"], 2),
        ray_first_item_s=round(on_ray["first_item_s"], 2),
        tune_trials=trials,
        tune_ms_per_trial=tune["ms_per_trial"] and round(tune["ms_per_trial"], 1),
        tune_over_ray=ratio and round(ratio, 1),
        ray=ray.__version__,
        workers=cpus,
        load=round(os.getloadavg()[0], 1),
    )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
