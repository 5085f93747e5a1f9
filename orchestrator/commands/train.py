"""`spot train`: tiny targets and order models, the shipped ones again or new ones for another target."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.commands.shared import UserPath, recording_options, say_lengths, target_option

if TYPE_CHECKING:
    from orchestrator.pools import PoolName


@click.group()
def train() -> None:
    """Train a tiny target, or what a drafter needs for any target: an order model, a set model, a draft graph."""


@train.command()
@click.option(
    "--target",
    "targets",
    multiple=True,
    required=True,
    help="A target name (spot list targets), a directory or a hub id; may be given several times.",
)
@click.option("--task", "tasks", multiple=True, required=True, help="A task or kind:PATH; may be given several times.")
@click.option("--test-task", "test_tasks", multiple=True, help="A task to judge on and never train on; the same.")
@click.option("--test-target", "test_targets", multiple=True, help="A target to judge on and never train on; the same.")
@click.option("--prompts", type=int, default=300, show_default=True, help="Prompts of each task's train split.")
@click.option(
    "--test-prompts",
    type=int,
    help="Prompts of the test split, where only judged (default: a sixth of --prompts, from 4 to 50).",
)
@click.option("--temperature", "temperatures", type=float, multiple=True, default=(0.0, 1.0), show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the trajectories' noise and of training.")
@click.option("--max-new-tokens", type=int, default=128, show_default=True)
@click.option("--block-length", type=int, help="Of every target (default: the one that all have).")
@click.option("--dtype", default="", help="What every target computes in (default: the one that all have).")
@click.option("--steps", type=int, help="Training steps (default: the recipe's).")
@click.option("--out", type=UserPath(), help="Directory (default: runs/order-<targets>).")
@click.option("--tracking-uri", default="", help="Where the MLflow mirror goes (default: mlflow.db in the directory).")
@recording_options
def order(
    out: Path | None,
    steps: int | None,
    tracking_uri: str,
    pool: "PoolName",
    address: str,
    workers: int | None,
    gpus: float,
    **options: Any,
) -> int:
    """Record draft-free trajectories on the worker pool and train an order model of them.

    The checkpoint is written to OUT/model, which a drafter's checkpoint option may name, with a card that says how
    often it is right by role (trained on, or out of domain), target, task, temperature and depth. Run again after
    whatever ended it, it collects and trains only what is missing, and the weights are those of an uninterrupted run.
    The log is OUT/training.jsonl; MLflow mirrors it (spot sync OUT). OUT/request.json says what OUT is for: other
    targets, tasks or settings are refused there, while what is only judged may change, and so may --prompts and --steps
    until training begins.

    Exit codes: 0 all is well; 1 prompts have no trajectory; 2 bad input; 3 the model is whole but its MLflow mirror is
    not; 130 interrupted.
    """
    from dataclasses import replace

    from orchestrator.commands.training import Following
    from orchestrator.pools import make_pool
    from orchestrator.show_training import accuracy_table
    from orchestrator.train import OrderRequest, train_order_command
    from sweeps.effort import ResourceSpec
    from workers.training.order_recipe import OrderRecipe

    request = OrderRequest(**options)
    recipe = OrderRecipe(seed=request.seed)
    recipe = recipe if steps is None else replace(recipe, steps=steps)
    folder = out if out is not None else Path("runs") / f"order-{'+'.join(Path(name).name for name in request.targets)}"
    say_lengths((*request.targets, *request.test_targets), request.block_length)
    following = Following(folder, tracking_uri)

    outcome = train_order_command(
        request,
        out=folder,
        pool=make_pool(pool, ResourceSpec(workers=workers or 0, gpus=gpus), address=address),
        recipe=recipe,
        on_collect=following.screen.collect,
        on_train=following.step,
        on_judge=following.screen.judging,
        tracking_uri=tracking_uri,
    )
    return following.end(outcome, accuracy_table(outcome.trained.card), "trained")


@train.command()
@target_option
@click.option("--task", "tasks", multiple=True, required=True, help="A task or kind:PATH; may be given several times.")
@click.option("--prompts", type=int, default=32, show_default=True, help="Prompts of each task's train split.")
@click.option("--temperature", "temperatures", type=float, multiple=True, default=(0.0, 1.0), show_default=True)
@click.option("--budget-max", type=int, default=64, show_default=True, help="Nodes at most: the largest budget.")
@click.option("--tau", type=float, help="For the threshold rule with this tau (default: for the standard rule).")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--max-new-tokens", type=int, default=128, show_default=True)
@click.option("--block-length", type=int, help="Positions of a block (default: the target's own).")
@click.option("--dtype", default="", help="What the target computes in (default: its own).")
@click.option("--out", type=UserPath(), help="Directory (default: runs/spiffy-<target>, with --tau ...-tau<tau>).")
@recording_options
def spiffy(out: Path | None, budget_max: int, **options: Any) -> int:
    """Record draft-free trajectories on the worker pool and calibrate Spiffy's draft graph on them.

    The graph is written to OUT/graph, which a drafter's checkpoint option may name. Run again, it collects only what
    is missing. OUT/request.json says what OUT is for: other tasks or settings are refused there, while --prompts and
    --budget-max may change (the graph is made anew). Exit code 1 when prompts have no trajectory.
    """
    from orchestrator.commands.training import say_failures
    from orchestrator.pools import make_pool
    from orchestrator.show_training import TrainingScreen
    from orchestrator.train_spiffy import SpiffyRequest, train_spiffy_command
    from sweeps.effort import ResourceSpec
    from workers.training.spiffy_recipe import SpiffyRecipe

    pool = {name: options.pop(name) for name in ("pool", "address", "workers", "gpus")}
    resources = ResourceSpec(workers=pool["workers"] or 0, gpus=pool["gpus"])
    request = SpiffyRequest(**options)
    rule = "" if request.tau is None else f"-tau{request.tau}"
    say_lengths((request.target,), request.block_length)
    outcome = train_spiffy_command(
        request,
        out=out if out is not None else Path("runs") / f"spiffy-{Path(request.target).name}{rule}",
        pool=make_pool(pool["pool"], resources, address=pool["address"]),
        recipe=SpiffyRecipe(budget_max=budget_max),
        on_collect=TrainingScreen().collect,
    )
    used = f"calibrated on {outcome.graph.traces} of {outcome.traces} trajectories, judged on the others"
    click.echo(f"{outcome.path}: {len(outcome.graph.nodes)} nodes, {used}")
    say_failures(outcome.failures)
    return int(bool(outcome.failures))


@train.command()
@click.argument("name")
@click.option("--out", type=UserPath(), help="Directory (default: runs/target-<name>).")
@click.option(
    "--held-out", type=click.IntRange(1), default=200, show_default=True, help="Prompts of each task decoded."
)
def target(name: str, out: Path | None, held_out: int) -> None:
    """Train the tiny target NAME again from its recipe; checkpoint and model card go to OUT/model.

    Stopped and run again, it goes on from OUT/state.pt with the weights of an uninterrupted run.
    """
    from orchestrator.show_training import TrainingScreen
    from sweeps.tables import unknown
    from workers.training.target_recipes import RECIPES

    if name not in RECIPES:
        raise ValueError(unknown("target recipe", name, RECIPES))
    folder = out if out is not None else Path("runs") / f"target-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    from workers.training.target_ship import ship_target

    card = ship_target(
        RECIPES[name],
        out_dir=folder / "model",
        held_out=held_out,
        progress=TrainingScreen().target,
        resume=folder / "state.pt",
    )
    for found in card.held_out:
        how = f"{found.correct.n} held-out prompts correct ({found.cache} cache)"
        click.echo(f"{found.task}: {found.correct.value:.1%} of {how}")
    click.echo(f"{folder / 'model'}: {card.parameters:,} parameters, trained in {card.seconds:.0f} s")
