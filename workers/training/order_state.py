"""The state file of an order-model training run: what it takes to go on as if it had never stopped."""

import os
from dataclasses import asdict
from pathlib import Path

import torch

from workers.training.order_recipe import OrderRecipe

AGAIN = "delete it to start again, or choose another --out"


def write_state(
    path: Path,
    trainee: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    recipe: OrderRecipe,
    data_digest: str,
    step: int,
    seconds: float,
) -> None:
    """Replace the state file at once or not at all."""
    state = {
        "recipe": asdict(recipe),
        "data_digest": data_digest,
        "step": step,
        "seconds": seconds,
        "trainee": trainee.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    torch.save(state, partial)
    os.replace(partial, path)


def read_state(
    path: Path, trainee: torch.nn.Module, optimizer: torch.optim.Optimizer, *, recipe: OrderRecipe, data_digest: str
) -> tuple[int, float]:
    """Load a state file into trainee and optimizer; returns steps done and seconds spent (0 and 0.0 without a file).

    Raises ValueError when it belongs to another recipe or other traces, or cannot be read.
    """
    if not path.exists():
        return 0, 0.0
    try:
        state = torch.load(path, weights_only=True)
        recorded, digest, step, seconds = (state[key] for key in ("recipe", "data_digest", "step", "seconds"))
    except Exception as error:  # torch names no error type for files it cannot read
        raise ValueError(f"training state {path}: unreadable ({error}); delete it to start again") from None
    if recorded != asdict(recipe):
        names = [name for name, value in asdict(recipe).items() if recorded.get(name) != value]
        raise ValueError(
            f"training state {path}: belongs to another recipe (it differs in {', '.join(names)}); {AGAIN}"
        )
    if digest != data_digest:
        raise ValueError(f"training state {path}: belongs to other traces; {AGAIN}")
    trainee.load_state_dict(state["trainee"])
    optimizer.load_state_dict(state["optimizer"])
    return int(step), float(seconds)
