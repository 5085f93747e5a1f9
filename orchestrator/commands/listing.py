"""`spot list`: the names that a sweep can use."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from orchestrator.commands.shared import console, default_of

if TYPE_CHECKING:
    from rich.table import Table

KINDS = ("targets", "tasks", "drafters", "sweeps", "settings")


@click.command("list")
@click.argument("what", type=click.Choice(KINDS))
def listing(what: str) -> None:
    """List the built-in targets, tasks or drafters, or the packaged sweeps and the settings to lay over them."""
    from rich.markup import escape
    from rich.table import Table

    screen = console()
    if what == "targets":
        screen.print(targets_table())
        return
    table = Table(box=None, show_header=False, padding=(0, 3, 0, 0))
    for name, text in _rows(what):
        table.add_row(escape(name), escape(text))
    screen.print(table)
    if what == "drafters":
        screen.print()
        screen.print(options_table())


def targets_table() -> "Table":
    """The targets of the table: what they are, what their weights take, how they are decoded, whether they are here."""
    from rich.markup import escape
    from rich.table import Table

    from orchestrator.named_targets import named_targets
    from workers.targets.memory import gigabytes

    table = Table(box=None, padding=(0, 2, 0, 0))
    numbers = ("parameters", "weights", "block")
    for name in ("target", "family", "checkpoint", *numbers, "caches", "exact", "stop ids", "here"):
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    for target in named_targets():
        count = f"{target.shape.parameters:,}" if target.shape else "?"
        weights = f"{gigabytes(target.weights)} GB {target.spec.dtype}" if target.shape else "?"
        here = f"{target.here}: {target.fault}" if target.fault else target.here
        length = str(target.spec.block_length or "?")
        stops = ", ".join(map(str, target.stop_ids)) or "?"
        how = (length, ", ".join(target.caches), target.exact, stops, here)
        table.add_row(*map(escape, (target.spec.name, target.family, target.source, count, weights, *how)))
    return table


def options_table() -> "Table":
    """What each option of a drafter means and what it is by default, as a drafter's entry in a sweep states it."""
    from rich.markup import escape
    from rich.table import Table

    from workers.catalog import OPTIONS

    table = Table(box=None, padding=(0, 3, 0, 0), title_justify="left", title="in a sweep: drafters.NAME.OPTION=VALUE")
    for name in ("option", "default", "meaning"):
        table.add_column(name)
    for name, meaning in OPTIONS.items():
        table.add_row(name, default_of(name), escape(meaning))
    return table


def _rows(what: str) -> Iterator[tuple[str, str]]:
    """Name and one line on it."""
    from orchestrator.tables import built_in_tables
    from sweeps.load import load_sweep, packaged, settings_there_are
    from workers import catalog

    if what == "tasks":
        for name, task in catalog.TASKS.items():
            yield (f"{name}:PATH" if task.needs_path else name), task.summary
    elif what == "drafters":
        for name, drafter in catalog.DRAFTERS.items():
            bound = "a bound, no method: " if drafter.oracle else ""
            yield name, bound + drafter.summary + (f"; options: {', '.join(drafter.uses)}" if drafter.uses else "")
    elif what == "settings":
        for name, path in settings_there_are().items():
            yield name, path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
    else:
        for name, path in packaged().items():
            yield name, load_sweep(path, (), built_in_tables()).title
