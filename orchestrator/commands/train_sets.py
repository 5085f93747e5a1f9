"""`spot train sets`: a set model for threshold decoding, or one fitted to another target."""

from pathlib import Path
from typing import Any

import click

from orchestrator.commands.shared import UserPath, recording_options, target_option


@click.command()
@target_option
@click.option("--task", "tasks", multiple=True, required=True, help="A task or kind:PATH; may be given several times.")
@click.option("--prompts", type=int, default=300, show_default=True, help="Prompts of each task's train split.")
@click.option("--tau", "taus", type=float, multiple=True, default=(0.7, 0.8, 0.9, 0.95), show_default=True)
@click.option("--temperature", "temperatures", type=float, multiple=True, default=(0.0, 1.0), show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the trajectories' noise and of training.")
@click.option("--max-new-tokens", type=int, default=128, show_default=True)
@click.option("--block-length", type=int, help="Positions of a block (default: the target's own).")
@click.option("--dtype", default="", help="What the target computes in (default: its own).")
@click.option("--width", type=int, help="Of the model (default: 256).")
@click.option("--layers", type=int, help="Of the model (default: 4).")
@click.option("--steps", type=int, help="Training steps (default: the recipe's).")
@click.option(
    "--calibrate-from",
    default="",
    help="A set model of another target: fit its input layer to this one, and change nothing else.",
)
@click.option("--out", type=UserPath(), help="Directory (default: runs/sets-<target>).")
@click.option("--tracking-uri", default="", help="Where the MLflow mirror goes (default: mlflow.db in the directory).")
@recording_options
def sets(out: Path | None, steps: int | None, tracking_uri: str, **options: Any) -> int:
    """Record trajectories of threshold decoding on the worker pool and train a set model of them.

    Prompts are dealt out over the taus and temperatures: one model serves them all. The checkpoint is written to
    OUT/model, which the checkpoint option of spot-sets may name, with a card that says how often the next step is
    foreseen. Run again after whatever ended it, it collects and trains only what is missing, and the weights are those
    of an uninterrupted run. The log is OUT/training.jsonl; MLflow mirrors it (spot sync OUT). OUT/request.json says
    what OUT is for: other settings are refused there, while --prompts and --steps may change until training begins.

    Exit codes: 0 all is well; 1 prompts have no trajectory; 2 bad input; 3 the model is whole but its MLflow mirror is
    not; 130 interrupted.
    """
    from orchestrator.commands.training import Following
    from orchestrator.pools import make_pool
    from orchestrator.show_sets import foreseen_table
    from orchestrator.train_sets import SetsRequest, train_sets_command
    from sweeps.effort import ResourceSpec

    pool = {name: options.pop(name) for name in ("pool", "address", "workers", "gpus")}
    resources = ResourceSpec(workers=pool["workers"] or 0, gpus=pool["gpus"])
    request = SetsRequest(**options)
    folder = out if out is not None else Path("runs") / f"sets-{Path(request.target).name}"
    following = Following(folder, tracking_uri)
    outcome = train_sets_command(
        request,
        out=folder,
        pool=make_pool(pool["pool"], resources, address=pool["address"]),
        steps=steps,
        on_collect=following.screen.collect,
        on_train=following.step,
        tracking_uri=tracking_uri,
    )
    card = outcome.trained.card
    return following.end(outcome, foreseen_table(card), "calibrated" if card.base else "trained")
