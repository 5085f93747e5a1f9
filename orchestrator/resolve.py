"""From a sweep as written to a sweep that says exactly what it means: digests of weights, data and drafters filled in.

Everything is read from files and headers, without torch and without the network, so that whatever is missing or broken
shows as one line before any work. A hub id is looked up in the local cache only: planning never downloads.
"""

from dataclasses import replace
from pathlib import Path

from sweeps.expand import Artifact, Facts
from sweeps.source import SweepError
from sweeps.spec import DrafterSpec, SweepSpec, TargetSpec, TaskSpec
from sweeps.tables import Tables
from workers import catalog
from workers.targets.inspect import CheckpointFacts, inspect_checkpoint
from workers.targets.settings import settings_digest


def resolve_sweep(spec: SweepSpec, tables: Tables) -> tuple[SweepSpec, Facts]:
    """The sweep with digests, and the facts that `expand` needs. Raises SweepError on the first thing missing."""
    inspected = {target.name: resolve_target(target) for target in spec.targets}
    targets = tuple(target for target, _ in inspected.values())
    facts = Facts(
        kinds=tables.drafters,
        max_positions={name: checkpoint.max_positions for name, (_, checkpoint) in inspected.items()},
        artifacts={
            (target.name, drafter.name): artifact
            for target in targets
            for drafter in spec.drafters
            if (artifact := artifact_of(target, drafter)) is not None
        },
    )
    tasks = tuple(resolve_task(task) for task in spec.tasks)
    return replace(spec, targets=targets, tasks=tasks), facts


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
    is_hub = not Path(target.path).expanduser().is_dir()
    return (
        replace(
            target,
            path=target.path if is_hub else str(folder),
            revision=folder.name if is_hub else target.revision,
            digest=facts.weight_digest,
            settings_digest=settings_digest(folder),
            family=facts.architecture,
            exact_cache=family.exact_cache,
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
        raise SweepError(
            f"target {target.name}: {target.path} is no directory and not in the local hub cache: "
            f"fetch it first (hf download {target.path}{revision})"
        ) from None


def resolve_task(task: TaskSpec) -> TaskSpec:
    """A task with an absolute path and the digest of its data."""
    if task.path:
        task = replace(task, path=str(Path(task.path).expanduser().absolute()))
        if not Path(task.path).is_file():
            raise SweepError(f"task {task.name}: no file {task.path}")
    try:
        digest = catalog.resolve(catalog.TASKS[task.kind].digest)(task)
    except (ValueError, OSError) as error:
        raise SweepError(f"task {task.name}: {' '.join(str(error).split())}") from None
    return replace(task, digest=digest)


def prompts_there_are(task: TaskSpec, wanted: int) -> int:
    """How many of the `wanted` first prompts a task has. Raises SweepError when its data or its split are no good."""
    try:
        return len(
            catalog.resolve(catalog.TASKS[task.kind].factory)(task).prompts(split=task.split, limit=wanted, seed=0)
        )
    except (ValueError, OSError) as error:
        raise SweepError(f"task {task.name}: {' '.join(str(error).split())}") from None


def artifact_of(target: TargetSpec, drafter: DrafterSpec) -> Artifact | None:
    """The order model or the like of a drafter for a target: the drafter's own, or the target's table entry's.

    None where neither names one. Raises SweepError when a named one is missing or broken.
    """
    kind = catalog.DRAFTERS[drafter.kind].artifact
    if not kind:
        return None
    entry = catalog.TARGETS.get(target.name)
    suits = entry is not None and entry.path == target.path  # not for other weights under the same name
    named = drafter.checkpoint or (entry.artifacts.get(kind, "") if entry and suits else "")
    if not named:
        return None
    try:
        facts = catalog.resolve(catalog.ARTIFACTS[kind].inspect)(str(Path(named).expanduser()))
    except (ValueError, OSError) as error:
        raise SweepError(f"drafter {drafter.name} for {target.name}: {' '.join(str(error).split())}") from None
    return Artifact(path=str(facts.path.absolute()), digest=facts.digest, block_length=facts.block_length)
