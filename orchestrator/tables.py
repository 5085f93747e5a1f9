"""The tables of `workers.catalog` as the plain facts that reading and multiplying a sweep need. Imports no torch."""

from sweeps.spec import TargetSpec
from sweeps.tables import DrafterKind, Tables, TaskKind
from workers import catalog


def built_in_tables() -> Tables:
    """The built-in targets, drafter kinds and task kinds."""
    return Tables(
        targets={
            name: TargetSpec(name=name, path=entry.path, revision=entry.revision)
            for name, entry in catalog.TARGETS.items()
        },
        drafters={
            name: DrafterKind(uses=entry.uses, needs_order_model=entry.needs_order_model)
            for name, entry in catalog.DRAFTERS.items()
        },
        tasks={name: TaskKind(needs_path=entry.needs_path) for name, entry in catalog.TASKS.items()},
    )
