"""One update of a model that drafts: optimizer, learning rate of a step, and a batch in chunks of like width."""

import math
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from workers.training.order_part import Ints

CHUNKS = 4  # a batch is cut into pieces of like width, each padded to its own widest block
ChunkLoss = Callable[[Ints, Ints, int], tuple[Tensor, float]]


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

    @property
    def clip(self) -> float:
        """The largest norm of a gradient."""


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


def update(
    trainee: torch.nn.Module,
    optimizer: torch.optim.AdamW,
    recipe: Schedule,
    examples: tuple[Ints, Ints],
    rows_S: Ints,
    loss_of: ChunkLoss,
    step: int,
) -> float:
    """Step `step` (from 0) on the examples (steps, depths), whose steps have `rows_S` rows; returns their loss in nats.

    `loss_of(steps, depths, count)` is a chunk's share of the mean over `count` examples: what falls, and what is told.
    """
    steps, depths = examples
    for group in optimizer.param_groups:
        group["lr"] = rate_at(recipe, step)
    trainee.train()
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for at in np.array_split(np.argsort(rows_S[steps], kind="stable"), CHUNKS):
        if len(at) == 0:
            continue
        loss, told = loss_of(steps[at], depths[at], len(steps))
        loss.backward()  # type: ignore[no-untyped-call]
        total += told
    torch.nn.utils.clip_grad_norm_(trainee.parameters(), recipe.clip)  # of what is held fast there is no gradient
    optimizer.step()
    return total
