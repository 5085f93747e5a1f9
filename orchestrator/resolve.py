"""From a sweep as written to a sweep that says exactly what it means: digests of weights, data and drafters filled in.

Everything is read from files and headers, without torch and without the network, so that whatever is missing or broken
shows as one line before any work. A hub id is looked up in the local cache only: planning never downloads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from sweeps.expand import Artifact, Cost, Facts
from sweeps.source import SweepError
from sweeps.spec import DrafterSpec, SweepSpec, TargetSpec, TaskSpec
from sweeps.tables import Tables
from workers import catalog
from workers.models.cost_curve import find_cost_curve, read_cost_curve
from workers.targets.inspect import CheckpointFacts, inspect_checkpoint
from workers.targets.settings import settings_digest

ABSENT = "not here: "  # stands before a name where a digest will be, so that absent things stay apart


class NotHereError(SweepError):
    """Something that a sweep may well name, but that has to be fetched or made before it can run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A sweep with digests, and the facts that `expand` needs. `missing` is empty unless it is only to be planned."""

    spec: SweepSpec
    facts: Facts
    missing: tuple[str, ...] = ()


def resolve_sweep(spec: SweepSpec, tables: Tables, *, planning: bool = False) -> Resolved:
    """The sweep with digests. Raises SweepError on the first thing wrong, and NotHereError on the first one missing.

    With `planning` what is missing is collected instead: its name stands for its digest, so cell ids are provisional.
    """
    missing: list[str] = []
    targets, positions = [], {}
    for named in spec.targets:
        try:
            target, checkpoint = resolve_target(named)
            positions[target.name] = checkpoint.max_positions
        except NotHereError as error:
            target = as_published(named)
            _missing(error, missing, planning)
        targets.append(target)
    artifacts = {}
    for target, drafter in product(targets, spec.drafters):
        try:
            artifact = artifact_of(target, drafter)
        except NotHereError as error:
            artifact = Artifact(path=drafter.checkpoint, digest=ABSENT + drafter.name, block_length=None)
            _missing(error, missing, planning)
        if artifact is not None:
            artifacts[target.name, drafter.name] = artifact
    costs: dict[tuple[str, str], Cost] = {}
    for drafter in spec.drafters:
        try:
            costs |= costs_of(drafter, targets)
        except NotHereError as error:
            absent = Cost(path=drafter.cost, digest=ABSENT + drafter.name)
            costs |= {(target.name, drafter.name): absent for target in targets}
            _missing(error, missing, planning)
    tasks = []
    for task in spec.tasks:
        try:
            tasks.append(resolve_task(task))
        except NotHereError as error:
            tasks.append(replace(task, digest=ABSENT + task.name))
            _missing(error, missing, planning)
    facts = Facts(kinds=tables.drafters, max_positions=positions, artifacts=artifacts, costs=costs)
    return Resolved(spec=replace(spec, targets=tuple(targets), tasks=tuple(tasks)), facts=facts, missing=tuple(missing))


def _missing(error: NotHereError, missing: list[str], planning: bool) -> None:
    """Note what is missing, or refuse to go on without it."""
    if not planning:
        raise error
    missing.append(str(error))


def as_published(target: TargetSpec) -> TargetSpec:
    """A target whose checkpoint is not here, with the traits that the table of targets knows of it."""
    entry = catalog.target_at(target.path)
    known = replace(target, digest=ABSENT + target.name, family=entry.family if entry else "")
    return with_cache(known, catalog.FAMILIES[known.family]) if known.family else known


def with_cache(target: TargetSpec, family: catalog.FamilyEntry) -> TargetSpec:
    """A target with its kind of cache resolved, and whether that is exact. Raises SweepError for one that cannot be."""
    try:
        cache = family.cache(target.cache)
    except ValueError as error:
        raise SweepError(f"target {target.name}: {error}") from None
    return replace(target, cache=cache, exact_cache=family.exact(cache))


def resolve_target(target: TargetSpec) -> tuple[TargetSpec, CheckpointFacts]:
    """A target with the digest of its weights and the traits of its family."""
    folder = checkpoint_folder(target)
    try:
        facts = inspect_checkpoint(folder)
    except ValueError as error:
        raise SweepError(f"target {target.name}: {' '.join(str(error).split())}") from None
    family = catalog.FAMILIES.get(facts.architecture)
    if family is None:
        raise SweepError(
            f"target {target.name}: architecture {facts.architecture} is not one of {', '.join(catalog.FAMILIES)}"
        )
    target = with_cache(target, family)
    is_hub = not Path(target.path).expanduser().is_dir()
    return (
        replace(
            target,
            path=target.path if is_hub else str(folder),
            revision=folder.name if is_hub else target.revision,
            digest=facts.weight_digest,
            settings_digest=settings_digest(folder),
            family=facts.architecture,
        ),
        facts,
    )


def checkpoint_folder(target: TargetSpec) -> Path:
    """The directory of a target's checkpoint: its path, or the snapshot of its hub id in the local cache."""
    folder = Path(target.path).expanduser()
    if folder.is_dir():
        return folder.absolute()
    if target.path.startswith((".", "/", "~")) or target.path.count("/") != 1:
        raise SweepError(
            f"target {target.name}: no checkpoint in {folder.absolute()} (nor is that a hub id owner/name)"
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(target.path, revision=target.revision or None, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, OSError, ValueError):
        revision = f" --revision {target.revision}" if target.revision else ""
        raise NotHereError(
            f"target {target.name}: {target.path} is no directory and not in the local hub cache: "
            f"fetch it first (hf download {target.path}{revision})"
        ) from None


def resolve_task(task: TaskSpec) -> TaskSpec:
    """A task with an absolute path and the digest of its data."""
    if task.path:
        task = replace(task, path=str(Path(task.path).expanduser().absolute()))
        if not Path(task.path).is_file():
            raise NotHereError(f"task {task.name}: no file {task.path}")
    try:
        digest = catalog.resolve(catalog.TASKS[task.kind].digest)(task)
    except (ValueError, OSError) as error:
        raise SweepError(f"task {task.name}: {' '.join(str(error).split())}") from None
    return replace(task, digest=digest)


def prompts_there_are(task: TaskSpec, wanted: int) -> int:
    """How many of the `wanted` first prompts a task has (all of them, while its data are not here).

    Raises SweepError when its data or its split are no good.
    """
    if task.digest.startswith(ABSENT):
        return wanted
    try:
        return len(
            catalog.resolve(catalog.TASKS[task.kind].factory)(task).prompts(split=task.split, limit=wanted, seed=0)
        )
    except (ValueError, OSError) as error:
        raise SweepError(f"task {task.name}: {' '.join(str(error).split())}") from None


def artifact_of(target: TargetSpec, drafter: DrafterSpec) -> Artifact | None:
    """The order model or the like of a drafter for a target: the drafter's own, or the target's table entry's.

    None where neither names one. Raises SweepError when a named one is missing or broken; NotHereError when the target
    itself is still to be fetched, so that none can have been made.
    """
    kind = catalog.DRAFTERS[drafter.kind].artifact
    if not kind:
        return None
    entry = catalog.target_at(target.path)  # by its weights, whatever the sweep calls it
    named = drafter.checkpoint or (entry.artifacts.get(kind, "") if entry else "")
    if not named and target.digest.startswith(ABSENT):
        made = catalog.ARTIFACTS[kind]
        raise NotHereError(
            f"drafter {drafter.name} for {target.name}: its {made.noun} is still to be made: {made.command}"
        )
    if not named:
        return None
    try:
        facts = catalog.resolve(catalog.ARTIFACTS[kind].inspect)(str(Path(named).expanduser()))
    except (ValueError, OSError) as error:
        raise SweepError(f"drafter {drafter.name} for {target.name}: {' '.join(str(error).split())}") from None
    return Artifact(
        path=str(facts.path.absolute()),
        digest=facts.digest,
        block_length=facts.block_length,
        budget_max=getattr(facts, "budget_max", None),
    )


def costs_of(drafter: DrafterSpec, targets: Sequence[TargetSpec]) -> dict[tuple[str, str], Cost]:
    """The cost curve that a drafter names, for each target; empty where it names none.

    Raises SweepError when the curve is broken or for none of the targets; NotHereError when it is still to be measured.
    """
    if not drafter.cost:
        return {}
    try:
        path = find_cost_curve(drafter.cost)
    except ValueError as error:
        make = "measure one (spot measure cost --target TARGET --out FILE), then name it"
        raise NotHereError(f"drafter {drafter.name}: {error}: {make}") from None
    try:
        curve = read_cost_curve(path)
    except (ValueError, OSError) as error:
        raise SweepError(f"drafter {drafter.name}: {' '.join(str(error).split())}") from None
    costs = {}
    for target in targets:
        if target.digest.startswith(ABSENT) and target.name != curve.target:
            raise NotHereError(
                f"drafter {drafter.name} for {target.name}: its cost curve is still to be measured: "
                f"spot measure cost --target {target.name} --dtype {target.dtype} --out FILE"
            )
        asked = {"weights": target.digest, "dtype": target.dtype, "cache": target.cache}
        measured = {"weights": curve.target_digest, "dtype": curve.dtype, "cache": curve.cache}
        other = [
            f"{name} {measured[name][:12]}, here {asked[name][:12]}" for name in asked if asked[name] != measured[name]
        ]
        absent = target.digest.startswith(ABSENT)
        fault = f"its cost curve was measured on another target ({'; '.join(other)})" if other and not absent else ""
        costs[target.name, drafter.name] = Cost(
            path=str(path.absolute()),
            digest=curve.digest,
            block_length=curve.block_length,
            budget_max=curve.budget_max,
            fault=fault,
        )
    if all(cost.fault for cost in costs.values()):
        (target_name, _), cost = next(iter(costs.items()))
        raise SweepError(f"drafter {drafter.name} for {target_name}: {cost.fault}: no target of this sweep is that")
    return costs
