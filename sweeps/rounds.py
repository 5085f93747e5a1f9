"""Where the time of a round goes, from timing records: drafter, verification forward, walk, rest; draft-free beside.

A round is one forward and the walk over its results. Every prompt counts with the mean over its repeats; numbers are
sums over prompts divided by sums over the same prompts, and intervals resample prompts. These are times: how many
rounds there are (NFE) is another number and enters none of them but the break-even.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from sweeps.draws import share
from sweeps.records import GenerationRecord, TimingRecord
from sweeps.statistics import UNDEFINED, Estimate, Floats, ratio_of_sums, resampled_sums, undefined, with_interval

MS = 1000.0
PREDICTED = "predicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTime:
    """Milliseconds a round and shares of it, `n` prompts each; draft-free the same over its own forwards.

    `drafter`, `forward`, `walk` and `rest` add up to `total`; the walk includes the output head of its states.
    `positions` are token positions forwarded a round. `cost_ratio` is the verification forward over a draft-free
    forward (measured). `break_even` (predicted, by arithmetic on the measured parts) is the cost ratio below which all
    rounds together take less time than draft-free decoding: all else a round has stays as measured, so it may be below
    1 or negative, where not even a verification at the price of a draft-free forward would pay.
    """

    total: Estimate
    drafter: Estimate
    forward: Estimate
    walk: Estimate
    rest: Estimate
    drafter_share: Estimate
    forward_share: Estimate
    walk_share: Estimate
    rest_share: Estimate
    positions: Estimate
    draft_free: Estimate
    draft_free_forward: Estimate
    draft_free_positions: Estimate
    cost_ratio: Estimate
    break_even: Estimate

    @property
    def n(self) -> int:
        """Prompts behind the parts of a round."""
        return self.total.n


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSums:
    """One prompt: seconds of one decode of each side (mean over repeats), rounds and forwarded positions of each.

    `draft_free_forward` is None in rows made before it was kept.
    """

    rounds: int
    positions: int
    total: float
    drafter: float
    forward: float
    walk: float
    draft_free_rounds: int
    draft_free_positions: int
    draft_free: float
    draft_free_forward: float | None

    @property
    def rest(self) -> float:
        """Seconds outside of the three parts."""
        return max(0.0, self.total - self.drafter - self.forward - self.walk)


def round_time(
    timings: Mapping[int, TimingRecord],
    generations: Mapping[int, GenerationRecord],
    baseline: Mapping[int, GenerationRecord],
) -> RoundTime:
    """Where the time of a cell's rounds goes; undefined everywhere when nothing was timed."""
    return of_sums(
        [
            sums
            for index, record in sorted(timings.items())
            if (sums := sums_of(record, generations.get(index), baseline.get(index))) is not None
        ]
    )


def draft_free_rounds(beside: Sequence[Mapping[int, TimingRecord]]) -> tuple[Estimate, Estimate]:
    """Milliseconds of a draft-free round, and of its forward, measured beside several cells of the same prompts.

    A prompt counts once, with the mean over all it was timed beside. The second is undefined where a row lacks it.
    """
    rows: dict[int, list[TimingRecord]] = {}
    for timings in beside:
        for index, record in timings.items():
            if record.baseline_seconds:
                rows.setdefault(index, []).append(record)
    prompts = [rows[index] for index in sorted(rows)]
    rounds = [float(of_prompt[0].baseline_nfe) for of_prompt in prompts]
    whole = [MS * fmean(fmean(row.baseline_seconds) for row in of_prompt) for of_prompt in prompts]
    if any(row.baseline_forward_seconds is None for of_prompt in prompts for row in of_prompt):
        return ratio_of_sums(whole, rounds), undefined(len(prompts))
    forwards = [
        MS * fmean((row.baseline_forward_seconds or 0.0) / len(row.baseline_seconds) for row in of_prompt)
        for of_prompt in prompts
    ]
    return ratio_of_sums(whole, rounds), ratio_of_sums(forwards, rounds)


