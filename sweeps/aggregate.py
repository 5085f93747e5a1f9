"""From the records of a cell and of its draft-free baseline to one `CellResult`: numbers, intervals, alarms.

Failed prompts never enter a mean; ratios use only prompts that both sides have. NFE is a count and may not vary: where
two passes over one prompt disagree, or a count breaks a law of the decoder, the result carries an alarm.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from sweeps.agreement import Agreement, Outputs, agreement_of, draft_free_outputs
from sweeps.cell import Cell
from sweeps.claims import Claim, claim_of
from sweeps.draws import DrawStats, draw_stats
from sweeps.identity import Identity, compare
from sweeps.laws import count_alarms
from sweeps.merge import NO_ROWS, Alarm, CellRows
from sweeps.order_study import StudyShares, order_studies
from sweeps.pace import Pace, pace_of
from sweeps.records import GenerationRecord, TimingRecord
from sweeps.rounds import RoundTime, round_time
from sweeps.statistics import BOOTSTRAP_SEED, RESAMPLES, Estimate, mean, ratio_of_sums, wilson
from sweeps.study import is_study, study_cell
from sweeps.timings import (
    NO_TIMING,
    Throughput,
    draft_free_seconds,
    draft_free_throughput,
    throughput,
    variant_seconds,
)
from sweeps.todo import Job

Count = Callable[[GenerationRecord], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """What a cell measured. NFE is target forwards a prompt; NFE reduction is never called a speed-up.

    `n` prompts have a generation, `n_failed` failed, `n_missing` have neither, of `n_expected`. `nfe_draft_free`
    and `nfe_reduction` (mean draft-free NFE over mean NFE) are over the prompts that both sides have.
    `accepted_histogram[a]` counts rounds whose walk took a draft states. `claim_holds` is None where nothing is
    promised or nothing was compared. `study` is the observation study of the cell's order model, one commit ahead (None
    where there is none). `agreement` is with decoding without a cache (None where the cache is exact), and no check;
    a `reference` cell is only there for that. `fidelity` is how far its outputs are from those of its draft-free cell,
    `against_standard` how far from those of the standard rule without drafts, and `pace` its throughput over that of
    the latter (None where they are the same cell, or nothing can be compared).
    """

    cell: Cell
    cell_id: str
    claim: str
    claim_holds: bool | None
    n_expected: int
    n: int
    n_failed: int
    n_missing: int
    n_timing_failed: int
    n_timing_missing: int
    nfe: Estimate
    nfe_draft_free: Estimate
    nfe_reduction: Estimate
    tokens: Estimate
    tokens_per_forward: Estimate
    positions_per_token: Estimate
    accepted_per_round: Estimate
    drafted_per_round: Estimate
    accepted_histogram: tuple[int, ...]
    kv_passes: int
    merged: int
    trimmed: int
    recomputes: int
    correct: Estimate
    draws: DrawStats
    identity: Identity
    throughput: Throughput
    round_time: RoundTime
    alarms: tuple[Alarm, ...]
    finished_at: float | None
    study: StudyShares | None = None
    agreement: Agreement | None = None
    fidelity: Outputs | None = None
    against_standard: Outputs | None = None
    pace: Pace | None = None
    reference: bool = False
    resamples: int = RESAMPLES
    bootstrap_seed: int = BOOTSTRAP_SEED

    @property
    def n_near_ties(self) -> int | None:
        """Number of mismatches that rounding explains; None where they need no explanation."""
        return self.identity.near_ties if Claim(self.claim).promises_identity else None

    @property
    def n_bugs(self) -> int | None:
        """Number of mismatches that rounding cannot explain; None where they need no explanation."""
        return self.identity.bugs if Claim(self.claim).promises_identity else None

    @property
    def n_alarms(self) -> int:
        """Number of alarms."""
        return len(self.alarms)


def aggregate(
    job: Job, rows: CellRows, baseline: CellRows, uncached: CellRows = NO_ROWS, standard: CellRows = NO_ROWS
) -> CellResult:
    """Aggregate one cell. `baseline` holds the rows of `cell.baseline()` (the same ones for a baseline cell).

    `uncached` holds those of `cell.uncached()`, which nothing but the agreement is made of, `standard` those of the
    draft-free cell by the standard rule: only what says so is against it, and `baseline` is the denominator.

    More may be stored than the job asks for (a sweep whose number of prompts was lowered): only what it asks counts.
    """
    rows = rows.within(job.prompts, job.timed_prompts)
    cell, claim = job.cell, claim_of(job.cell)
    by_rule = cell.decode.commit == "standard"
    is_unit = cell.is_baseline and not by_rule  # its timings are beside the standard rule: they make its pace alone
    beside, timings = (standard, {}) if is_unit else (baseline, rows.timings)
    done = list(rows.generations.values())
    pairs = [(row, baseline.generations[i]) for i, row in rows.generations.items() if i in baseline.generations]
    identity = compare(
        rows.generations,
        baseline.generations,
        dtype=cell.target.dtype,
        temperature=cell.decode.temperature,
        promised=claim.promises_identity,
    )
    alarms = (*rows.alarms, *count_alarms(cell, rows, baseline, beside))
    wanted, timed = set(range(job.prompts)), set(range(job.timed_prompts))
    failed, untimed = wanted & rows.failed("decode"), timed & rows.failed("timing")
    scores = [row.correct for row in done if row.correct is not None]
    return CellResult(
        cell=cell,
        cell_id=job.cell_id,
        claim=claim.value,
        claim_holds=holds(identity, alarms) if claim.promises_identity and not cell.is_baseline else None,
        n_expected=job.prompts,
        n=len(done),
        n_failed=len(failed),
        n_missing=len(wanted - failed - rows.generations.keys()),
        n_timing_failed=len(untimed),
        n_timing_missing=len(timed - untimed - rows.timings.keys()),
        nfe=mean([row.counters.nfe for row in done]),
        nfe_draft_free=mean([other.counters.nfe for _, other in pairs]),
        nfe_reduction=ratio_of_sums([b.counters.nfe for _, b in pairs], [a.counters.nfe for a, _ in pairs]),
        tokens=mean([row.tokens_kept for row in done]),
        tokens_per_forward=per(done, lambda row: row.tokens_generated, lambda row: row.counters.nfe),
        positions_per_token=per(done, lambda row: row.counters.positions, lambda row: row.tokens_generated),
        accepted_per_round=per(done, lambda row: sum(row.counters.accepted), lambda row: row.counters.rounds),
        drafted_per_round=per(done, lambda row: sum(row.counters.drafted), lambda row: row.counters.rounds),
        accepted_histogram=histogram(done),
        kv_passes=sum(row.counters.kv_passes for row in done),
        merged=sum(row.counters.merged for row in done),
        trimmed=sum(row.counters.trimmed for row in done),
        recomputes=sum(row.counters.recomputes for row in done),
        correct=wilson(sum(scores), len(scores)),
        draws=draw_stats(done),
        identity=identity,
        throughput=throughput(timings, baseline.generations),
        round_time=round_time(timings, rows.generations, baseline.generations),
        alarms=alarms,
        finished_at=rows.finished_at or None,
        agreement=agreement_of(cell, rows.generations, uncached.generations),
        reference=job.reference,
        fidelity=None if cell.is_baseline else draft_free_outputs(cell, rows.generations, baseline.generations),
        against_standard=None if by_rule else draft_free_outputs(cell, rows.generations, standard.generations),
        pace=pace_of(cell, rows, baseline, standard),
    )


def aggregate_all(jobs: Iterable[Job], rows: Mapping[str, CellRows]) -> tuple[CellResult, ...]:
    """One result a job that decodes, in order; a job without any stored row has n = 0 and undefined numbers.

    A draft-free cell takes its tokens a second from the cells that were timed beside it, where there are any; one that
    was timed beside the standard rule alone takes them from there.
    """
    jobs = tuple(jobs)
    rows = wanted_rows(jobs, rows)
    studies = order_studies(jobs, rows)
    jobs = tuple(job for job in jobs if not is_study(job.cell))
    beside: dict[str, list[Mapping[int, TimingRecord]]] = defaultdict(list)
    for job in jobs:
        if (other := job.cell.timed_beside()) != job.cell:
            beside[other.cell_id].append(rows.get(job.cell_id, NO_ROWS).timings)
    results = []
    for job in jobs:
        own, base_id = rows.get(job.cell_id, NO_ROWS), job.cell.baseline().cell_id
        uncached = rows.get(job.cell.uncached().cell_id, NO_ROWS)
        standard = rows.get(job.cell.baseline().timed_beside().cell_id, NO_ROWS)
        result = aggregate(job, own, rows.get(base_id, NO_ROWS), uncached, standard)
        if job.cell.is_baseline and result.throughput is NO_TIMING:
            seconds = draft_free_seconds(beside[base_id]) or variant_seconds(own.timings)
            result = replace(result, throughput=draft_free_throughput(seconds, own.generations))
        study = studies.get(study_cell(job.cell).cell_id) if job.cell.drafter.digest else None
        results.append(replace(result, study=study.at(1) if study else None))
    return tuple(results)


def wanted_rows(jobs: Iterable[Job], rows: Mapping[str, CellRows]) -> dict[str, CellRows]:
    """The rows that the jobs ask for, by cell id; what else is stored stays on disk and enters no number."""
    asked = ((job, rows[job.cell_id]) for job in jobs if job.cell_id in rows)
    return {job.cell_id: stored.within(job.prompts, job.timed_prompts, job.studied_prompts) for job, stored in asked}


def holds(identity: Identity, alarms: tuple[Alarm, ...]) -> bool | None:
    """Whether a promise of identity was kept: every compared prompt is equal and no count raised an alarm."""
    if identity.n_checked == 0:
        return False if alarms else None
    return identity.n_identical == identity.n_checked and not alarms


def per(rows: Sequence[GenerationRecord], above: Count, below: Count) -> Estimate:
    """Ratio of two counts summed over prompts."""
    return ratio_of_sums([float(above(row)) for row in rows], [float(below(row)) for row in rows])


def histogram(rows: Sequence[GenerationRecord]) -> tuple[int, ...]:
    """Rounds by the number of draft states their walk took, from 0 up to the largest seen."""
    counts = Counter(chain.from_iterable(row.counters.accepted for row in rows))
    return tuple(counts[accepted] for accepted in range(max(counts, default=-1) + 1))
