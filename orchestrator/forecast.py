"""What a run would do: for each cell how much is stored, how much is to do and why, and what that will cost at most.

Forwards are an upper bound (no rule or drafter needs more than one forward a token), or come from the cell's own stored
prompts where there are some. Reads the run directory, changes nothing, starts nothing, imports no torch.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.capacity import worker_count
from orchestrator.driver import place_of
from orchestrator.machine import this_machine
from orchestrator.memory_notes import memory_notes
from orchestrator.prepare import Prepared
from sweeps.belongs import check_belongs, read_history, read_spec, spec_changes
from sweeps.claims import claim_of
from sweeps.effort import ResourceSpec
from sweeps.expand import Dropped, LabelledCell
from sweeps.origin import code_changes, origin_of
from sweeps.records import ItemKind
from sweeps.results import Coverage, Loaded, load_results
from sweeps.store import RunDir
from sweeps.study import is_study
from sweeps.todo import KINDS, Job, missing_items

CHANGES_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class CellForecast:
    """One cell. `decode`, `timing` and `study` count prompts to do; `forwards` is their cost, by `forwards_from` either
    an upper bound or an estimate from the cell's stored prompts. `why` is empty when nothing is to do. A `reference`
    cell, draft-free without a cache, is only there to see what an approximate cache changes.
    """

    cell_id: str
    target: str
    task: str
    drafter: str
    bound: bool
    budget: int
    gamma: float
    acceptance: str
    max_commit: bool
    cross_block: bool
    refresh: bool
    temperature: float
    noise: str
    confidence: str
    seed: int
    max_new_tokens: int
    block_length: int
    commit: str
    tau: float | None
    claim: str
    added_baseline: bool
    reference: bool
    cache: str
    prompts: int
    stored: int
    failed: int
    decode: int
    timing: int
    study: int
    forwards: int
    forwards_from: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A whole sweep. `model_loads` assumes `workers` workers, each loading a target at most once.

    `missing` says what has to be fetched or made before it can run; until then cell ids are provisional.
    """

    sweep: str
    directory: str
    cells: tuple[CellForecast, ...]
    dropped: tuple[Dropped, ...]
    notes: tuple[str, ...]
    missing: tuple[str, ...]
    items: int
    workers: int
    model_loads: int
    forwards: int


def forecast(prepared: Prepared, run: RunDir, *, retry_failed: bool = False) -> Forecast:
    """Compare what is wanted with what `run` holds. Raises ValueError when the directory belongs to another sweep."""
    plan = prepared.plan
    check_belongs(run, plan.spec.name)
    loaded = load_results(run)
    spoiled = Counter(problem.path.parent.name for problem in loaded.problems)
    nfe = _stored_nfe(loaded)
    jobs = {job.cell_id: job for job in plan.jobs}
    cells = tuple(
        _cell(labelled, jobs[labelled.cell.cell_id], loaded, spoiled[labelled.cell.cell_id], nfe, retry_failed)
        for labelled in prepared.expansion.cells
    )
    items = missing_items(plan.jobs, loaded.cells, chunk=plan.spec.measure.chunk, retry_failed=retry_failed)
    workers, fit = workers_here(plan.spec.resources)
    memory = memory_notes((job.cell for job in plan.jobs), plan.spec.resources, workers, this_machine())
    by_target = Counter(place_of(jobs[item.cell_id]).target for item in items)
    return Forecast(
        sweep=plan.spec.name,
        directory=str(run.root),
        cells=cells,
        dropped=prepared.expansion.dropped,
        notes=(*prepared.expansion.notes, *fit, *memory, *_changes(prepared, run)),
        missing=prepared.missing,
        items=len(items),
        workers=workers,
        model_loads=sum(min(workers, count) for count in by_target.values()),
        forwards=sum(cell.forwards for cell in cells),
    )


def workers_here(resources: ResourceSpec) -> tuple[int, tuple[str, ...]]:
    """The number of workers that this machine would start, and a note when that is not what is asked for."""
    try:
        count, note = worker_count([this_machine().resources], resources)
    except ValueError as error:
        return max(1, resources.workers), (f"not on this machine: {error}",)
    return count, (note,) if note else ()


