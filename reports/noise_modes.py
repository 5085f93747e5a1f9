"""Independent against coupled noise: cells of one target, task, drafter and temperature that differ in noise alone.

With confidence top1 both modes sample one distribution, but not the same texts, so they are compared in forwards for
each generated token. Prompts are the sampling unit and are drawn for both modes together: one may be hard for both.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from reports.phrases import inverted
from sweeps.aggregate import CellResult
from sweeps.cell import Cell
from sweeps.merge import CellRows
from sweeps.records import GenerationRecord
from sweeps.statistics import Estimate, resampled_sums, undefined, with_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two cells that differ in noise alone; `ratio` is forwards a token, independent over coupled."""

    coupled: CellResult
    independent: CellResult
    ratio: Estimate

    @property
    def more(self) -> bool:
        """Whether independent noise needs more forwards beyond the interval."""
        return self.ratio.above()

    @property
    def fewer(self) -> bool:
        """Whether independent noise needs fewer forwards beyond the interval."""
        return self.ratio.below()

    @property
    def judged(self) -> bool:
        """Whether there is an interval; without one nothing can be said."""
        return self.ratio.has_interval

    @property
    def temperature(self) -> float:
        """The temperature of both."""
        return self.coupled.cell.decode.temperature


def modes(result: CellResult) -> tuple[str, ...]:
    """The noise modes that a cell stands for: both where nothing is drawn."""
    return ("coupled", "independent") if result.cell.decode.temperature == 0 else (result.cell.decode.noise,)


def forwards_a_token(result: CellResult) -> Estimate:
    """Target forwards for each generated token of a cell; draft-free decoding by the standard rule has 1."""
    tokens = result.tokens_per_forward
    return inverted(tokens) if tokens.value else undefined(tokens.n)


def pairs(results: Iterable[CellResult], rows: Mapping[str, CellRows]) -> Iterator[Pair]:
    """All pairs of cells with drafts in which both modes have prompts in common, in the order of `results`."""
    by_cell: dict[Cell, dict[str, CellResult]] = defaultdict(dict)
    for result in results:
        cell = result.cell
        if cell.decode.temperature > 0 and not cell.is_baseline:
            shared = replace(cell, decode=replace(cell.decode, noise="coupled"))
            by_cell[shared][cell.decode.noise] = result
    for modes in by_cell.values():
        if len(modes) == 2:
            coupled, independent = modes["coupled"], modes["independent"]
            ours, theirs = (rows[result.cell_id].generations if result.n else {} for result in (independent, coupled))
            ratio = forwards_ratio(ours, theirs)
            if ratio.value is not None:
                yield Pair(coupled=coupled, independent=independent, ratio=ratio)


def forwards_ratio(ours: Mapping[int, GenerationRecord], theirs: Mapping[int, GenerationRecord]) -> Estimate:
    """Forwards for each generated token, ours over theirs, over the prompts that both have."""
    both = sorted(ours.keys() & theirs.keys())
    counts_n4 = np.array(
        [[n for row in (ours[i], theirs[i]) for n in (row.counters.nfe, row.tokens_generated)] for i in both], float
    )
    if not both or (counts_n4.sum(0) <= 0).any():
        return undefined(len(both))
    nfe, tokens, other_nfe, other_tokens = counts_n4.sum(0).tolist()
    sums_B4 = resampled_sums(counts_n4)
    value = nfe * other_tokens / (tokens * other_nfe)
    return with_interval(value, len(both), sums_B4[:, 0] * sums_B4[:, 3], sums_B4[:, 1] * sums_B4[:, 2])
