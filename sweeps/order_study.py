"""The observation study of many prompts: shares with intervals, by look-ahead and by commit index within the block.

Commits of one prompt depend on each other, so every interval takes the prompt as its unit (`clustered_share`). A share
of nothing is undefined, and failed prompts enter none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sweeps.cell import Cell
from sweeps.merge import NO_ROWS, Alarm, CellRows
from sweeps.statistics import Estimate, clustered_share, ratio_of_sums
from sweeps.study import LOOK_AHEADS, TOPS, Grid, StudyRecord, is_study
from sweeps.todo import Job

HOW = "measured on draft-free trajectories"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyShares:
    """Shares of the `asked` commits of one look-ahead: of all of them, or of those with one `index` in their block.

    `in_top[i]`: the token is in the stale top `TOPS[i]`; `drawn`: it is the stale draw; `by_confidence`, `by_model`:
    the position is the most confident stale one, the order model's first choice. `error_ratio`: wrong positions of the
    model over wrong ones of confidence, paired (None where only counts were asked for).
    """

    look_ahead: int
    index: int | None
    asked: int
    in_top: tuple[Estimate, ...]
    drawn: Estimate
    by_confidence: Estimate
    by_model: Estimate
    error_ratio: Estimate | None = None
    how: str = HOW

    @property
    def argmax(self) -> Estimate:
        """The token is the stale argmax."""
        return self.in_top[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderStudy:
    """The study of one order model on one draft-free cell. `shares` holds every look-ahead as a whole and by index.

    `cell` is the one its rows are stored under. `n` prompts were studied, `n_failed` failed, `n_missing` are not run
    yet, of `n_expected`; `commits` is how many commits the studied prompts have, asked for or not.
    """

    cell: Cell
    cell_id: str
    n_expected: int
    n: int
    n_failed: int
    n_missing: int
    commits: int
    shares: tuple[StudyShares, ...]
    alarms: tuple[Alarm, ...]

    def at(self, look_ahead: int, index: int | None = None) -> StudyShares | None:
        """The shares of a look-ahead, as a whole or at an index; None where no such commit was asked for."""
        return next((s for s in self.shares if (s.look_ahead, s.index) == (look_ahead, index)), None)

    def ahead(self) -> tuple[StudyShares, ...]:
        """One entry a look-ahead, all indexes together."""
        return tuple(shares for shares in self.shares if shares.index is None)

    def by_index(self, look_ahead: int) -> tuple[StudyShares, ...]:
        """One entry an index, at one look-ahead."""
        return tuple(s for s in self.shares if s.look_ahead == look_ahead and s.index is not None)


def order_study(job: Job, rows: CellRows) -> OrderStudy:
    """The study of a job's cell, from its rows."""
    rows = rows.within(job.prompts, job.timed_prompts, job.studied_prompts)
    wanted, failed = set(range(job.studied_prompts)), rows.failed("study")
    records = tuple(rows.studies.values())
    return OrderStudy(
        cell=job.cell,
        cell_id=job.cell_id,
        n_expected=job.studied_prompts,
        n=len(records),
        n_failed=len(failed),
        n_missing=len(wanted - failed - rows.studies.keys()),
        commits=sum(record.commits for record in records),
        shares=tuple(all_shares(records)),
        alarms=rows.alarms,
    )


def order_studies(jobs: Iterable[Job], rows: Mapping[str, CellRows]) -> dict[str, OrderStudy]:
    """The studies among some jobs, by cell id, in their order."""
    return {job.cell_id: order_study(job, rows.get(job.cell_id, NO_ROWS)) for job in jobs if is_study(job.cell)}


def all_shares(records: Sequence[StudyRecord]) -> Iterator[StudyShares]:
    """The shares of each look-ahead, as a whole and by index, where any commit was asked for."""
    length = max((len(record.asked[0]) for record in records), default=0)
    for look_ahead in range(1, LOOK_AHEADS + 1):
        for index in (None, *range(length)):
            shares = shares_of(records, look_ahead, index)
            if shares.asked:
                yield shares


def shares_of(records: Sequence[StudyRecord], look_ahead: int, index: int | None) -> StudyShares:
    """The shares of one look-ahead, as a whole or at one index."""
    chosen = slice(None) if index is None else slice(index, index + 1)

    def sums(read: Callable[[StudyRecord], Grid]) -> list[int]:
        return [sum(read(record)[look_ahead - 1][chosen]) for record in records]

    asked = sums(lambda record: record.asked)

    def share(read: Callable[[StudyRecord], Grid]) -> Estimate:
        return clustered_share(sums(read), asked)

    model, confidence = sums(lambda record: record.by_model), sums(lambda record: record.by_confidence)
    return StudyShares(
        look_ahead=look_ahead,
        index=index,
        asked=sum(asked),
        in_top=tuple(share(lambda record, i=i: record.in_top[i]) for i in range(len(TOPS))),  # type: ignore[misc]
        drawn=share(lambda record: record.drawn),
        by_confidence=clustered_share(confidence, asked),
        by_model=clustered_share(model, asked),
        error_ratio=None if index is not None else errors(model, confidence, asked),
    )


def errors(model: Sequence[int], confidence: Sequence[int], asked: Sequence[int]) -> Estimate:
    """Wrong positions of the model over wrong positions of confidence, paired by prompt."""
    return ratio_of_sums(
        [float(n - hits) for hits, n in zip(model, asked, strict=True)],
        [float(n - hits) for hits, n in zip(confidence, asked, strict=True)],
    )
