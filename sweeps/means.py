"""Means of ratios over tasks, with intervals over the prompts of these tasks: the tasks themselves are taken as given.

Each task's estimate brings the standard error of its own bootstrap over prompts. Tasks have prompts of their own, so
their errors add as independent ones, on the log scale, with Satterthwaite's degrees of freedom for Student's t.
"""

import math
from collections.abc import Sequence
from statistics import fmean, geometric_mean

from sweeps.statistics import LEVEL, Estimate, student_t_quantile, undefined


def geometric(tasks: Sequence[Estimate]) -> Estimate:
    """Geometric mean of one ratio a task. Undefined unless all have a positive value."""
    values = positive(tasks)
    return weighted(geometric_mean(values), [1 / len(values)] * len(values), tasks) if values else undefined()


def arithmetic(tasks: Sequence[Estimate]) -> Estimate:
    """Arithmetic mean of one ratio a task. Undefined unless all have a positive value."""
    values = positive(tasks)
    return weighted(fmean(values), [value / math.fsum(values) for value in values], tasks) if values else undefined()


def over_seeds(seeds: Sequence[Estimate]) -> Estimate:
    """Mean of the ratios of several seeds. They share prompts, so their errors add as if they were one (the widest)."""
    values = positive(seeds)
    if not values:
        return undefined()
    mean, n = fmean(values), min(estimate.n for estimate in seeds)
    widths = [half_width(estimate) for estimate in seeds]
    known = [width for width in widths if width is not None]
    if len(known) < len(widths):
        return Estimate(value=mean, low=None, high=None, n=n, why=why_none(seeds, "seed"))
    factor = math.exp(math.fsum(v * width for v, width in zip(values, known, strict=True)) / math.fsum(values))
    return Estimate(value=mean, low=mean / factor, high=mean * factor, n=n)


def positive(estimates: Sequence[Estimate]) -> list[float]:
    """Their values; none when one is undefined or zero."""
    values = [estimate.value for estimate in estimates if estimate.value is not None and estimate.value > 0]
    return values if len(values) == len(estimates) else []


def half_width(estimate: Estimate) -> float | None:
    """Half the width of an interval on the log scale."""
    return 0.5 * math.log(estimate.high / estimate.low) if estimate.low and estimate.high else None


def why_none(parts: Sequence[Estimate], noun: str) -> str:
    """Why their mean has no interval: the reasons of those that have none, which their summed prompts do not tell."""
    bare = [part for part in parts if half_width(part) is None]
    reasons = dict.fromkeys(part.why or "an interval that reaches 0" for part in bare)
    of = "" if len(parts) == 1 else f" in a {noun}" if len(bare) == 1 else f" in {len(bare)} {noun}s"
    return f"{' or '.join(reasons)}{of}"


def weighted(value: float, weights: Sequence[float], tasks: Sequence[Estimate]) -> Estimate:
    """`value` with the interval that follows from the tasks'; none where a task has none."""
    n, p = sum(estimate.n for estimate in tasks), (1 + LEVEL) / 2
    variances = []
    for weight, estimate in zip(weights, tasks, strict=True):
        half = half_width(estimate)
        if half is None:
            return Estimate(value=value, low=None, high=None, n=n, why=why_none(tasks, "task"))
        variances.append((weight * half / student_t_quantile(p, estimate.n - 1)) ** 2)
    total = math.fsum(variances)
    if total == 0:
        return Estimate(value=value, low=value, high=value, n=n)
    shares = (variance**2 / (estimate.n - 1) for variance, estimate in zip(variances, tasks, strict=True))
    degrees = max(1, math.floor(total**2 / math.fsum(shares)))
    factor = math.exp(student_t_quantile(p, degrees) * math.sqrt(total))
    return Estimate(value=value, low=value / factor, high=value * factor, n=n)
