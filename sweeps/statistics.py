"""Estimates with intervals: bootstrap for means and ratios, Wilson for shares; undefined is None, never NaN.

Prompts are the sampling unit. Ratios are ratios of sums over the same prompts on both sides (paired), so every resample
draws prompts, never single numbers. The random stream is fixed and recorded: the same records give the same interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
RESAMPLES = 2000
BOOTSTRAP_SEED = 20261
CHUNK = 4_000_000
EXACT_DEGREES = 200
CHANCE = 0.05  # probability of a count of differences where there is none, up to which the count shows something
FEWEST = 3  # prompts for an interval of a mean or a ratio
ALIKE = 30  # prompts from which on no spread at all is evidence: at 95 % no more than one in ten differs then
ROUNDING = 1e-12
FEW, AGREE = f"fewer than {FEWEST} prompts", "all prompts agree"  # why there is no interval
UNDEFINED, WIDE = "some prompts alone have no ratio", "nothing bounds it"
WIDEST = 300.0  # natural logarithm of the widest factor that an interval may be: beyond it nothing is known

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number, its 95 % interval, the number of prompts behind it and how it was got.

    `value` is None when it is undefined (no prompts, zero denominator); `low` and `high` are None when no interval
    can be given: means and ratios have none from fewer than `FEWEST` prompts, nor where all prompts agree and are fewer
    than `ALIKE` (a spread that was not seen is not one that does not exist). `why` then says which of these it was.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    how: str = "measured"
    why: str = ""

    def __post_init__(self) -> None:
        for number in (self.value, self.low, self.high):
            assert number is None or math.isfinite(number), f"estimate holds {number}: undefined numbers are None"

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval, without which an estimate shows nothing beyond itself."""
        return self.low is not None and self.high is not None

    def above(self, level: float = 1.0) -> bool:
        """Whether the whole interval lies above `level`."""
        return self.low is not None and self.low > level

    def below(self, level: float = 1.0) -> bool:
        """Whether the whole interval lies below `level`."""
        return self.high is not None and self.high < level


def undefined(n: int = 0) -> Estimate:
    """The estimate of something that has no value."""
    return Estimate(value=None, low=None, high=None, n=n)


def mean(values: Sequence[float]) -> Estimate:
    """Mean over prompts with its bootstrap interval."""
    return ratio_of_sums(values, [1.0] * len(values))


