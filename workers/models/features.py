"""What the order model sees of a block: the stale distribution, one for a whole round, and the path to a virtual state.

Nothing else is shown: no hidden states, no token embeddings, no text. The same two functions serve the drafter (a few
virtual states of one stale distribution) and training (many pairs), so both see the same numbers. The list of
statistics and of path features is our choice where arXiv 2610.22543 gives examples only (decoding.md section 4).

Shapes: X any leading shape, B virtual states, L block width, A positions masked in the stale state, K kept candidates,
F stale features, C path columns.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from workers.models.order_shapes import DEPTH_CAP, TOP_K

LOG_FLOOR = -16.0  # nats: below it a candidate is as good as absent

# Fill depths: how a position of a virtual state came to be filled. Depths from 1 are the draft's own commits.
COMMITTED = -1
KNOWN = 0
OPEN = 1 << 20
BEYOND = OPEN + 1  # masked, but behind the requested number of new tokens: never a candidate
POSITION = 6  # the path column that holds the position in the block


def stale_features(
    probs_XAK: Tensor,
    logprobs_XAK: Tensor,
    logodds_XA: Tensor,
    entropy_XA: Tensor,
    outside_XA: Tensor,
    rank_XA: Tensor,
    *,
    block_length: int,
) -> Tensor:
    """The stale part `features_XAF` (float32) of positions that are masked in the stale state, columns of order one.

    Fewer than 32 candidates (a small vocabulary) count as absent ones. `log(1 - p1)` comes from the log-odds and
    therefore does not saturate where p1 rounds to 1. `rank_XA` is `confidence_rank` in the whole block.
    """
    missing = TOP_K - probs_XAK.shape[-1]
    probs = functional.pad(probs_XAK.float(), (0, missing))
    logs = functional.pad(logprobs_XAK.float(), (0, missing), value=LOG_FLOOR).clamp(LOG_FLOOR, 0.0)
    odds = logodds_XA.float().clamp(2 * LOG_FLOOR, -2 * LOG_FLOOR)
    statistics = torch.stack(
        (
            entropy_XA.float() / 2,
            probs[..., 0] - probs[..., 1],
            -functional.softplus(odds) / 8,  # log(1 - p1) = -log(1 + e^odds)
            odds / 8,
            outside_XA.float(),
            rank_XA.float() / block_length,
        ),
        dim=-1,
    )
    return torch.cat((probs, 1.0 + logs / 8, statistics), dim=-1)


def confidence_rank(logodds_XL: Tensor, open_XL: Tensor) -> Tensor:
    """Rank of each open position by log-odds (0: most confident; ties to the lowest position); L where not open."""
    length = open_XL.shape[-1]
    key = torch.where(open_XL, logodds_XL, torch.full_like(logodds_XL, -math.inf))
    order = torch.argsort(key, dim=-1, descending=True, stable=True)
    rank = torch.empty_like(order).scatter_(-1, order, torch.arange(length, device=order.device).expand_as(order))
    return torch.where(open_XL, rank, torch.full_like(rank, length))


def path_columns(depth_BL: Tensor, rank_BL: Tensor) -> Tensor:
    """The path part as whole numbers `columns_BLC`, each below its entry of `column_sizes`.

    Columns: 0 status (masked, beyond, committed before, filled by the known commit, filled by the draft); 1 draft
    depth (0: none); 2 signed distance to the last filled position, plus L-1; 3 and 4 distance to the nearest filled
    position on the left (the prefix before the block counts) and on the right (L: none), 0 at filled positions; 5
    number filled; 6 position in the block; 7 rank of stale confidence among the positions that are masked in this
    state (L: not masked).

    `depth_BL` holds fill depths (COMMITTED, KNOWN, 1.., OPEN, BEYOND) with at least one position filled by the known
    commit or the draft; `rank_BL` is `confidence_rank` of the stale state.
    """
    length = depth_BL.shape[-1]
    position = torch.arange(length, device=depth_BL.device)
    filled, masked = depth_BL < OPEN, depth_BL == OPEN
    drafted = filled & (depth_BL > KNOWN)
    status = (depth_BL == BEYOND) + 2 * (depth_BL == COMMITTED) + 3 * (depth_BL == KNOWN) + 4 * drafted
    depth = torch.where(drafted, depth_BL, torch.zeros_like(depth_BL)).clamp(max=DEPTH_CAP)
    last = torch.where(filled, depth_BL, torch.full_like(depth_BL, -2)).argmax(dim=-1, keepdim=True)
    at_filled = torch.where(filled, position, torch.full_like(depth_BL, -1))
    left = position - at_filled.cummax(dim=-1).values
    at_filled = torch.where(filled, position, torch.full_like(depth_BL, 2 * length))
    right = (at_filled.flip(-1).cummin(dim=-1).values.flip(-1) - position).clamp(max=length)
    before = (rank_BL.unsqueeze(-1) > rank_BL.unsqueeze(-2)) & masked.unsqueeze(-2)
    rank = torch.where(masked, before.sum(-1), torch.full_like(depth_BL, length))
    count = filled.sum(-1, keepdim=True).expand_as(depth_BL)
    columns = (status, depth, position - last + length - 1, left, right, count, position.expand_as(depth_BL), rank)
    return torch.stack([column.long() for column in columns], dim=-1)
