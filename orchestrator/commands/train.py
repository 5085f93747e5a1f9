"""`spot train`: tiny targets and order models, the shipped ones again or new ones for another target."""

from pathlib import Path
from typing import Any

import click

from orchestrator.commands.shared import pool_options


@click.group()
def train() -> None:
    """Train a tiny target, or an order model for any target."""


@train.command()
@click.option("--target", required=True, help="A target name (spot list targets), a directory or a hub id.")
@click.option("--task", "tasks", multiple=True, required=True, help="A task or kind:PATH; may be given several times.")
@click.option("--prompts", type=int, default=300, show_default=True, help="Prompts of each task's train split.")
@click.option("--temperature", "temperatures", type=float, multiple=True, default=(0.0, 1.0), show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--max-new-tokens", type=int, default=128, show_default=True)
@click.option("--block-length", type=int, default=32, show_default=True)
@click.option("--dtype", default="float32", show_default=True)
@click.option("--steps", type=int, help="Training steps (default: the recipe's).")
@click.option("--out", type=click.Path(path_type=Path), help="Directory (default: runs/order-<target>).")
@pool_options
def order(out: Path | None, tasks: tuple[str, ...], temperatures: tuple[float, ...], **options: Any) -> int:
    """Record draft-free trajectories on the worker pool and train an order model of them.

    The checkpoint is written to OUT/model, which a drafter's checkpoint option may name. Run again, it collects and
    trains only what is missing. Exit code 1 when prompts have no trajectory.
    """
    from dataclasses import replace

    from orchestrator.pools import make_pool
    from orchestrator.show_training import TrainingScreen
    from orchestrator.train import OrderRequest, train_order_command
    from sweeps.spec import ResourceSpec
    from workers.training.order_recipe import OrderRecipe

    names = ("target", "prompts", "seed", "max_new_tokens", "block_length", "dtype")
    request = OrderRequest(tasks=tasks, temperatures=temperatures, **{name: options[name] for name in names})
    recipe = OrderRecipe(seed=request.seed)
    recipe = recipe if options["steps"] is None else replace(recipe, steps=options["steps"])
    resources = ResourceSpec(workers=options["workers"] or 0)
    folder = out if out is not None else Path("runs") / f"order-{Path(request.target).name}"
    screen = TrainingScreen()
    outcome = train_order_command(
        request,
        out=folder,
        pool=make_pool(options["pool"], resources, address=options["address"]),
        recipe=recipe,
        on_collect=screen.collect,
        on_train=screen.order,
    )
    click.echo(f"{folder / 'model'}: trained on {outcome.traces} trajectories")
    for failure in outcome.failures[:5]:
        click.echo(f"no trajectory of prompt {failure.prompt_index}: {failure.type}: {failure.message}", err=True)
    return int(bool(outcome.failures))
