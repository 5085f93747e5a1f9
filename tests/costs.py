"""Cost curves for tests: made up, so that what is chosen by them can be worked out by hand."""

import atexit
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from workers.models.cost_curve import CostCurve, DrafterCost, ForwardCost, Timing, write_cost_curve


def exactly(seconds: float) -> Timing:
    """A timing without spread."""
    return Timing(seconds=seconds, low=seconds, high=seconds)


def curve_of(
    seconds: Callable[[int, int], float],
    *,
    states: Sequence[int] = (1, 2, 5, 9, 21),
    prefixes: Sequence[int] = (0, 64, 256),
    drafter: dict[int, float] | None = None,
    **fields: Any,
) -> CostCurve:
    """The curve whose forward of N states over M positions takes `seconds(N, M)`."""
    known: dict[str, Any] = {
        "target": "toy",
        "target_digest": "toy-0",
        "dtype": "float64",
        "cache": "exact",
        "block_length": 8,
        "device": "cpu",
        "threads": 1,
        "torch": "2",
        "repeats": 3,
        "drafter": "spot",
        "drafter_digest": "d",
    }
    forwards = [
        ForwardCost(states=count, prefix=prefix, time=exactly(seconds(count, prefix)))
        for prefix in prefixes
        for count in states
    ]
    drafters = [DrafterCost(budget=budget, time=exactly(taken)) for budget, taken in (drafter or {}).items()]
    return CostCurve(forwards=tuple(forwards), drafters=tuple(drafters), **{**known, **fields})


@cache
def steep_curve_file(block_length: int) -> str:
    """A curve by which a state more costs a tenth of the root: few drafts are worth it. Made once."""
    folder = TemporaryDirectory(prefix="cost-")
    atexit.register(folder.cleanup)
    file = Path(folder.name) / "curve.json"
    curve = curve_of(lambda states, prefix: 1.0 + 0.1 * (states - 1), block_length=block_length, drafter={20: 0.2})
    write_cost_curve(file, curve)
    return str(file)
