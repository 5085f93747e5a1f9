"""Cells that differ in one option of their drafter: what the option does, on the same prompts and all else equal.

Found from identities alone, whatever a sweep calls its drafters. Both cells of a pair were timed beside draft-free
decoding at moments of their own, so their throughputs are compared as multiples of that.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sweeps.aggregate import CellResult
from sweeps.cell import canonical_json
from sweeps.merge import NO_ROWS, CellRows
from sweeps.records import Counters, GenerationRecord
from sweeps.statistics import Estimate, Floats, ratio_of_sums, resampled_sums, undefined, with_interval
from sweeps.timings import medians, multiple, resampled_medians, timed_prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A field of a drafter's identity and the value at which it is off; `what` is its name for people."""

    field: str
    off: bool | float | str
    what: str


OPTIONS = (
    Option(field="merge_states", off=False, what="state merging"),
    Option(field="cost_digest", off="", what="cost-aware budget"),
    Option(field="verify_margin", off=0.0, what="verify margin"),
    Option(field="gamma", off=0.0, what="mass floor"),
    Option(field="hedge", off=0.0, what="token hedge"),
    Option(field="cross_block", off=False, what="cross-block drafting"),
    Option(field="refresh", off=False, what="draft refresh"),
    Option(field="max_commit", off=False, what="max-commit"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """Counts a round, over all prompts of a pair: drafts verified, accepted, merged, cut off; verdicts made again."""

    drafted: float
    accepted: float
    merged: float
    trimmed: float
    recomputed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One option on (`with_it`) and off (`plain`), over the prompts that both decoded.

    `nfe_with_it`, `nfe_plain`: forwards a prompt. `nfe_ratio`: forwards of the plain cell over those with the option;
    `throughput_ratio`: tokens a second with the option over those of the plain cell, each as a multiple of draft-free
    (n timed prompts). Above 1 the option helps. `doubts`: why the timings should not be relied on.
    `identical_with_it`, `identical_plain`: prompts equal to draft-free decoding, of the `compared` that all three
    decoded; `forwards`, `recomputes`: all forwards with the option, and those of them that made a verdict again.
    """

    option: Option
    with_it: CellResult
    plain: CellResult
    nfe_with_it: float
    nfe_plain: float
    nfe_ratio: Estimate
    throughput_ratio: Estimate
    doubts: tuple[str, ...]
    rounds_with_it: Rounds
    rounds_plain: Rounds
    compared: int
    identical_with_it: int
    identical_plain: int
    forwards: int
    recomputes: int


def pairs_of(results: Iterable[CellResult], rows: Mapping[str, CellRows]) -> Iterator[Pair]:
    """Every pair that has a prompt in common, by option, in the order of `results`."""
    results = [result for result in results if not result.cell.is_baseline]
    for option in OPTIONS:
        plain_of = {key(result, option): result for result in results if value(result, option) == option.off}
        for result in results:
            plain = plain_of.get(key(result, option))
            if plain is None or value(result, option) == option.off:
                continue
            pair = pair_of(option, result, plain, rows)
            if pair is not None:
                yield pair


def value(result: CellResult, option: Option) -> Any:
    """The value of an option in a cell."""
    return getattr(result.cell.drafter, option.field)


def key(result: CellResult, option: Option) -> str:
    """A cell's identity without one option."""
    identity = result.cell.identity()
    drafter = {name: own for name, own in identity["drafter"].items() if name != option.field}
    return canonical_json(identity | {"drafter": drafter})


def pair_of(option: Option, with_it: CellResult, plain: CellResult, rows: Mapping[str, CellRows]) -> Pair | None:
    """The two cells compared; None without a prompt that both decoded, or where neither made a round."""
    ours, theirs = (rows.get(result.cell_id, NO_ROWS) for result in (with_it, plain))
    both = sorted(ours.generations.keys() & theirs.generations.keys())
    if not all(sum(side.generations[i].counters.rounds for i in both) for side in (ours, theirs)):
        return None
    baseline = rows.get(with_it.cell.baseline().cell_id, NO_ROWS)
    outputs = {index: baseline.generations[index].output_ids for index in both if index in baseline.generations}
    nfe = [(ours.generations[i].counters.nfe, theirs.generations[i].counters.nfe) for i in both]
    return Pair(
        option=option,
        with_it=with_it,
        plain=plain,
        nfe_with_it=sum(own for own, _ in nfe) / len(nfe),
        nfe_plain=sum(other for _, other in nfe) / len(nfe),
        nfe_ratio=ratio_of_sums([other for _, other in nfe], [own for own, _ in nfe]),
        throughput_ratio=throughput_ratio(ours, theirs, baseline.generations),
        doubts=tuple(dict.fromkeys((*with_it.throughput.doubts, *plain.throughput.doubts))),
        rounds_with_it=a_round([ours.generations[i].counters for i in both]),
        rounds_plain=a_round([theirs.generations[i].counters for i in both]),
        compared=len(outputs),
        identical_with_it=sum(ours.generations[i].output_ids == output for i, output in outputs.items()),
        identical_plain=sum(theirs.generations[i].output_ids == output for i, output in outputs.items()),
        forwards=sum(own for own, _ in nfe),
        recomputes=sum(ours.generations[i].counters.recomputes for i in both),
    )


def a_round(counters: list[Counters]) -> Rounds:
    """Counts a round."""
    rounds = sum(own.rounds for own in counters)
    return Rounds(
        drafted=sum(sum(own.drafted) for own in counters) / rounds,
        accepted=sum(sum(own.accepted) for own in counters) / rounds,
        merged=sum(own.merged for own in counters) / rounds,
        trimmed=sum(own.trimmed for own in counters) / rounds,
        recomputed=sum(own.recomputes for own in counters) / rounds,
    )


def throughput_ratio(ours: CellRows, theirs: CellRows, baseline: Mapping[int, GenerationRecord]) -> Estimate:
    """Tokens a second over the other cell's, each over its own draft-free runs; interval over prompts and repeats."""
    timed = [
        (one, other)
        for index in sorted(ours.timings.keys() & theirs.timings.keys())
        if (one := timed_prompt(ours.timings[index], baseline)) is not None
        and (other := timed_prompt(theirs.timings[index], baseline)) is not None
    ]
    n = len(timed)
    if n == 0:
        return undefined()
    sides = tuple([pair[side] for pair in timed] for side in (0, 1))
    above_1, below_1 = quotient(*(multiple(side, np.ones((1, n)), medians(side)) for side in sides))
    if not below_1[0] > 0:
        return undefined(n)
    weights_Bn = resampled_sums(np.eye(n))
    ratio_2B = quotient(*(multiple(side, weights_Bn, resampled_medians(side)) for side in sides))
    return with_interval(float(above_1[0] / below_1[0]), n, *ratio_2B)


def quotient(one_2B: Floats, other_2B: Floats) -> tuple[Floats, Floats]:
    """One fraction over another, as numerator and denominator: what has no value is seen before it is divided."""
    return one_2B[0] * other_2B[1], one_2B[1] * other_2B[0]
