"""The tables of `workers.catalog` as the plain facts that reading and multiplying a sweep need. Imports no torch."""

from sweeps.spec import TargetSpec
from sweeps.tables import ArtifactKind, DrafterKind, Tables, TaskKind
from workers import catalog
from workers.entries import TargetEntry


def built_in_tables() -> Tables:
    """The built-in targets, drafter kinds and task kinds."""
    return Tables(
        targets={name: target_of(name, entry) for name, entry in catalog.TARGETS.items()},
        drafters={
            name: DrafterKind(
                uses=entry.uses, commits=entry.commits, artifact=_artifact(entry.artifact), oracle=entry.oracle
            )
            for name, entry in catalog.DRAFTERS.items()
        },
        tasks={name: TaskKind(needs_path=entry.needs_path) for name, entry in catalog.TASKS.items()},
    )


def target_of(name: str, entry: TargetEntry) -> TargetSpec:
    """A target of the table as a sweep that states nothing about it has it."""
    return TargetSpec(
        name=name, path=entry.path, revision=entry.revision, dtype=entry.dtype, block_length=entry.block_length
    )


def ordering() -> frozenset[str]:
    """The drafter kinds that have an order model: what a study looks at."""
    return frozenset(name for name, entry in catalog.DRAFTERS.items() if entry.artifact == "order_model")


def _artifact(kind: str) -> ArtifactKind | None:
    """What a drafter needs, as planning names it."""
    entry = catalog.ARTIFACTS.get(kind)
    return ArtifactKind(noun=entry.noun, command=entry.command) if entry else None
