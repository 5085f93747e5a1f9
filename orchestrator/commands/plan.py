"""`spot plan`: what a run would do, without starting anything."""

from pathlib import Path

import click

from orchestrator.commands.shared import (
    UserPath,
    console,
    json_line,
    overrides_argument,
    run_directory,
    settings_option,
    sweep_argument,
)


@click.command()
@sweep_argument
@overrides_argument
@settings_option
@click.option("--out", type=UserPath(), help="Run directory (default: runs/<sweep name>).")
@click.option("--retry-failed", is_flag=True, help="Count prompts that failed before as to do.")
@click.option("--all", "everything", is_flag=True, help="List every cell, however many there are.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def plan(
    sweep: str,
    overrides: tuple[str, ...],
    settings: tuple[str, ...],
    out: Path | None,
    retry_failed: bool,
    everything: bool,
    as_json: bool,
) -> None:
    """Show the cells of SWEEP, what of them is stored, what is to do and why, and what it will cost at most.

    SWEEP is a YAML file or the name of a packaged sweep (spot list sweeps). KEY=VALUE overrides what the file says:
    grid.budget=4,8 measure.prompts=2 drafters.spot-gamma.gamma=0.1. What is not on this machine yet (a checkpoint, its
    order model, a data file) is listed; the rest of the plan is shown all the same.
    """
    from orchestrator.forecast import forecast
    from orchestrator.prepare import prepare
    from orchestrator.show_forecast import show

    prepared = prepare(sweep, overrides, settings=settings, planning=True)
    result = forecast(prepared, run_directory(out, prepared.plan.spec.name), retry_failed=retry_failed)
    if as_json:
        click.echo(json_line(result, spec=prepared.plan.spec))
    else:
        show(console(), prepared.plan.spec, result, everything=everything)
