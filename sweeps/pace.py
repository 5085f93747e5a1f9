"""Throughput as a multiple of draft-free decoding by the standard rule: the unit in which commit rules compare.

Draft-free decoding by the threshold rule is timed beside it, in turn on one worker. A drafted cell is timed beside
draft-free decoding by its own rule; its multiple is the product of both ratios on the prompts that both have: a number
in two links, each of runs side by side, whose interval resamples prompts for both links together.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sweeps.cell import Cell
from sweeps.merge import CellRows
from sweeps.records import GenerationRecord
from sweeps.statistics import Estimate, Floats, resampled_sums, undefined, with_interval
from sweeps.timings import TimedPrompt, doubts_of, medians, multiple, resampled_medians, timed_prompt

CHAINED = "product of two ratios, each of runs side by side"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Throughput over that of the standard rule without drafts, `ratio.n` prompts; `doubts` are those of its links."""

    ratio: Estimate
    doubts: tuple[str, ...] = ()


NO_PACE = Pace(ratio=undefined())


def pace_of(cell: Cell, rows: CellRows, baseline: CellRows, standard: CellRows) -> Pace | None:
    """The pace of a cell; None by the standard rule, whose throughput ratio is that already.

    `baseline` are the rows of its draft-free cell, `standard` those of the draft-free cell by the standard rule.
    """
    if cell.decode.commit == "standard":
        return None
    first = links(baseline, standard.generations)
    if cell.is_baseline:
        return paced([first], sorted(first))
    second = links(rows, baseline.generations)
    return paced([first, second], sorted(first.keys() & second.keys()))


def links(rows: CellRows, beside: Mapping[int, GenerationRecord]) -> dict[int, TimedPrompt]:
    """The timed prompts of a cell, each with the other side."""
    found = {index: timed_prompt(record, beside) for index, record in rows.timings.items()}
    return {index: prompt for index, prompt in found.items() if prompt is not None}


def paced(chain: Sequence[Mapping[int, TimedPrompt]], indexes: Sequence[int]) -> Pace:
    """The product of the links over the prompts `indexes`, which all of them timed."""
    n, sides = len(indexes), [[link[index] for index in indexes] for link in chain]
    if not n:
        return NO_PACE
    above, below = product(multiple(side, np.ones((1, n)), medians(side)) for side in sides)
    if not below[0] > 0:
        return Pace(ratio=undefined(n))
    weights_Bn = resampled_sums(np.eye(n))
    resampled = product(multiple(side, weights_Bn, resampled_medians(side)) for side in sides)
    estimate = with_interval(float(above[0] / below[0]), n, *resampled)
    if len(sides) > 1:
        estimate = replace(estimate, how=CHAINED)
    return Pace(ratio=estimate, doubts=tuple(dict.fromkeys(doubt for side in sides for doubt in doubts_of(side))))


def product(fractions: Iterable[Floats]) -> tuple[Floats, Floats]:
    """The product of `above_and_below_2B` fractions, as numerator and denominator."""
    whole_2B = np.prod(list(fractions), axis=0)
    return whole_2B[0], whole_2B[1]
