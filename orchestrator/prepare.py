"""From what a person typed to what is wanted: load, resolve, expand. Nothing is started and torch is not imported."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.resolve import resolve_sweep
from orchestrator.tables import built_in_tables
from sweeps.expand import Expansion, expand
from sweeps.load import find_sweep, load_sweep
from sweeps.source import SweepError
from sweeps.todo import Plan, jobs_of


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
    jobs = jobs_of((labelled.cell for labelled in expansion.cells), spec.measure)
    return Prepared(expansion=expansion, plan=Plan(spec=spec, jobs=jobs))
