"""Ratios in words, each with the interval and the prompts it rests on; a ratio below 1 is never called `fewer`."""

from dataclasses import replace

from reports.text import count, interval, number
from sweeps.statistics import Estimate, more_than_chance

UNCORRECTED = "Intervals are not corrected for the number of comparisons."


def span(estimate: Estimate) -> str:
    """The interval, or why there is none."""
    return interval(estimate) or f"no interval{f': {estimate.why}' if estimate.why else ''}"


def evidence(estimate: Estimate) -> str:
    """What a number rests on: its interval, or why it has none, and its prompts."""
    return f"{span(estimate)}; {count(estimate.n, 'prompt')}"


def inverted(ratio: Estimate) -> Estimate:
    """One over a ratio, its interval turned round."""
    value, low, high = (1 / end if end else None for end in (ratio.value, ratio.high, ratio.low))
    return replace(ratio, value=value, low=low, high=high)


def fewer(ratio: Estimate, than: str) -> str:
    """Forwards of `than` over ours: `2.00 times fewer forwards than`, below 1 `1.05 times as many forwards as`."""
    shown = number(ratio.value)
    if shown == "1.00":
        return f"as many forwards as {than} (ratio {shown}; {evidence(ratio)})"
    if ratio.value is not None and ratio.value < 1:
        more = inverted(ratio)
        return f"{number(more.value)} times as many forwards as {than} ({evidence(more)})"
    return f"{shown} times fewer forwards than {than} ({evidence(ratio)})"


def chance(hits: int, n: int, *, sides: int = 1) -> str:
    """`1 of 8 is what chance may give`, where a count of differences is no more than that; empty elsewhere."""
    return f"{hits:,} of {n:,} is what chance may give" if hits and not more_than_chance(hits, n, sides=sides) else ""
