"""The difference of two shares over the same prompts, with its score interval.

Two decoders answer the same prompts, so their shares of right answers are not independent: only the prompts on which
they differ say anything of the difference. Tango's interval (Statistics in Medicine 17, 1998) is to it what Wilson's
is to one share: never outside of [-1, 1], and never of width zero because a few prompts agree.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

from sweeps.statistics import LEVEL, Estimate, undefined

STEPS = 60  # halvings of a bracket of width 2: beyond what a float resolves


def paired_difference(ours: Sequence[bool], theirs: Sequence[bool]) -> Estimate:
    """Share of `ours` less share of `theirs`, of the same prompts in the same order, with Tango's score interval."""
    assert len(ours) == len(theirs), "two answers a prompt"
    n = len(ours)
    if not n:
        return undefined()
    gained = sum(one and not other for one, other in zip(ours, theirs, strict=True))
    lost = sum(other and not one for one, other in zip(ours, theirs, strict=True))
    low, high = -upper_end(lost, gained, n), upper_end(gained, lost, n)
    return Estimate(value=(gained - lost) / n, low=low, high=high, n=n)


def upper_end(gained: int, lost: int, n: int) -> float:
    """The largest difference that a score test at `LEVEL` does not reject."""
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    low, high = (gained - lost) / n, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if score(gained, lost, n, middle) < -z else (middle, high)
    return 1.0 if high == 1.0 else low


def score(gained: int, lost: int, n: int, difference: float) -> float:
    """Standardised distance of the observed from a supposed difference, its variance under that supposition.

    There the share of lost prompts has the greatest likelihood p, the positive root of a square equation.
    """
    b = (2 * n - gained + lost) * difference - gained - lost
    c = -lost * difference * (1 - difference)
    p = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
    variance = n * max(0.0, 2 * p + difference * (1 - difference))
    distance = gained - lost - n * difference
    if variance <= 0:
        return 0.0 if abs(distance) < 1e-12 else math.copysign(math.inf, distance)
    return distance / math.sqrt(variance)
