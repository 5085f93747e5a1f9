"""What a set model answers for a batch of examples, and the loss of that.

The loss of an example is a negative log-likelihood in nats: of the set, position by position, and of the tokens, under
what the target thinks of each candidate at that step (soft targets). Tokens of positions that stay open weigh less.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from workers.models.set_model import SetModel
from workers.training.order_part import Ints
from workers.training.sets_data import SetBatch, SetTrajectories


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAnswer:
    """Log-odds `odds_BA` that the asked step fills a position, and log probabilities `logp_BAC` of its candidates."""

    odds_BA: Tensor
    logp_BAC: Tensor


def answer(model: SetModel, batch: SetBatch, embedded_VH: Tensor) -> SetAnswer:
    """What the model says of a batch. Of the vocabulary only the tokens in it are projected."""
    used_U, at_X = torch.unique(
        torch.cat((batch.ids_BAC.clamp(min=0).flatten(), batch.tokens_BA.flatten())), return_inverse=True
    )
    projected_XE = model.project(embedded_VH[used_U])[at_X]
    count = batch.ids_BAC.numel()
    candidates_BACE = projected_XE[:count].view(*batch.ids_BAC.shape, -1)
    filled_BAE = projected_XE[count:].view(*batch.tokens_BA.shape, -1)
    mean_BAE = model.mean(batch.ids_BAC, batch.logprobs_BAC, candidates_BACE)
    content_BAE = torch.where(batch.open_BA[..., None], mean_BAE, filled_BAE)
    stale_BAW = model.embed_stale(batch.features_BAF, batch.hidden_BAH)
    encoded_BAW = model.encode_states(stale_BAW, content_BAE, batch.columns_BAC, batch.seen_BA)
    return SetAnswer(
        odds_BA=model.membership(encoded_BAW),
        logp_BAC=model.scores(encoded_BAW, batch.ids_BAC, batch.logprobs_BAC, candidates_BACE),
    )


def losses_of(found: SetAnswer, batch: SetBatch, other_weight: float) -> Tensor:
    """Loss of each example, `loss_B`, in nats."""
    member_BA = batch.member_BA.to(found.odds_BA.dtype)
    set_BA = functional.binary_cross_entropy_with_logits(found.odds_BA, member_BA, reduction="none")
    token_BA = -(batch.fresh_BAC * found.logp_BAC.clamp(min=-1e4)).sum(-1)
    weight_BA = torch.where(batch.member_BA, 1.0, other_weight)
    return ((set_BA + weight_BA * token_BA) * batch.open_BA).sum(-1)


def mean_loss(
    model: SetModel,
    data: SetTrajectories,
    embedded_VH: Tensor,
    steps: Ints,
    depths: Ints,
    count: int,
    other_weight: float,
) -> tuple[Tensor, float]:
    """The share of some examples (steps, depths) in the mean loss over `count`, and the same as a number (nats)."""
    batch = data.batch(steps, depths)
    loss = losses_of(answer(model, batch, embedded_VH), batch, other_weight).sum() / count
    return loss, float(loss.detach())
