"""`spot run`: run what is missing of a sweep, then its report and its mirror."""

import sys
import time
from pathlib import Path
from typing import Any

import click

from orchestrator.commands.shared import (
    UserPath,
    overrides_argument,
    pool_options,
    run_directory,
    settings_option,
    sweep_argument,
)


@click.command()
@sweep_argument
@overrides_argument
@settings_option
@click.option("--out", type=UserPath(), help="Run directory (default: runs/<sweep name>).")
@pool_options
@click.option("--accept-changes", is_flag=True, help="Go on although code or libraries changed since the last start.")
@click.option("--retry-failed", is_flag=True, help="Ask prompts that failed before once more.")
@click.option("--tracking-uri", help="Where the MLflow mirror goes (default: mlflow.db in the run directory).")
def run(
    sweep: str,
    overrides: tuple[str, ...],
    settings: tuple[str, ...],
    out: Path | None,
    accept_changes: bool,
    retry_failed: bool,
    tracking_uri: str | None,
    **pool: Any,
) -> int:
    """Run what is missing of SWEEP (a YAML file or a packaged name); when nothing is, do nothing.

    The same command again goes on where the last one ended, however that was. Exit codes: 0 all is well; 1 failed
    prompts, or an output that differs from draft-free decoding by more than rounding explains; 2 bad input; 3 the
    results are whole but the MLflow mirror is not; 130 interrupted.
    """
    from dataclasses import replace

    from orchestrator.driver import run_plan
    from orchestrator.finish import finish
    from orchestrator.pools import make_pool
    from orchestrator.prepare import prepare
    from orchestrator.progress import make_progress
    from orchestrator.stop import Stop
    from orchestrator.tracking_uri import location
    from sweeps.origin import origin_of

    if pool["workers"] is not None:
        overrides = (*overrides, f"resources.workers={pool['workers']}")
    prepared = prepare(sweep, overrides, settings=settings)
    for note in prepared.checkpoint_notes:
        click.echo(f"note: {note}", err=True)
    plan = prepared.plan
    if tracking_uri is not None:  # kept with the run, so that `spot sync` goes to the same place
        plan = replace(plan, spec=replace(plan.spec, tracking_uri=tracking_uri))
    directory = run_directory(out, plan.spec.name)
    location(
        directory.root, tracking_uri or "", plan.spec.tracking_uri
    )  # a place that cannot work is refused before any work
    with Stop().on_signals() as stop:
        outcome = run_plan(
            plan,
            directory,
            make_pool(pool["pool"], plan.spec.resources, address=pool["address"], stop=stop),
            progress=make_progress(),
            stop=stop,
            origin=origin_of(("spot", *sys.argv[1:]), time.time()),
            retry_failed=retry_failed,
            accept_changes=accept_changes,
        )
    return finish(directory, outcome)
