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


@train.command()
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), help="Directory (default: runs/target-<name>).")
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
        click.echo(f"{found.task}: {found.correct.value:.1%} of {found.correct.n} held-out prompts correct")
    click.echo(f"{folder / 'model'}: {card.parameters:,} parameters, trained in {card.seconds:.0f} s")
