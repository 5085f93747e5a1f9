"""`spot study order`: run the observation study of a sweep, its report, and say what came out."""

from pathlib import Path
from typing import Any

import click

from orchestrator.commands.run import run
from orchestrator.commands.shared import console, run_directory

DEFAULT = "order_study"


@click.group()
def study() -> None:
    """Look at what decoding rests on, without drafting."""


@study.command(
    short_help="What foretells the commits that follow (sweep order_study).",
    params=[parameter for parameter in run.params if parameter.name not in ("sweep", "overrides")],
)
@click.argument("words", nargs=-1, metavar="[SWEEP] [KEY=VALUE]...")
@click.pass_context
def order(context: click.Context, /, words: tuple[str, ...], **options: Any) -> int:
    """Study how well stale distributions and the order model foretell the commits that follow.

    Without SWEEP it is the packaged sweep order_study: spot plan order_study shows what that would run, spot report
    order_study writes its report again. Runs what is missing, as spot run does: same options, same exit codes, safe to
    interrupt and repeat. measure.studied_prompts says how many prompts; any sweep with a drafter that has an order
    model can be studied.
    """
    from orchestrator.prepare import prepare
    from orchestrator.show_study import show_studies, studies_in
    from sweeps.source import SweepError
    from sweeps.study import is_study

    named = bool(words) and ("=" not in words[0] or Path(words[0]).is_file())
    sweep, overrides = (words[0], words[1:]) if named else (DEFAULT, words)
    plan = prepare(sweep, overrides, settings=options["settings"]).plan
    if not plan.spec.measure.studied_prompts:
        raise SweepError(
            f"sweep {plan.spec.name}: measure.studied_prompts is 0: to study it add, for example, "
            "measure.studied_prompts=16"
        )
    if not any(is_study(job.cell) for job in plan.jobs):
        raise SweepError(
            f"sweep {plan.spec.name}: no drafter that can run here has an order model: add spot to grid.drafter"
        )
    code: int = context.invoke(run, sweep=sweep, overrides=overrides, **options)
    show_studies(console(), studies_in(run_directory(options["out"], plan.spec.name)))
    return code
