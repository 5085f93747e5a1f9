"""Whether a run directory belongs to a sweep, what changed since it last ran, and the record of that.

Cells are content-addressed, so an edited sweep may go on in its directory: results of cells that stay are used, those
of cells that left are kept. Edited code or other libraries could change the same cell's numbers: that is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from sweeps.cell import ID_VERSION
from sweeps.effort import ResourceSpec
from sweeps.origin import Origin, code_changes
from sweeps.spec import SweepSpec
from sweeps.store import TEMPORARY, RunDir, atomic_write
from sweeps.todo import Job, Plan
from sweeps.version import check_version

T = TypeVar("T")
SHOWN_CHANGES = 12
NAMED = ("target", "task", "drafter")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The starts of a run, oldest first; a start equal to the one before but for its time is not repeated.

    `id_version` is that of the cell ids (`sweeps.cell.ID_VERSION`), None in a directory of before it was written down.
    """

    starts: tuple[Origin, ...] = ()
    id_version: int | None = None


def read_spec(run: RunDir) -> SweepSpec:
    """The sweep a run directory belongs to. Raises ValueError naming the file."""
    return _read(run, "spec", SweepSpec)


def read_jobs(run: RunDir) -> tuple[Job, ...]:
    """What the run wants, one job a cell. Raises ValueError naming the file."""
    return _read(run, "cells", tuple[Job, ...])


def read_history(run: RunDir) -> History:
    """With what the run was started. Raises ValueError naming the file."""
    return _read(run, "provenance", History)


def check_belongs(run: RunDir, name: str) -> None:
    """Raise ValueError when `run.root` is somebody else's: another sweep's, or a folder with other things in it."""
    if run.root.exists() and not run.root.is_dir():
        raise ValueError(f"output directory {run.root} is a file: choose another one")
    if run.spec.exists():
        found = read_spec(run).name
        if found != name:
            raise ValueError(
                f"output directory {run.root} belongs to sweep {found!r}, not {name!r}: choose another one"
            )
    elif run.root.is_dir():
        ours = (run.lock.name, run.events.name)
        other = sorted(p.name for p in run.root.iterdir() if p.name not in ours and not p.name.startswith(TEMPORARY))
        if other:
            some = ", ".join(other[:3]) + (", ..." if len(other) > 3 else "")
            raise ValueError(f"output directory {run.root} is no run directory but holds {some}: choose another one")


def record_start(run: RunDir, plan: Plan, origin: Origin, *, accept_changes: bool = False) -> tuple[str, ...]:
    """Write spec, jobs and origin of a start, under the lock; returns what changed since the last one, a line each.

    Raises ValueError, writing nothing, when the directory is somebody else's, or when code or libraries changed and
    the change was not accepted.
    """
    check_belongs(run, plan.spec.name)
    changes: tuple[str, ...] = ()
    history = read_history(run) if run.provenance.exists() else History()
    if history.starts:
        changed = code_changes(history.starts[-1], origin)
        if changed and not accept_changes:
            hint = "finish with the old ones, choose another directory, or pass --accept-changes"
            raise ValueError(f"{run.root} was made with other code or libraries ({_brief(changed)}): {hint}")
        changes += changed
    if run.spec.exists():
        changes += spec_changes(read_spec(run), plan.spec)
    if run.cells.exists():
        changes += job_changes(read_jobs(run), plan.jobs)
    starts = history.starts
    if not starts or _timeless(starts[-1]) != _timeless(origin):
        starts += (origin,)
    for path, value in (
        (run.spec, plan.spec),
        (run.cells, plan.jobs),
        (run.provenance, History(starts=starts, id_version=ID_VERSION)),
    ):
        data = msgspec.json.format(msgspec.json.encode(value), indent=1)
        if not path.exists() or path.read_bytes() != data:
            atomic_write(path, data)
    return changes


def spec_changes(old: SweepSpec, new: SweepSpec) -> tuple[str, ...]:
    """What differs between two sweeps: `spec field: before -> after`, and which targets, tasks, drafters came or went.

    Resources are left out: how many workers there are, and of what size, changes no number.
    """
    lines, axes = [], set[str]()  # an axis of which that much is said is not listed again
    for noun in NAMED:
        before, after = ([item.name for item in getattr(spec, f"{noun}s")] for spec in (old, new))
        said = [f"{noun} {name}: left out" for name in before if name not in after]
        said += [f"{noun} {name}: added" for name in after if name not in before]
        axes |= {f"grid.{noun}"} if said else set()
        lines += said
    first, second = (dict(_leaves("", msgspec.to_builtins(spec))) for spec in (shared(old, new), shared(new, old)))
    keys = [*first, *(key for key in second if key not in first)]
    lines += [
        f"spec {key}: {first.get(key, '(absent)')} -> {second.get(key, '(absent)')}"
        for key in keys
        if first.get(key, ...) != second.get(key, ...) and key not in axes
    ]
    return tuple(lines)


def shared(spec: SweepSpec, other: SweepSpec) -> SweepSpec:
    """A sweep without resources and without the targets, tasks and drafters that another does not have."""
    names = {noun: {item.name for item in getattr(other, f"{noun}s")} for noun in NAMED}
    return replace(
        spec,
        targets=tuple(target for target in spec.targets if target.name in names["target"]),
        tasks=tuple(task for task in spec.tasks if task.name in names["task"]),
        drafters=tuple(drafter for drafter in spec.drafters if drafter.name in names["drafter"]),
        resources=ResourceSpec(),
    )


def job_changes(old: tuple[Job, ...], new: tuple[Job, ...]) -> tuple[str, ...]:
    """How many cells came, and how many left."""
    before, after = {job.cell_id for job in old}, {job.cell_id for job in new}
    lines = []
    if after - before:
        lines.append(f"cells added: {len(after - before)}")
    if before - after:
        lines.append(f"cells no longer wanted: {len(before - after)} (their results are kept)")
    return tuple(lines)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), inner)
    elif isinstance(value, (list, tuple)) and any(isinstance(inner, dict) for inner in value):
        for index, inner in enumerate(value):
            name = inner.get("name", index) if isinstance(inner, dict) else index
            yield from _leaves(f"{path}[{name}]", inner)
    else:
        yield path, msgspec.json.encode(value).decode()


def _timeless(origin: Origin) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(origin)
    return {key: value for key, value in values.items() if key != "started_at"}


def _brief(changes: tuple[str, ...]) -> str:
    more = len(changes) - SHOWN_CHANGES
    return "; ".join(changes[:SHOWN_CHANGES]) + (f"; and {more} more" if more > 0 else "")


def _read(run: RunDir, name: str, kind: type[T]) -> T:
    path = getattr(run, name)
    check_version(run)
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind, strict=True)
    except FileNotFoundError:
        raise ValueError(f"{run.root} is no run directory: {path.name} is missing") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}): restore it or choose another directory") from None
