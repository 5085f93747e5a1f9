"""What training the order model adds to it, and the loss of some examples."""

import torch
from torch import Tensor
from torch.nn import functional

from workers.models.order_model import OrderModel
from workers.training.order_data import Trajectories
from workers.training.order_part import Ints
from workers.training.order_recipe import OrderRecipe


class Trainee(torch.nn.Module):
    """The order model and, for training only, a second head that guesses the log-odds which decide the next commit.

    The commit is the open position of largest fresh log-odds; guessing all of them teaches more than naming the winner.
    """

    def __init__(self, order: OrderModel) -> None:
        super().__init__()
        self.order = order
        self.confidence = torch.nn.Linear(order.config.width, 1)

    def loss(
        self, data: Trajectories, steps: Ints, depths: Ints, count: int, recipe: OrderRecipe
    ) -> tuple[Tensor, float]:
        """The share of some examples (steps, depths) in the mean over `count`: the loss of both heads, and the
        cross-entropy in it (nats).
        """
        batch = data.batch(steps, depths)
        hidden_BAW = self.order.encode(self.order.embed_stale(batch.features_BAF), batch.columns_BAC, batch.seen_BA)
        order_loss = -self.order.log_order(hidden_BAW, batch.open_BA).gather(-1, batch.label_B[:, None]).sum()
        guess_BA = self.confidence(hidden_BAW).squeeze(-1)
        gap_BA = functional.smooth_l1_loss(guess_BA, batch.fresh_BA.clamp(-16, 16) / 4, reduction="none")
        confidence_loss = (gap_BA * batch.open_BA).sum(-1).div(batch.open_BA.sum(-1)).sum()
        loss = order_loss + recipe.confidence_weight * confidence_loss
        return loss / count, float(order_loss.detach()) / count
