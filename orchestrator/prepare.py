"""From what a person typed to what is wanted: load, resolve, expand. Nothing is started and torch is not imported."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.resolve import prompts_there_are, resolve_sweep
from orchestrator.tables import built_in_tables
from sweeps.expand import Expansion, expand
from sweeps.load import find_sweep, load_sweep
from sweeps.source import SweepError
from sweeps.spec import SweepSpec
from sweeps.todo import Job, Plan, jobs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A resolved sweep: its cells with labels, what was dropped, and the plan that a driver can run."""

    expansion: Expansion
    plan: Plan


def prepare(sweep: str, overrides: Sequence[str] = ()) -> Prepared:
    """Read a sweep (a path or a packaged name) and multiply it out. Raises ValueError with one line."""
    tables = built_in_tables()
    spec, facts = resolve_sweep(load_sweep(find_sweep(sweep), overrides, tables), tables)
    expansion = expand(spec, facts)
    if not any(not labelled.added for labelled in expansion.cells):
        reasons = "; ".join(f"{gone.axes}: {gone.reason}" for gone in expansion.dropped)
        raise SweepError(f"sweep {spec.name}: no cell is left to run ({reasons})")
    check_dtypes(spec)
    sizes = {task.name: prompts_there_are(task, spec.measure.prompts) for task in spec.tasks}
    jobs = jobs_of((labelled.cell for labelled in expansion.cells), spec.measure)
    jobs = tuple(bounded(job, sizes[job.cell.task.name]) for job in jobs)
    short = {name: size for name, size in sizes.items() if size < spec.measure.prompts}
    notes = tuple(f"{name} has {size} prompts, all of which are wanted" for name, size in short.items())
    expansion = replace(expansion, notes=(*expansion.notes, *notes))
    return Prepared(expansion=expansion, plan=Plan(spec=spec, jobs=jobs))


def check_dtypes(spec: SweepSpec) -> None:
    """Raise SweepError for arithmetic that workers without a GPU refuse."""
    for target in spec.targets:
        if target.dtype == "float16" and not spec.resources.gpus:
            allowed = "float64 | float32 | bfloat16 (or resources.gpus above 0)"
            raise SweepError(f"target {target.name}: dtype is 'float16' on CPU workers: allowed is {allowed}")


def bounded(job: Job, size: int) -> Job:
    """A job that asks for no more prompts than its task has."""
    return replace(job, prompts=min(job.prompts, size), timed_prompts=min(job.timed_prompts, size))
