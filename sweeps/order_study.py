"""The observation study of many prompts: shares with intervals, by look-ahead and by commit index within the block.

Commits of one prompt depend on each other, so every interval takes the prompt as its unit (`clustered_share`). A share
of nothing is undefined, and failed prompts enter none.

Shapes: P prompts, K look-aheads, L commit indexes of a block.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sweeps.cell import Cell
from sweeps.merge import NO_ROWS, Alarm, CellRows
from sweeps.statistics import Counts, Estimate, clustered_share, ratio_of_sums
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
    if not records:
        return
    asked_PKL = stacked(record.asked for record in records)
    right = {name: stacked(dict(record.counts())[name] for record in records) for name, _ in records[0].counts()}
    for place, look_ahead in enumerate(range(1, LOOK_AHEADS + 1)):
        whole = {name: grid_PKL[:, place].sum(-1) for name, grid_PKL in right.items()}
        shares = shares_of(look_ahead, None, asked_PKL[:, place].sum(-1), whole)
        if shares.asked:
            yield shares
        for index in np.flatnonzero(asked_PKL[:, place].sum(0)).tolist():
            at = {name: grid_PKL[:, place, index] for name, grid_PKL in right.items()}
            yield shares_of(look_ahead, index, asked_PKL[:, place, index], at)


def stacked(grids: Iterable[Grid]) -> Counts:
    """The grids of all prompts as one array."""
    return np.array(list(grids), dtype=np.int64)


def shares_of(look_ahead: int, index: int | None, asked_P: Counts, right: Mapping[str, Counts]) -> StudyShares:
    """The shares of one look-ahead, as a whole or at an index; `right` has counts by prompt, named as in the record."""
    model_P, confidence_P = right["by_model"], right["by_confidence"]
    errors = ratio_of_sums((asked_P - model_P).tolist(), (asked_P - confidence_P).tolist()) if index is None else None
    return StudyShares(
        look_ahead=look_ahead,
        index=index,
        asked=int(asked_P.sum()),
        in_top=tuple(clustered_share(right[f"in_top[{top}]"], asked_P) for top in TOPS),
        drawn=clustered_share(right["drawn"], asked_P),
        by_confidence=clustered_share(confidence_P, asked_P),
        by_model=clustered_share(model_P, asked_P),
        error_ratio=errors,
    )