def ratio_of_sums(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate:
    """Sum of `numerators` over sum of `denominators`, paired by prompt, with its bootstrap interval over prompts."""
    assert len(numerators) == len(denominators), "one numerator and one denominator a prompt"
    n = len(numerators)
    total = math.fsum(denominators)
    if n == 0 or total == 0:
        return undefined(n)
    value = math.fsum(numerators) / total
    sums_B2 = resampled_sums(np.column_stack([numerators, denominators]).astype(np.float64))
    return with_interval(value, n, sums_B2[:, 0], sums_B2[:, 1])


def with_interval(value: float, n: int, numerator_B: Floats, denominator_B: Floats) -> Estimate:
    """The estimate `value` with an interval from its resampled numerators and denominators.

    The bootstrap gives the standard error, Student's t the width: on the log scale, where a ratio is nearly symmetric,
    or on the plain one (cut at 0) where a resample is zero. Percentile intervals were measured to cover the truth only
    70 % of the time for three prompts and 86 % for six; these cover it 92 to 94 %. Counts of a few prompts are often
    equal by chance: resamples without any spread give no interval (see `Estimate`). Nor does a sample of which one
    resample is undefined (only prompts that count nothing below): leaving those out would make the rest look surer.
    """
    defined = np.isfinite(numerator_B).all() and np.isfinite(denominator_B).all() and (denominator_B > 0).all()
    if n < FEWEST or not defined:
        return Estimate(value=value, low=None, high=None, n=n, why=FEW if n < FEWEST else UNDEFINED)
    width = student_t_quantile((1 + LEVEL) / 2, n - 1) * math.sqrt(n / (n - 1))
    ratio_B = numerator_B / denominator_B
    if n < ALIKE and float(np.ptp(ratio_B)) <= ROUNDING * abs(value):
        return Estimate(value=value, low=None, high=None, n=n, why=AGREE)
    if value > 0 and np.all(ratio_B > 0):
        spread = width * float(np.log(ratio_B).std())
        if spread > WIDEST:
            return Estimate(value=value, low=None, high=None, n=n, why=WIDE)
        factor = math.exp(spread)
        return Estimate(value=value, low=value / factor, high=value * factor, n=n)
    half = width * float(ratio_B.std())
    return Estimate(value=value, low=max(0.0, value - half), high=value + half, n=n)


def resampled_sums(values_nk: Floats) -> Floats:
    """Sums `sums_Bk` of k columns over B resamples of the n rows: rows are drawn whole, so columns stay paired."""
    n = len(values_nk)
    if n * RESAMPLES <= CHUNK // 4:
        return np.asarray(resample_weights(n) @ values_nk)
    draws = np.random.Generator(np.random.PCG64(BOOTSTRAP_SEED))
    step = max(1, CHUNK // n)
    sizes = [min(step, RESAMPLES - start) for start in range(0, RESAMPLES, step)]
    return np.concatenate([draws.multinomial(n, np.full(n, 1 / n), size=size) @ values_nk for size in sizes])


@lru_cache(maxsize=8)
def resample_weights(n: int) -> Floats:
    """How often each of n prompts occurs in each of `RESAMPLES` resamples: `weights_Bn`, rows summing to n."""
    draws = np.random.Generator(np.random.PCG64(BOOTSTRAP_SEED))
    weights_Bn: Floats = draws.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)
    return weights_Bn


@lru_cache(maxsize=4096)
def student_t_quantile(p: float, degrees: int) -> float:
    """The p-quantile (p > 1/2) of Student's t distribution, by bisection on its distribution function."""
    z = NormalDist().inv_cdf(p)
    if degrees > EXACT_DEGREES:  # Cornish-Fisher, good to 1e-6 here
        return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    low, high = z, 1e4
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_t_cdf(middle, degrees) < p else (low, middle)
    return (low + high) / 2


def student_t_cdf(t: float, degrees: int) -> float:
    """Distribution function of Student's t for whole degrees of freedom (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    theta = math.atan(t / math.sqrt(degrees))
    cosine2 = math.cos(theta) ** 2
    odd = degrees % 2 == 1
    term = math.cos(theta) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 if odd else 1, degrees - 1, 2):
        term *= cosine2 * k / (k + 1)
        total += term
    middle = 2 / math.pi * (theta + math.sin(theta) * total) if odd else math.sin(theta) * total
    return (1 + middle) / 2


def wilson(successes: int, n: int) -> Estimate:
    """Share of successes with Wilson's score interval (never outside [0, 1], defined at 0 and n successes)."""
    if n == 0:
        return undefined()
    share = successes / n
    low, high = wilson_ends(share, n, NormalDist().inv_cdf((1 + LEVEL) / 2))
    return Estimate(value=share, low=low, high=high, n=n)


def wilson_ends(share: float, n: float, z: float) -> tuple[float, float]:
    """The ends of Wilson's score interval for a share of `n` (effective) trials, `z` standard errors wide."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (0.0 if share == 0 else max(0.0, centre - half)), (1.0 if share == 1 else min(1.0, centre + half))


def clustered_share(hits: Sequence[int] | Counts, trials: Sequence[int] | Counts) -> Estimate:
    """Share of `hits` in `trials`, both by prompt, where trials of one prompt are not independent.

    Wilson's interval for the effective number of trials: that at which independent ones would vary as the prompts'
    shares do (never more than there are; where nothing varies, the number of prompts), with Student's t for the normal
    quantile (Korn and Graubard 1998). `n` counts the prompts that have trials; one alone gives no interval. With one
    trial a prompt there is nothing to allow for: then it is `wilson`, as for the share of any one cell.
    """
    assert len(hits) == len(trials), "one count of hits and one of trials a prompt"
    hits_P, trials_P = np.asarray(hits), np.asarray(trials)
    prompts, total = int((trials_P > 0).sum()), int(trials_P.sum())
    if not total:
        return undefined()
    if total == prompts:
        return wilson(int(hits_P.sum()), total)
    share = int(hits_P.sum()) / total
    if prompts < 2:
        return Estimate(value=share, low=None, high=None, n=prompts, why="fewer than 2 prompts")
    squares = float(((hits_P - share * trials_P) ** 2).sum())
    variance = squares * prompts / (prompts - 1) / total**2 if 0 < share < 1 else 0.0
    effective = min(share * (1 - share) / variance, float(total)) if variance > 0 else float(prompts)
    low, high = wilson_ends(share, effective, student_t_quantile((1 + LEVEL) / 2, prompts - 1))
    return Estimate(value=share, low=low, high=high, n=prompts)


def more_than_chance(hits: int, n: int, *, sides: int = 1) -> bool:
    """Whether `hits` of `n` comparisons that differ beyond their intervals are more than chance alone explains.

    Without any difference each interval leaves 1 out on a given side with probability (1 - LEVEL) / 2, on either
    (`sides` 2) twice as often; chance explains a count whose binomial tail is above `CHANCE`. Comparisons count as
    independent; those that share prompts or cells are not wholly so, and chance may then give somewhat more.
    """
    assert 0 <= hits <= n, "a count of differences among the comparisons"
    p = sides * (1 - LEVEL) / 2
    logs = (
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)
        for k in range(hits, n + 1)
    )
    return math.fsum(map(math.exp, logs)) <= CHANCE + ROUNDING
