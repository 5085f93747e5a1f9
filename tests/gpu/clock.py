"""Times of work on a device: CUDA's own events there, a monotonic clock on a CPU; medians with their spread.

An event is recorded before and behind each repeat, so a device that waits for its host shows as time of the work: that
is what a user waits for.
"""

import time
from collections.abc import Callable, Sequence
from statistics import median, quantiles
from typing import Any

import torch

from tests.gpu.setting import Setting

WARM_UPS = 3


def seconds_of(work: Callable[[], object], setting: Setting, *, repeats: int = 0) -> list[float]:
    """Seconds of each of `repeats` (0: the setting's) calls of `work`, after warm-ups."""
    for _ in range(WARM_UPS):
        work()
    count = repeats or setting.repeats
    if not setting.on_cuda:
        return [wall(work) for _ in range(count)]
    torch.cuda.synchronize(setting.device)
    taken = []
    for _ in range(count):
        before, behind = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before.record()
        work()
        behind.record()
        behind.synchronize()
        taken.append(before.elapsed_time(behind) / 1000)
    return taken


def wall(work: Callable[[], object]) -> float:
    """Seconds of one call on a monotonic clock."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def spread(seconds: Sequence[float]) -> dict[str, Any]:
    """Median, quartiles, extremes and number of repeats."""
    low, _, high = quantiles(seconds, n=4, method="inclusive")
    return {
        "median_s": median(seconds),
        "quartiles_s": [low, high],
        "min_s": min(seconds),
        "max_s": max(seconds),
        "n": len(seconds),
    }
