"""Throughput from timing records: kept tokens over seconds, variant against draft-free, interleaved on one worker.

Estimator: each prompt's time is the median of its repeats; a side's throughput is its kept tokens over its seconds,
both summed over prompts; the ratio divides the two sides over the same prompts. Its interval resamples prompts, and
within each resample the repeats, a repeat's variant and draft-free times together.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sweeps.records import GenerationRecord, TimingRecord
from sweeps.statistics import (
    BOOTSTRAP_SEED,
    FEW,
    RESAMPLES,
    Estimate,
    Floats,
    ratio_of_sums,
    resampled_sums,
    undefined,
    with_interval,
)

MIN_REPEATS = 3
MIN_PROMPTS = 3
MAX_CV = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Timing of a cell. Rates are kept tokens a second; `ratio` is variant over draft-free, `n` prompts each.

    `repeats` is the smallest number of repeats of a prompt; the two `cv` are pooled coefficients of variation of the
    repeats. The shares split the variant's own seconds. `doubts` says in words why a ratio should not be relied on;
    empty means that it passed the gates.
    """

    tokens_per_s: Estimate
    tokens_per_s_draft_free: Estimate
    ratio: Estimate
    repeats: int
    cv: float | None
    cv_draft_free: float | None
    drafter_share: float | None
    forward_share: float | None
    walk_share: float | None
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedPrompt:
    """One prompt on both sides: kept tokens, and seconds of each repeat."""

    tokens: int
    tokens_draft_free: int
    seconds: tuple[float, ...]
    seconds_draft_free: tuple[float, ...]


NO_TIMING = Throughput(
    tokens_per_s=undefined(),
    tokens_per_s_draft_free=undefined(),
    ratio=undefined(),
    repeats=0,
    cv=None,
    cv_draft_free=None,
    drafter_share=None,
    forward_share=None,
    walk_share=None,
    doubts=(),
)


def throughput(timings: Mapping[int, TimingRecord], baseline: Mapping[int, GenerationRecord]) -> Throughput:
    """Throughput of a cell. `baseline` gives the draft-free token counts of prompts whose outputs differ."""
    prompts = [timed for record in timings.values() if (timed := timed_prompt(record, baseline)) is not None]
    if not prompts:
        return NO_TIMING
    total = math.fsum(second for record in timings.values() for second in record.variant_seconds)
    repeats = min(len(prompt.seconds) for prompt in prompts)
    cv = pooled_cv([prompt.seconds for prompt in prompts])
    cv_draft_free = pooled_cv([prompt.seconds_draft_free for prompt in prompts])
    return Throughput(
        tokens_per_s=rate([p.tokens for p in prompts], [p.seconds for p in prompts]),
        tokens_per_s_draft_free=rate([p.tokens_draft_free for p in prompts], [p.seconds_draft_free for p in prompts]),
        ratio=throughput_ratio(prompts),
        repeats=repeats,
        cv=cv,
        cv_draft_free=cv_draft_free,
        drafter_share=share((record.drafter_seconds for record in timings.values()), total),
        forward_share=share((record.forward_seconds for record in timings.values()), total),
        walk_share=share((record.walk_seconds for record in timings.values()), total),
        doubts=doubts(len(prompts), repeats, cv, cv_draft_free),
    )


def draft_free_seconds(beside: Iterable[Mapping[int, TimingRecord]]) -> dict[int, list[float]]:
    """Seconds of draft-free decoding of each prompt, from the timings of the cells that were timed beside it."""
    seconds: dict[int, list[float]] = {}
    for timings in beside:
        for index, record in timings.items():
            if record.baseline_seconds:
                seconds.setdefault(index, []).extend(record.baseline_seconds)
    return seconds


def variant_seconds(timings: Mapping[int, TimingRecord]) -> dict[int, list[float]]:
    """Seconds of a cell's own decoding of each prompt."""
    return {index: list(record.variant_seconds) for index, record in timings.items() if record.variant_seconds}


def draft_free_throughput(
    seconds: Mapping[int, Sequence[float]], generations: Mapping[int, GenerationRecord]
) -> Throughput:
    """Throughput of draft-free decoding from its seconds beside other cells (no ratio)."""
    seconds = {index: own for index, own in seconds.items() if index in generations}
    if not seconds:
        return NO_TIMING
    rows = [seconds[index] for index in sorted(seconds)]
    repeats, cv = min(map(len, rows)), pooled_cv(rows)
    return replace(
        NO_TIMING,
        tokens_per_s=rate([generations[index].tokens_kept for index in sorted(seconds)], rows),
        repeats=repeats,
        cv=cv,
        doubts=doubts(len(rows), repeats, cv, cv),
    )


def timed_prompt(record: TimingRecord, baseline: Mapping[int, GenerationRecord]) -> TimedPrompt | None:
    """Both sides of a timed prompt; None when the draft-free token count is unknown or a side was not timed."""
    if not record.variant_seconds or not record.baseline_seconds:
        return None
    tokens = record.baseline_tokens_kept
    if tokens is None:  # a row made before they were kept
        tokens = record.tokens_kept if record.identical else kept(baseline.get(record.prompt_index))
    if tokens is None:
        return None
    return TimedPrompt(
        tokens=record.tokens_kept,
        tokens_draft_free=tokens,
        seconds=record.variant_seconds,
        seconds_draft_free=record.baseline_seconds,
    )


def kept(record: GenerationRecord | None) -> int | None:
    """Kept tokens of a generation, where there is one."""
    return None if record is None else record.tokens_kept


