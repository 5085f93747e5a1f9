"""What every benchmark says about itself: one JSON line with its name, its ratios and the machine it ran on."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from workers.catalog import TARGETS, resolve


def machine() -> dict[str, Any]:
    """What the benchmark ran on."""
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": "cpu",
    }


def report(name: str, **figures: Any) -> None:
    """Print one strict JSON line."""
    print(json.dumps({"bench": name, **figures, "ran_on": machine()}, allow_nan=False), flush=True)


def interleaved(
    variants: Mapping[Any, Callable[[], Any]], *, repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[Any, float]:
    """Median seconds of each variant. They take turns, so that a slow spell of the machine hits them all alike."""
    for run in variants.values():
        run()  # warm-up
    seconds: dict[Any, list[float]] = {name: [] for name in variants}
    for turn in range(repeats):
        order = list(variants) if turn % 2 == 0 else list(reversed(variants))
        for name in order:
            began = clock()
            variants[name]()
            seconds[name].append(clock() - began)
    return {name: statistics.median(values) for name, values in seconds.items()}


def tiny_target(name: str = "tiny-sdar") -> Any:
    """The shipped tiny target on one CPU thread, as a sweep's worker would load it."""
    torch.set_num_threads(1)
    from sweeps.spec import TargetSpec

    return resolve("workers.targets.load:load")(TargetSpec(name=name, path=TARGETS[name].path), device="cpu")
