"""From a sweep as written to a sweep that says exactly what it means: digests of weights, data and drafters filled in.

Everything is read from files and headers, without torch and without the network, so that whatever is missing or broken
shows as one line before any work. A hub id is looked up in the local cache only: planning never downloads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from orchestrator.absent import (
    ABSENT,
    NotHereError,
    ToMake,
    artifact_to_make,
    cost_to_measure,
    made_in,
    merged,
)
from orchestrator.artifacts import artifact_of, check_costs, cost_of
from orchestrator.block_lengths import check_block_length, ways_in_a_sweep
from orchestrator.checkpoints import checkpoint_folder, path_of
from orchestrator.transfers import maker_of
from orchestrator.ways import ways_of
from sweeps.facts import Artifact, Cost, Facts
from sweeps.paths import cut, expanded
from sweeps.source import SweepError
from sweeps.spec import DrafterSpec, SweepSpec, TargetSpec, TaskSpec
from sweeps.tables import Tables
from workers import catalog
from workers.entries import FamilyEntry
from workers.targets.inspect import CheckpointFacts, inspect_checkpoint
from workers.targets.settings import settings_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A sweep with digests, and the facts that `expand` needs. `missing` is empty unless it is only to be planned.

    `notes` are on checkpoints.
    """

    spec: SweepSpec
    facts: Facts
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def resolve_sweep(spec: SweepSpec, tables: Tables, *, planning: bool = False) -> Resolved:
    """The sweep with digests. Raises SweepError on the first thing wrong, and NotHereError on the first one missing.

    With `planning` what is missing is collected instead: its name stands for its digest, so cell ids are provisional.
    """
    missing: list[str | ToMake] = []

    def lacks(thing: str | ToMake) -> None:
        """Note what is missing, or refuse to go on without it."""
        if not planning:
            raise NotHereError(str(thing))
        missing.append(thing)

    targets, positions, hidden, notes = [], {}, {}, []
    for named in spec.targets:
        if not spec.grid.block_length:
            check_block_length(named, ways_in_a_sweep(named))
        try:
            target, checkpoint = resolve_target(named)
            positions[target.name], hidden[target.name] = checkpoint.max_positions, checkpoint.hidden
            notes += [f"target {target.name}: {note}" for note in checkpoint.notes]
        except NotHereError as error:
            target, entry = as_published(named), catalog.target_at(named.path)
            if entry and entry.published:
                positions[target.name] = entry.published.max_positions
                hidden[target.name] = entry.published.shape.hidden
            lacks(str(error))
        targets.append(target)
    spec = replace(spec, targets=tuple(targets))
    artifacts = resolve_artifacts(spec, lacks)
    costs = resolve_costs(spec, artifacts, lacks)
    tasks = []
    for task in spec.tasks:
        try:
            tasks.append(resolve_task(task))
        except NotHereError as error:
            tasks.append(replace(task, digest=ABSENT + task.name))
            lacks(str(error))
    found = ways_of(spec, artifacts, hidden)
    facts = Facts(
        kinds=tables.drafters,
        max_positions=positions,
        artifacts=artifacts,
        costs=costs,
        hidden=hidden,
        ways=found.ways,
        fits=found.fits,
        remakes=found.remakes,
    )
    return Resolved(spec=replace(spec, tasks=tuple(tasks)), facts=facts, missing=merged(missing), notes=tuple(notes))


def resolve_artifacts(spec: SweepSpec, lacks: Callable[[ToMake], None]) -> dict[tuple[str, str], Artifact]:
    """The order model or the like of each target and drafter; `lacks` is told of each that is still to be made."""
    artifacts = {}
    for target, drafter in product(spec.targets, spec.drafters):
        try:
            artifact = artifact_of(target, drafter)
        except NotHereError as error:
            named, kind = drafter.checkpoint, catalog.DRAFTERS[drafter.kind].artifact
            artifact = Artifact(path=named, digest=ABSENT + drafter.name, block_length=None)
            reason = str(error) if named else ""
            maker = maker_of(spec, target, kind, named)
            lacks(artifact_to_make(spec, maker, drafter.name, kind, named=named, reason=reason))
        if artifact is not None:
            artifacts[target.name, drafter.name] = artifact
    return artifacts


def resolve_costs(
    spec: SweepSpec, artifacts: Mapping[tuple[str, str], Artifact], lacks: Callable[[ToMake], None]
) -> dict[tuple[str, str], Cost]:
    """The cost curve of each target and drafter; `lacks` is told of each that is still to be measured.

    Raises SweepError when a drafter's curve is broken, or for none of the targets.
    """
    costs: dict[tuple[str, str], Cost] = {}
    for drafter in spec.drafters:
        found: dict[tuple[str, str], Cost] = {}
        for target in spec.targets:
            key = target.name, drafter.name
            try:
                cost = cost_of(target, drafter)
            except NotHereError as error:
                cost = Cost(path=drafter.cost, digest=ABSENT + drafter.name)
                order = checkpoint_of(target, drafter, artifacts.get(key))
                lacks(cost_to_measure(spec, target, drafter.name, str(error), order))
            if cost is not None:
                found[key] = cost
        if found:
            first = spec.targets[0]
            order = checkpoint_of(first, drafter, artifacts.get((first.name, drafter.name)))
            measure = f"measure it: {cost_to_measure(spec, first, drafter.name, '', order).shown()}"
            check_costs(drafter, found, f"{measure}, or exclude drafter {drafter.name} for target {first.name}")
        costs |= found
    return costs


def checkpoint_of(target: TargetSpec, drafter: DrafterSpec, artifact: Artifact | None) -> str:
    """What measuring a drafter's costs must be told of its order model ("": nothing, the target's table has it)."""
    if drafter.checkpoint:
        return drafter.checkpoint
    kind = catalog.DRAFTERS[drafter.kind].artifact
    absent = artifact is not None and artifact.digest.startswith(ABSENT)
    return str(made_in(kind, target) / catalog.ARTIFACTS[kind].result) if absent else ""


def as_published(target: TargetSpec) -> TargetSpec:
    """A target whose checkpoint is not here, with the traits that the table of targets knows of it."""
    entry = catalog.target_at(target.path)
    known = replace(target, digest=ABSENT + target.name, family=entry.family if entry else "")
    return with_cache(known, catalog.FAMILIES[known.family]) if known.family else known


def with_cache(target: TargetSpec, family: FamilyEntry) -> TargetSpec:
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
    is_hub = not path_of(target).is_dir()
    return (
        replace(
            target,
            path=target.path if is_hub else str(folder),
            revision=folder.name if is_hub else target.revision,
            digest=facts.weight_digest,
            settings_digest=settings_digest(folder),
            family=facts.architecture,
            parameters=facts.parameters,
        ),
        facts,
    )


def resolve_task(task: TaskSpec) -> TaskSpec:
    """A task with an absolute path and the digest of its data."""
    if task.path:
        hint = "" if task.name.endswith(f":{task.path}") else f": give its path: tasks.{task.name}.path=FILE"
        task = replace(task, path=str(expanded(task.path, f"task {cut(task.name)}: path").absolute()))
        if not Path(task.path).is_file():
            raise NotHereError(f"task {task.name}: no file {task.path}{hint}")
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
