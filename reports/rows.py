"""Row objects behind exported rows: a prompt of a cell (decoded, failed or never run), a part of an order study."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from sweeps.aggregate import CellResult
from sweeps.agreement import kept
from sweeps.cell import Cell
from sweeps.identity import Mismatch, first_difference
from sweeps.merge import NO_ROWS, CellRows
from sweeps.order_study import OrderStudy, StudyShares
from sweeps.records import Failure, GenerationRecord, TimingRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRow:
    """Everything known of one prompt of one cell. Parts that do not exist are None."""

    cell: Cell
    cell_id: str
    index: int
    generation: GenerationRecord | None
    draft_free: GenerationRecord | None
    timing: TimingRecord | None
    failure: Failure | None
    mismatch: Mismatch | None
    reference: bool = False
    uncached: GenerationRecord | None = None

    @property
    def status(self) -> str:
        """Done, failed or missing."""
        return "done" if self.generation else "failed" if self.failure else "missing"

    @property
    def prompt_id(self) -> str | None:
        """The id given by the task, wherever it is known from."""
        known = self.generation or self.draft_free or self.timing or self.failure
        return known.prompt_id if known else None

    @property
    def accepted(self) -> int | None:
        """Draft states on the walks."""
        return sum(self.generation.counters.accepted) if self.generation else None

    @property
    def drafted(self) -> int | None:
        """Draft states verified."""
        return sum(self.generation.counters.drafted) if self.generation else None

    @property
    def identical(self) -> bool | None:
        """Whether it was compared and is equal to the draft-free generation."""
        return self.mismatch is None if self.generation and self.draft_free else None

    @property
    def identical_uncached(self) -> bool | None:
        """Whether the kept output equals the one without a cache, where that was measured."""
        return kept(self.generation) == kept(self.uncached) if self.generation and self.uncached else None

    @property
    def divergence_uncached(self) -> int | None:
        """Index of the first kept token that differs from the one without a cache."""
        if not (self.generation and self.uncached) or self.identical_uncached:
            return None
        return first_difference(kept(self.generation), kept(self.uncached))

    @property
    def repeats(self) -> int | None:
        """Timing repeats."""
        return len(self.timing.variant_seconds) if self.timing else None

    @property
    def seconds(self) -> float | None:
        """Median seconds of the variant."""
        return median(self.timing.variant_seconds) if self.timing and self.timing.variant_seconds else None

    @property
    def seconds_draft_free(self) -> float | None:
        """Median seconds of draft-free decoding."""
        return median(self.timing.baseline_seconds) if self.timing and self.timing.baseline_seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRow:
    """One look-ahead of one observation study, as a whole or at one commit index."""

    study: OrderStudy
    shares: StudyShares


def prompt_rows(
    result: CellResult, rows: CellRows, baseline: CellRows, uncached: CellRows = NO_ROWS
) -> Iterator[PromptRow]:
    """One row for each prompt asked for, and for each that was timed beyond that.

    `uncached` holds the rows of the reference without a cache; a cell that cannot be compared with it takes none.
    """
    references = uncached.generations if result.cell.is_comparable_uncached else {}
    mismatches = {mismatch.prompt_index: mismatch for mismatch in result.identity.mismatches}
    for index in sorted({*range(result.n_expected), *rows.generations, *rows.timings}):
        yield PromptRow(
            cell=result.cell,
            cell_id=result.cell_id,
            index=index,
            generation=rows.generations.get(index),
            draft_free=baseline.generations.get(index),
            timing=rows.timings.get(index),
            failure=rows.failures.get(("decode", index)) or rows.failures.get(("timing", index)),
            mismatch=mismatches.get(index),
            reference=result.reference,
            uncached=references.get(index),
        )