def _cell(
    labelled: LabelledCell, job: Job, loaded: Loaded, spoiled: int, nfe: Mapping[str, float], retry_failed: bool
) -> CellForecast:
    """What is to do in one cell, and why."""
    cell, rows = labelled.cell, loaded.cells.get(job.cell_id, Coverage())
    missing, failed, why = {}, 0, []
    main: ItemKind = "study" if is_study(cell) else "decode"
    for kind in KINDS:
        wanted = range(job.wanted(kind))
        absent = [index for index in wanted if not rows.has(kind, index, job.repeats)]
        bad = [index for index in absent if (kind, index) in rows.failed]
        missing[kind] = len(absent) if retry_failed else len(absent) - len(bad)
        failed += len(bad)
        why += _why(kind, len(wanted), absent, len(bad) if retry_failed else 0, missing[kind], job, rows)
    if spoiled and any(missing.values()):
        why.append(f"{spoiled} damaged or foreign result file{'s'[: spoiled != 1]}: set aside and run again")
    rate = nfe.get(job.cell_id)
    other_side = nfe.get(cell.timed_beside().cell_id, float(cell.decode.max_new_tokens))
    most = cell.decode.max_new_tokens * (2 if cell.drafter.verify_margin else 1)  # every verdict may be made again
    each = rate if rate is not None else float(most)
    forwards = each * (missing["decode"] + missing["study"]) + (each + other_side) * missing["timing"] * (
        job.repeats + 1
    )  # and a warm-up
    return CellForecast(
        cell_id=job.cell_id,
        target=cell.target.name,
        task=cell.task.name,
        drafter=labelled.labels[0],
        bound=cell.drafter.oracle,
        budget=0 if is_study(cell) else cell.drafter.budget,
        gamma=cell.drafter.gamma,
        acceptance=cell.drafter.acceptance,
        max_commit=cell.drafter.max_commit,
        cross_block=cell.drafter.cross_block,
        refresh=cell.drafter.refresh,
        temperature=cell.decode.temperature,
        noise=cell.decode.noise,
        confidence=cell.decode.confidence,
        seed=cell.seed,
        max_new_tokens=cell.decode.max_new_tokens,
        block_length=cell.decode.block_length,
        commit=cell.decode.commit,
        tau=cell.decode.threshold,
        claim="" if is_study(cell) else claim_of(cell).value,
        added_baseline=labelled.added and not labelled.reference,
        reference=labelled.reference,
        cache=cell.target.cache,
        prompts=job.wanted(main),
        stored=sum(rows.has(main, index, 1) for index in range(job.wanted(main))),
        failed=failed,
        decode=missing["decode"],
        timing=missing["timing"],
        study=missing["study"],
        forwards=round(forwards),
        forwards_from="stored prompts" if rate is not None else "upper bound",
        why=tuple(why),
    )


def _why(kind: ItemKind, wanted: int, absent: list[int], again: int, to_do: int, job: Job, rows: Coverage) -> list[str]:
    """Why prompts of a kind are to do, in a few words."""
    if not to_do:
        return []
    word = {"decode": "prompts", "timing": "timed prompts", "study": "studied prompts", "trace": "traces"}[kind]
    fewer = sum((kind, index) in rows.good for index in absent)
    reasons = []
    if again:
        reasons.append(f"{again} of {wanted} {word} failed before")
    if fewer:
        reasons.append(f"{fewer} {word} have fewer than {job.repeats} repeats")
    new = to_do - again - fewer
    if new and new == wanted:
        reasons.append(f"{wanted} {word} not run yet")
    elif new:
        reasons.append(f"{new} of {wanted} {word} are missing")
    return reasons


def _stored_nfe(loaded: Loaded) -> dict[str, float]:
    """Mean forwards a prompt of each cell that has stored generations or studies."""
    counts: dict[str, list[int]] = {}
    for result in loaded.results:
        for row in result.generations:
            counts.setdefault(result.cell_id, []).append(row.counters.nfe)
        for study in result.studies:
            counts.setdefault(result.cell_id, []).append(study.commits)  # draft-free: one forward each
    return {cell_id: sum(values) / len(values) for cell_id, values in counts.items()}


def _changes(prepared: Prepared, run: RunDir) -> list[str]:
    """What differs from the last start in this directory."""
    lines = []
    if run.spec.exists():
        lines += [f"changed since the last start: {line}" for line in spec_changes(read_spec(run), prepared.plan.spec)]
    starts = read_history(run).starts if run.provenance.exists() else ()
    changed = code_changes(starts[-1], origin_of((), 0.0)) if starts else ()
    if changed:
        more = f"; and {len(changed) - CHANGES_SHOWN} more" if len(changed) > CHANGES_SHOWN else ""
        lines.append(f"spot run needs --accept-changes here: {'; '.join(changed[:CHANGES_SHOWN])}{more}")
    return lines
