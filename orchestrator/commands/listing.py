"""`spot list`: the names that a sweep can use, one row each, for people or as JSON."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from orchestrator.commands.shared import console, default_of

if TYPE_CHECKING:
    from rich.table import Table

Row = dict[str, Any]


def targets() -> Iterator[Row]:
    """The targets of the table: what they are, what their weights take, how they are decoded, whether they are here."""
    from orchestrator.named_targets import named_targets

    for target in named_targets():
        yield {
            "target": target.spec.name,
            "family": target.family,
            "checkpoint": target.source,
            "parameters": target.shape.parameters if target.shape else None,
            "bytes": target.weights or None,
            "dtype": target.spec.dtype,
            "block": target.spec.block_length or None,
            "caches": target.caches,
            "exact": target.exact,
            "stop_ids": target.stop_ids or None,
            "here": f"{target.here}: {target.fault}" if target.fault else target.here,
        }


def tasks() -> Iterator[Row]:
    """The tasks; those that read a file are named with it."""
    from workers import catalog

    for name, task in catalog.TASKS.items():
        yield {"task": f"{name}:PATH" if task.needs_path else name, "what": task.summary}


def drafters() -> Iterator[Row]:
    """The drafters, the options they use (with default and meaning), what comes with the package for `checkpoint`."""
    from workers import catalog

    explained = {row.pop("option"): row for row in options()}

    for name, drafter in catalog.DRAFTERS.items():
        bound = "a bound, no method: " if drafter.oracle else ""
        yield {
            "drafter": name,
            "what": bound + drafter.summary,
            "options": {option: explained[option] for option in drafter.uses},
            "shipped_checkpoints": catalog.shipped(drafter.artifact),
        }


def options() -> Iterator[Row]:
    """What each option of a drafter means and what it is by default, as a drafter's entry in a sweep states it."""
    from workers.catalog import OPTIONS

    for name, meaning in OPTIONS.items():
        yield {"option": name, "default": default_of(name), "meaning": meaning}


def sweeps() -> Iterator[Row]:
    """The packaged sweeps."""
    from orchestrator.tables import built_in_tables
    from sweeps.load import load_sweep, packaged

    for name, path in packaged().items():
        yield {"sweep": name, "what": load_sweep(path, (), built_in_tables()).title}


def settings() -> Iterator[Row]:
    """The settings to lay over a sweep."""
    from sweeps.load import settings_there_are

    for name, path in settings_there_are().items():
        yield {"settings": name, "what": path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")}


TABLES: dict[str, Callable[[], Iterator[Row]]] = {
    rows.__name__: rows for rows in (targets, tasks, drafters, sweeps, settings)
}


@click.command("list")
@click.argument("what", type=click.Choice(list(TABLES)))
@click.option("--json", "as_json", is_flag=True, help="One JSON line a row.")
def listing(what: str, as_json: bool) -> None:
    """List the built-in targets, tasks or drafters, or the packaged sweeps and the settings to lay over them."""
    rows = list(TABLES[what]())
    if as_json:
        import json

        click.echo("\n".join(json.dumps(row) for row in rows))
        return
    console().print(table_of(rows))
    if what == "drafters":
        console().print(table_of(list(options()), title="\nin a sweep: drafters.NAME.OPTION=VALUE"))


def table_of(rows: Sequence[Row], *, title: str = "") -> "Table":
    """Rows for people: a column a key."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), title=title or None, title_justify="left")
    for name, value in rows[0].items():
        heading = "weights" if name == "bytes" else name.replace("_", " ")
        table.add_column(heading, justify="right" if isinstance(value, int) else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(shown(name, value)) for name, value in row.items()))
    return table


def shown(name: str, value: Any) -> str:
    """A value as people read it; what nobody knows is `?`."""
    from workers.targets.memory import gigabytes

    if value is None:
        return "?"
    if name == "bytes":
        return f"{gigabytes(value)} GB"
    return f"{value:,}" if isinstance(value, int) else value if isinstance(value, str) else ", ".join(map(str, value))
