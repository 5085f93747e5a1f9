"""The state of a target's training, in memory and in its file: a stopped run goes on as if it never had been."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor

from workers.targets.layers import Body
from workers.training.target_recipes import TargetRecipe


def same_recipe(stored: str, recipe: TargetRecipe) -> bool:
    """Whether a stored recipe is this one; fields that it lacks have their default."""
    try:
        return msgspec.json.decode(stored, type=TargetRecipe) == recipe
    except (msgspec.ValidationError, msgspec.DecodeError, ValueError):
        return False


def is_matrix(name: str, weight: Tensor) -> bool:
    """Whether Muon trains a weight: the layers' matrices, but not what chooses experts."""
    return weight.dim() == 2 and "embed" not in name and "router" not in name


class TrainingRun:
    """What a training run changes: weights, optimizers, step, recent losses, time. Its file is replaced at once."""

    def __init__(self, recipe: TargetRecipe, body: Body) -> None:
        self.recipe, self.body = recipe, body
        self.step, self.seconds = 0, 0.0
        self.losses: list[float] = []
        self.fresh_optimizers()

    def fresh_optimizers(self) -> None:
        """Optimizers without history: at the start, and when the objective changes."""
        named = list(self.body.named_parameters())
        matrices = [weight for name, weight in named if is_matrix(name, weight)]
        others = [weight for name, weight in named if not is_matrix(name, weight)]
        muon = torch.optim.Muon(
            matrices, lr=self.recipe.muon_rate, weight_decay=0.01, momentum=0.95, adjust_lr_fn="match_rms_adamw"
        )
        adam = torch.optim.AdamW(others, lr=self.recipe.adam_rate, betas=(0.9, 0.95), weight_decay=0.0)
        self.optimizers: tuple[torch.optim.Optimizer, ...] = (muon, adam)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["base_rate"] = group["lr"]

    def save(self, path: Path) -> None:
        """Replace the state file at once."""
        state = {
            "recipe": json.dumps(asdict(self.recipe)),
            "step": self.step,
            "seconds": self.seconds,
            "losses": self.losses,
            "body": self.body.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }
        partial = path.with_name(path.name + ".part")
        torch.save(state, partial)
        partial.replace(path)

    def restore(self, path: Path) -> None:
        """Go on from a state file. Raises ValueError when it is unreadable or another recipe's."""
        try:
            state: dict[str, Any] = torch.load(path, weights_only=True)
            recipe, step, seconds, losses = (state[key] for key in ("recipe", "step", "seconds", "losses"))
        except Exception as error:  # torch names no error type for files it cannot read
            raise ValueError(f"training state {path}: unreadable ({error}); delete it to start again") from None
        if not same_recipe(recipe, self.recipe):
            raise ValueError(
                f"{path}: the saved state belongs to another recipe than {self.recipe.name}; "
                "delete it to start again, or choose another --out"
            )
        self.step, self.seconds, self.losses = step, seconds, losses
        self.body.load_state_dict(state["body"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