def rate(tokens: Sequence[int], seconds: Sequence[Sequence[float]]) -> Estimate:
    """Tokens a second: summed tokens over summed median seconds, interval over prompts."""
    return ratio_of_sums([float(count) for count in tokens], [float(np.median(row)) for row in seconds])


def throughput_ratio(prompts: Sequence[TimedPrompt]) -> Estimate:
    """Variant over draft-free throughput with its paired interval over prompts and repeats."""
    n = len(prompts)
    tokens = math.fsum(prompt.tokens for prompt in prompts)
    tokens_draft_free = math.fsum(prompt.tokens_draft_free for prompt in prompts)
    seconds = math.fsum(float(np.median(prompt.seconds)) for prompt in prompts)
    seconds_draft_free = math.fsum(float(np.median(prompt.seconds_draft_free)) for prompt in prompts)
    if not (seconds > 0 and seconds_draft_free > 0 and tokens_draft_free > 0):
        return undefined(n)
    value = (tokens / seconds) / (tokens_draft_free / seconds_draft_free)
    if n < 2:
        return Estimate(value=value, low=None, high=None, n=n, why=FEW)
    weights_Bn = resampled_sums(np.eye(n))
    medians_2Bn = resampled_medians(prompts)
    counts_n2 = np.array([[prompt.tokens, prompt.tokens_draft_free] for prompt in prompts], dtype=np.float64)
    tokens_B2 = weights_Bn @ counts_n2
    seconds_2B = (weights_Bn[None] * medians_2Bn).sum(axis=2)
    return with_interval(value, n, tokens_B2[:, 0] * seconds_2B[1], tokens_B2[:, 1] * seconds_2B[0])


def resampled_medians(prompts: Sequence[TimedPrompt]) -> Floats:
    """For each prompt and resample the median of its redrawn repeats, variant and draft-free: `medians_2Bn`."""
    draws = np.random.Generator(np.random.PCG64(BOOTSTRAP_SEED + 1))
    medians_2Bn = np.empty((2, RESAMPLES, len(prompts)))
    for column, prompt in enumerate(prompts):
        repeats = min(len(prompt.seconds), len(prompt.seconds_draft_free))
        picks_BR = draws.integers(repeats, size=(RESAMPLES, repeats))
        for side, seconds in enumerate((prompt.seconds, prompt.seconds_draft_free)):
            medians_2Bn[side, :, column] = np.median(np.asarray(seconds)[picks_BR], axis=1)
    return medians_2Bn


def medians(prompts: Sequence[TimedPrompt]) -> Floats:
    """Median seconds of each prompt, variant and draft-free: `medians_21n`."""
    return np.array(
        [
            [[np.median(prompt.seconds) for prompt in prompts]],
            [[np.median(prompt.seconds_draft_free) for prompt in prompts]],
        ]
    )


def multiple(prompts: Sequence[TimedPrompt], weights_Bn: Floats, medians_2Bn: Floats) -> Floats:
    """Throughput as a multiple of draft-free for each weighting of the prompts, as a fraction: `above_and_below_2B`."""
    tokens_n2 = np.array([[prompt.tokens, prompt.tokens_draft_free] for prompt in prompts], dtype=np.float64)
    tokens_B2, seconds_2B = weights_Bn @ tokens_n2, (weights_Bn[None] * medians_2Bn).sum(axis=2)
    return np.stack([tokens_B2[:, 0] * seconds_2B[1], tokens_B2[:, 1] * seconds_2B[0]])


def pooled_cv(rows: Sequence[Sequence[float]]) -> float | None:
    """Root mean square over prompts of the repeats' standard deviation over their mean; None without repeats."""
    squares = []
    for row in rows:
        mean = math.fsum(row) / len(row)
        if len(row) < 2 or mean <= 0:
            continue
        squares.append(math.fsum((second - mean) ** 2 for second in row) / (len(row) - 1) / mean**2)
    return math.sqrt(math.fsum(squares) / len(squares)) if squares else None


def share(parts: Iterable[float], total: float) -> float | None:
    """A part of the variant's seconds; None when nothing was measured."""
    return math.fsum(parts) / total if total > 0 else None


def doubts_of(prompts: Sequence[TimedPrompt]) -> tuple[str, ...]:
    """Why timings of prompts should not be relied on."""
    cv, cv_draft_free = (pooled_cv(rows) for rows in both_sides(prompts))
    return doubts(len(prompts), min(len(prompt.seconds) for prompt in prompts), cv, cv_draft_free)


def both_sides(prompts: Sequence[TimedPrompt]) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    """Seconds of each prompt's repeats, variant and draft-free."""
    return [prompt.seconds for prompt in prompts], [prompt.seconds_draft_free for prompt in prompts]


def doubts(prompts: int, repeats: int, cv: float | None, cv_draft_free: float | None) -> tuple[str, ...]:
    """Why a timing should not be relied on."""
    found = []
    if repeats < MIN_REPEATS:
        found.append(f"{repeats} repeats, fewer than {MIN_REPEATS}")
    if prompts < MIN_PROMPTS:
        found.append(f"{prompts} prompts, fewer than {MIN_PROMPTS}")
    for name, value in (("variant", cv), ("draft-free", cv_draft_free)):
        if value is not None and value > MAX_CV:
            found.append(f"{name} repeats vary by {value:.0%}, more than {MAX_CV:.0%}")
    return tuple(found)
