"""The measured cost of a round: seconds of a target forward by block states and prefix length, and of the drafter.

A cost-aware drafter reads it to choose how many drafts are worth verifying (decoding.md section 8). It is a file, not a
clock, so that the number of forwards stays a function of the cell, whose identity holds the file's digest. Planning
reads it, so this module imports no torch.

How it is used: medians are made non-decreasing in states and in prefix (a running maximum: more work never costs less,
noise may say so), then interpolated linearly in both; a longer prefix than any measured costs what the longest does.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from sweeps.paths import expanded
from sweeps.spec import MAX_BLOCK, MAX_BUDGET
from workers.catalog import ZOO
from workers.models.named import not_there
from workers.models.sealed import read_sealed, require, write_sealed

FORMAT, VERSION, NOUN = "spot-cost-curve", 1, "cost curve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Median seconds of one thing, and its quartiles."""

    seconds: float
    low: float
    high: float

    def __post_init__(self) -> None:
        require(0 < self.low <= self.seconds <= self.high < float("inf"), f"{self} is no median between quartiles")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardCost:
    """One forward of `states` copies of the active block over a cached prefix of `prefix` positions."""

    states: int
    prefix: int
    time: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterCost:
    """What the drafter takes a round, its stale distribution included, when it may propose `budget` drafts."""

    budget: int
    time: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class CostCurve:
    """One target on one device. `forwards` holds every pair of the measured states and prefixes.

    `drafter` (with the digest of its artifact) is the one that was timed; without one its time counts as nothing.
    """

    format: str = FORMAT
    version: int = VERSION
    digest: str = ""
    target: str
    target_digest: str
    dtype: str
    cache: str
    block_length: int
    device: str
    threads: int
    torch: str
    repeats: int
    drafter: str
    drafter_digest: str
    forwards: tuple[ForwardCost, ...]
    drafters: tuple[DrafterCost, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError where the parts do not fit one another."""
        states, prefixes = self.states, self.prefixes
        grid = [(prefix, count) for prefix in prefixes for count in states]
        found = sorted((cost.prefix, cost.states) for cost in self.forwards)
        require(bool(grid) and found == grid, "forwards are not every pair of its states and prefixes, each once")
        require(1 <= self.block_length <= MAX_BLOCK, f"block_length is {self.block_length}")
        require(self.threads >= 1, f"threads are {self.threads}: allowed is a whole number from 1")
        require(self.repeats >= 1, f"repeats are {self.repeats}: allowed is a whole number from 1")
        require(states[-1] <= MAX_BUDGET + 1, f"the most states are {states[-1]}: allowed are {MAX_BUDGET + 1}")
        require(states[0] == 1, f"the fewest states are {states[0]}: allowed is 1, the root alone")
        require(prefixes[0] >= 0, f"a prefix is {prefixes[0]}")
        budgets = [cost.budget for cost in self.drafters]
        require(budgets == sorted(set(budgets)) and min(budgets, default=1) >= 1, f"budgets are {budgets}")

    @property
    def states(self) -> list[int]:
        """The measured numbers of states, ascending."""
        return sorted({cost.states for cost in self.forwards})

    @property
    def prefixes(self) -> list[int]:
        """The measured prefix lengths, ascending."""
        return sorted({cost.prefix for cost in self.forwards})

    @property
    def budget_max(self) -> int:
        """The most drafts beside the root whose forward was measured."""
        return self.states[-1] - 1

    def forward_seconds(self, prefix: int) -> tuple[float, ...]:
        """Seconds of a forward of 1, 2, .. `budget_max` + 1 states over `prefix` positions."""
        seconds = {(cost.states, cost.prefix): cost.time.seconds for cost in self.forwards}
        rows: list[list[float]] = []
        for longer in self.prefixes:
            row = list(accumulate((seconds[count, longer] for count in self.states), max))
            rows.append([max(pair) for pair in zip(row, rows[-1], strict=True)] if rows else row)
        here = [between(self.prefixes, list(column), prefix) for column in zip(*rows, strict=True)]
        return tuple(between(self.states, here, count) for count in range(1, self.states[-1] + 1))

    def drafter_seconds(self, budget: int) -> float:
        """Seconds of the drafter a round at `budget`."""
        if not self.drafters:
            return 0.0
        rising = accumulate((cost.time.seconds for cost in self.drafters), max)
        return between([cost.budget for cost in self.drafters], list(rising), budget)


def between(places: list[int], values: list[float], place: int) -> float:
    """Linear interpolation of `values` at ascending `places`; outside of them the nearest value."""
    right = bisect_right(places, place)
    if right == 0 or right == len(places):
        return values[0] if right == 0 else values[-1]
    left = right - 1
    share = (place - places[left]) / (places[right] - places[left])
    return values[left] + share * (values[right] - values[left])


def find_cost_curve(cost: str) -> Path:
    """The file that `cost` stands for: a path, or a name of the zoo's costs.

    Raises ValueError when it is neither; AbsentError when it is a path at which there is nothing yet.
    """
    names = sorted(path.stem for path in (ZOO / "costs").glob("*.json"))
    path = expanded(cost, f"{NOUN}: cost")
    if path.is_file():
        return path
    if cost in names:
        return ZOO / "costs" / f"{cost}.json"
    raise not_there(f"{NOUN}: cost", cost, path, "a file", names)


def read_cost_curve(file: Path) -> CostCurve:
    """The curve in a file. Raises ValueError when it is foreign, altered or contradicts itself."""
    what = f"{NOUN} {file}"
    return read_sealed(file, CostCurve, what=what, format=FORMAT, version=VERSION, again="measure it again")


def write_cost_curve(file: Path, curve: CostCurve) -> str:
    """Write a curve with its digest, one measured point a line, wholly or not at all; returns the digest."""
    return write_sealed(file, curve)
