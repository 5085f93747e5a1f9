"""`spot report`, `spot export`, `spot sync`: pages, rows and the MLflow mirror from the files of a run."""

from pathlib import Path
from typing import Any

import click

from orchestrator.commands.shared import UserPath, existing_run, existing_training

FORMATS = ("csv", "json", "parquet")
STDOUT = (Path("-"), Path("/dev/stdout"))

run_argument = click.argument("run", type=UserPath())


@click.command()
@run_argument
def report(run: Path) -> None:
    """Write the report of RUN (a run directory, or the name of one below runs/) and print its path."""
    from reports.render import render

    click.echo(render(existing_run(run).root))


@click.command()
@run_argument
@click.option("--prompts", "rows", flag_value="prompts", help="One row a prompt instead of one a cell.")
@click.option("--study", "rows", flag_value="study", help="One row a look-ahead and commit index of the order study.")
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Default: by the file's name, else csv.")
@click.option("-o", "--output", type=UserPath(), help="Default: stdout.")
def export(run: Path, output: Path | None, **options: Any) -> None:
    """Write the rows of RUN for pandas and others; undefined is empty or null, never NaN.

    The columns are described in RUN/report-data/columns.md, which the report brings along.
    """
    from reports.export import chosen, encoded
    from reports.export import export as write
    from reports.frames import load

    folder = existing_run(run).root
    rows: Any = options["rows"] or "cells"
    output = None if output in STDOUT else output
    suffix = output.suffix.lstrip(".").lower() if output is not None else ""
    kind: Any = options["kind"] or suffix or "csv"
    if kind not in FORMATS:
        allowed = ", ".join(f".{name}" for name in FORMATS)
        raise click.UsageError(f"-o {output}: no format .{suffix}: allowed are {allowed} (or say --format)")
    if output is not None:
        click.echo(write(folder, rows=rows, format=kind, out=output))
        return
    if kind == "parquet":
        raise click.UsageError("parquet goes to a file: give -o FILE")
    frames = load(folder)
    click.echo(encoded(chosen(frames, rows), kind).decode(), nl=kind == "json")


@click.command()
@run_argument
@click.option("--tracking-uri", default="", help="Where to (default: as the run says, else mlflow.db in it).")
def sync(run: Path, tracking_uri: str) -> int:
    """Bring the MLflow mirror of RUN up to date from its files; exit code 3 when it stays incomplete.

    RUN may also be the directory of spot train order, even while it trains.
    """
    from orchestrator.finish import mirror

    return mirror(existing_training(run) or existing_run(run), tracking_uri)
