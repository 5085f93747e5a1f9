"""One step of training the order model: the trainee, its optimizer, the learning rate and the update."""

import math
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch.nn import functional

from workers.models.order_model import OrderModel
from workers.training.order_data import Trajectories
from workers.training.order_part import Ints
from workers.training.order_recipe import OrderRecipe

CHUNKS = 4  # a batch is cut into pieces of like width, each padded to its own widest block


class Schedule(Protocol):
    """What a recipe says of the optimizer and its learning rate; a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def steps(self) -> int:
        """Training steps."""

    @property
    def rate(self) -> float:
        """The highest learning rate."""

    @property
    def rise(self) -> int:
        """Steps in which it rises."""

    @property
    def weight_decay(self) -> float:
        """Of matrices."""


class Trainee(torch.nn.Module):
    """The order model and, for training only, a second head that guesses the log-odds which decide the next commit.

    The commit is the open position of largest fresh log-odds; guessing all of them teaches more than naming the winner.
    """

    def __init__(self, order: OrderModel) -> None:
        super().__init__()
        self.order = order
        self.confidence = torch.nn.Linear(order.config.width, 1)


def make_optimizer(trainee: torch.nn.Module, recipe: Schedule) -> torch.optim.AdamW:
    """AdamW; only matrices decay."""
    matrices = [parameter for parameter in trainee.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in trainee.parameters() if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98))


def rate_at(recipe: Schedule, step: int) -> float:
    """Learning rate of a step: a linear rise, then a cosine to zero at the last step."""
    if step < recipe.rise:
        return recipe.rate * (step + 1) / recipe.rise
    share = (step - recipe.rise) / max(1, recipe.steps - recipe.rise)
    return recipe.rate * 0.5 * (1 + math.cos(math.pi * share))


def one_step(
    trainee: Trainee,
    optimizer: torch.optim.AdamW,
    data: Trajectories,
    steps: Ints,
    depths: Ints,
    recipe: OrderRecipe,
    step: int,
) -> float:
    """One update on the examples (steps, depths); returns their mean cross-entropy in nats."""
    model = trainee.order
    for group in optimizer.param_groups:
        group["lr"] = rate_at(recipe, step)
    model.train()
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for at in np.array_split(np.argsort(data.rows_S[steps], kind="stable"), CHUNKS):
        if len(at) == 0:
            continue
        batch = data.batch(steps[at], depths[at])
        hidden_BAW = model.encode(model.embed_stale(batch.features_BAF), batch.columns_BAC, batch.seen_BA)
        order_loss = -model.log_order(hidden_BAW, batch.open_BA).gather(-1, batch.label_B[:, None]).sum()
        guess_BA = trainee.confidence(hidden_BAW).squeeze(-1)
        gap_BA = functional.smooth_l1_loss(guess_BA, batch.fresh_BA.clamp(-16, 16) / 4, reduction="none")
        confidence_loss = (gap_BA * batch.open_BA).sum(-1).div(batch.open_BA.sum(-1)).sum()
        loss = order_loss + recipe.confidence_weight * confidence_loss
        (loss / len(steps)).backward()  # type: ignore[no-untyped-call]
        total += float(order_loss.detach()) / len(steps)
    torch.nn.utils.clip_grad_norm_(trainee.parameters(), recipe.clip)
    optimizer.step()
    return total