def sums_of(
    record: TimingRecord, generation: GenerationRecord | None, baseline: GenerationRecord | None
) -> RoundSums | None:
    """One timed prompt; None when a side was not timed, or a decode, whose rounds and positions count, is missing."""
    if not (record.variant_seconds and record.baseline_seconds and generation and baseline):
        return None
    repeats, forward = len(record.variant_seconds), record.baseline_forward_seconds
    return RoundSums(
        rounds=generation.counters.rounds,
        positions=generation.counters.positions,
        total=math.fsum(record.variant_seconds) / repeats,
        drafter=record.drafter_seconds / repeats,
        forward=record.forward_seconds / repeats,
        walk=record.walk_seconds / repeats,
        draft_free_rounds=record.baseline_nfe,
        draft_free_positions=baseline.counters.positions,
        draft_free=math.fsum(record.baseline_seconds) / len(record.baseline_seconds),
        draft_free_forward=None if forward is None else forward / len(record.baseline_seconds),
    )


def of_sums(prompts: Sequence[RoundSums]) -> RoundTime:
    """The numbers of some prompts."""
    rounds = [float(one.rounds) for one in prompts]
    plain = [float(one.draft_free_rounds) for one in prompts]
    parts = {name: [getattr(one, name) for one in prompts] for name in ("total", "drafter", "forward", "walk", "rest")}
    whole = [one for one in prompts if one.draft_free_forward is not None]
    forwards = [one.draft_free_forward or 0.0 for one in whole]

    def a_round(name: str) -> Estimate:
        return ratio_of_sums([MS * seconds for seconds in parts[name]], rounds)

    def part(name: str) -> Estimate:
        return share(parts[name], parts["total"])

    return RoundTime(
        total=a_round("total"),
        drafter=a_round("drafter"),
        forward=a_round("forward"),
        walk=a_round("walk"),
        rest=a_round("rest"),
        drafter_share=part("drafter"),
        forward_share=part("forward"),
        walk_share=part("walk"),
        rest_share=part("rest"),
        positions=ratio_of_sums([float(one.positions) for one in prompts], rounds),
        draft_free=ratio_of_sums([MS * one.draft_free for one in prompts], plain),
        draft_free_forward=ratio_of_sums(
            [MS * seconds for seconds in forwards], [float(one.draft_free_rounds) for one in whole]
        ),
        draft_free_positions=ratio_of_sums([float(one.draft_free_positions) for one in prompts], plain),
        cost_ratio=cost_ratio(whole),
        break_even=break_even(whole),
    )


def cost_ratio(prompts: Sequence[RoundSums]) -> Estimate:
    """Seconds of a verification forward over those of a draft-free forward."""
    value, sums_B5 = sums(prompts)
    spent, rounds, plain_forward, plain_rounds, _ = value
    if not prompts or not (rounds and plain_forward and plain_rounds):
        return undefined(len(prompts))
    return with_interval(
        (spent / rounds) / (plain_forward / plain_rounds),
        len(prompts),
        sums_B5[:, 0] * sums_B5[:, 3],
        sums_B5[:, 1] * sums_B5[:, 2],
    )


def break_even(prompts: Sequence[RoundSums]) -> Estimate:
    """The cost ratio at which both sides would take the same time: what draft-free decoding takes, less all that a
    round has beside its forward, over as many draft-free forwards as there are rounds.

    No interval where a resample is not positive: nothing would pay there.
    """
    value, sums_B5 = sums(prompts)
    _, rounds, plain_forward, plain_rounds, left = value
    if not prompts or not (rounds and plain_forward and plain_rounds):
        return undefined(len(prompts))
    ratio = (left / rounds) / (plain_forward / plain_rounds)
    above_B, below_B = sums_B5[:, 4] * sums_B5[:, 3], sums_B5[:, 1] * sums_B5[:, 2]
    if ratio > 0 and (above_B > 0).all():
        found = with_interval(ratio, len(prompts), above_B, below_B)
        return replace(found, how=PREDICTED)
    return Estimate(value=ratio, low=None, high=None, n=len(prompts), how=PREDICTED, why=UNDEFINED)


def sums(prompts: Sequence[RoundSums]) -> tuple[tuple[float, ...], Floats]:
    """Over the prompts and over resamples of them: seconds of verification, rounds, seconds of draft-free forwards,
    their number, and the seconds that draft-free decoding takes more than all but the forwards of the rounds.
    """
    rows = [
        (
            one.forward,
            float(one.rounds),
            one.draft_free_forward or 0.0,
            float(one.draft_free_rounds),
            one.draft_free - (one.total - one.forward),
        )
        for one in prompts
    ]
    if not rows:
        return (0.0,) * 5, np.zeros((0, 5))
    return tuple(math.fsum(column) for column in zip(*rows, strict=True)), resampled_sums(np.array(rows))
