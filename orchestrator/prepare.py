"""From what a person typed to what is wanted: load, resolve, expand. Nothing is started and torch is not imported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.block_lengths import length_notes
from orchestrator.resolve import prompts_there_are, resolve_sweep
from orchestrator.tables import built_in_tables, ordering
from orchestrator.transfers import transfer_notes
from orchestrator.words import counted
from sweeps.expand import Expansion, LabelledCell, expand
from sweeps.load import find_settings, find_sweep, load_sweep
from sweeps.source import SweepError
from sweeps.spec import SweepSpec
from sweeps.study import STUDY, is_study
from sweeps.todo import Job, Plan, jobs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A resolved sweep: its cells with labels, what was dropped, and the plan that a driver can run.

    `missing` says what has to be fetched or made first (only where a sweep is prepared for planning alone).
    """

    expansion: Expansion
    plan: Plan
    missing: tuple[str, ...] = ()


def prepare(
    sweep: str, overrides: Sequence[str] = (), *, settings: Sequence[str] = (), planning: bool = False
) -> Prepared:
    """Read a sweep (a path or a packaged name) and multiply it out. Raises ValueError with one line.

    `settings` are files (or packaged names) laid over the sweep, in order, before the `key=value` overrides.
    With `planning`, what is not on this machine is listed as missing instead of refused.
    """
    tables = built_in_tables()
    loaded = load_sweep(find_sweep(sweep), overrides, tables, settings=[find_settings(name) for name in settings])
    resolved = resolve_sweep(loaded, tables, planning=planning)
    spec, expansion = resolved.spec, expand(resolved.spec, resolved.facts)
    if not any(not labelled.added for labelled in expansion.cells):
        reasons = "; ".join(f"{in_words(gone.axes)}: {gone.told}" for gone in expansion.dropped)
        raise SweepError(f"sweep {spec.name}: no cell is left to run ({reasons})")
    check_dtypes(spec)
    most = max(spec.measure.prompts, spec.measure.studied_prompts)
    sizes = {task.name: prompts_there_are(task, most) for task in spec.tasks}
    cells = [labelled.cell for labelled in expansion.cells if not labelled.reference]
    references = [labelled.cell for labelled in expansion.cells if labelled.reference]
    jobs = jobs_of(cells, spec.measure, ordering(), references)
    jobs = tuple(bounded(job, sizes[job.cell.task.name]) for job in jobs)
    short = {name: size for name, size in sizes.items() if size < most}
    notes = [f"{name} has {size} prompts, all of which are wanted" for name, size in short.items()]
    studies = tuple(LabelledCell(cell=job.cell, labels=(STUDY,)) for job in jobs if is_study(job.cell))
    if spec.measure.studied_prompts and not studies:
        notes.append("measure.studied_prompts: no drafter that can run here has an order model, so nothing is studied")
    notes += resolved.notes
    notes += transfer_notes(expansion, resolved.facts)
    notes += length_notes((cell.cell.target, cell.cell.decode.block_length) for cell in expansion.cells)
    notes += uncached_notes(expansion, jobs)
    notes += lost_notes(spec, expansion)
    expansion = replace(expansion, cells=(*expansion.cells, *studies), notes=(*expansion.notes, *notes))
    return Prepared(expansion=expansion, plan=Plan(spec=spec, jobs=jobs), missing=resolved.missing)


def in_words(axes: Mapping[str, Any]) -> str:
    """Axis values as people write them: `drafter none, ssd, temperature 1`."""
    texts = {axis: value if isinstance(value, tuple) else (value,) for axis, value in axes.items()}
    return ", ".join(f"{axis} {' or '.join(map(str, values))}" for axis, values in texts.items())


def lost_notes(spec: SweepSpec, expansion: Expansion) -> list[str]:
    """The drafters that were asked for and have no cell at all, with the reasons."""
    left = {label for labelled in expansion.cells for label in labelled.labels if not labelled.added}
    notes = []
    for name in (drafter.name for drafter in spec.drafters if drafter.name not in left):
        reasons = dict.fromkeys(gone.told for gone in expansion.dropped if gone.axes.get("drafter") == name)
        notes.append(f"drafter {name}: no cell of it is left to run ({'; '.join(reasons) or 'excluded'})")
    return notes


def uncached_notes(expansion: Expansion, jobs: Sequence[Job]) -> list[str]:
    """What the references are for, or why an approximate cache is not measured."""
    approximate = [cell for labelled in expansion.cells if not (cell := labelled.cell).target.exact_cache]
    asked = {job.cell_id for job in jobs}
    lacking = [cell for cell in approximate if cell.is_comparable_uncached and cell.uncached().cell_id not in asked]
    notes = []
    references = [job for job in jobs if job.reference]
    if references:
        of = "draft-free without a cache, only to see what approximate caches change (measure.uncached_prompts)"
        number = counted(len(references), "uncached reference")
        prompts = counted(max(job.prompts for job in references), "prompt")
        blocks = max(-(-job.cell.decode.max_new_tokens // job.cell.decode.block_length) for job in references)
        notes.append(
            f"{number}: {prompts} a cell, {of}; each forward is over "
            f"the prompt and all new tokens ({counted(blocks, 'block')} of them), not over one block"
        )
    if lacking:
        notes.append("measure.uncached_prompts is 0: what approximate caches change is not measured")
    if any(not cell.is_comparable_uncached for cell in approximate):
        notes.append("noise independent: outputs differ by chance, so approximate caches are not measured there")
    return notes


def check_dtypes(spec: SweepSpec) -> None:
    """Raise SweepError for arithmetic that workers without a GPU refuse."""
    for target in spec.targets:
        if target.dtype == "float16" and not spec.resources.gpus:
            allowed = "float64 | float32 | bfloat16 (or resources.gpus above 0)"
            raise SweepError(f"target {target.name}: dtype is 'float16' on CPU workers: allowed is {allowed}")


def bounded(job: Job, size: int) -> Job:
    """A job that asks for no more prompts than its task has."""
    return replace(
        job,
        prompts=min(job.prompts, size),
        timed_prompts=min(job.timed_prompts, size),
        studied_prompts=min(job.studied_prompts, size),
    )
