"""Virtual states of recorded steps: step s and the next ones up to depth k are filled, and step s + k + 1 is asked for.

What the order model's and the set model's examples have in common: which rows of a trajectory a batch looks at, how the
positions came to be filled, and the rows of the asked step.

Shapes: R rows (masked positions of all steps), S steps, B batch, A padded rows of a step, L block width, C path
columns.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from workers.models.features import BEYOND, COMMITTED, OPEN, confidence_rank, path_columns
from workers.training.order_part import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualBatch:
    """B virtual states. `row_BA` are the rows of their stale states, `seen_BA` false at padding, `at_BA` the positions
    in the block; `open_BA` marks the positions still open, `asked_BA` those that the asked step fills. `rank_BA` is the
    rank of stale confidence, `fresh_row_BA` the rows of the asked step at open positions.
    """

    row_BA: Tensor
    seen_BA: Tensor
    at_BA: Tensor
    open_BA: Tensor
    asked_BA: Tensor
    rank_BA: Tensor
    columns_BAC: Tensor
    fresh_row_BA: Tensor

    @classmethod
    def of(cls, steps: Ints, depths: Ints, *, order_SL: Tensor, first_row_S: Tensor, logodds_R: Tensor) -> Self:
        """The states in which the steps steps[i] .. steps[i] + depths[i] are filled (`order_SL` as in `fill_order`)."""
        order_BL = order_SL[torch.from_numpy(steps)].long()
        depth_B1 = torch.from_numpy(depths)[:, None]
        masked_BL = (order_BL >= 0) & (order_BL < BEYOND)
        depth_BL = torch.where(masked_BL & (order_BL > depth_B1), OPEN, order_BL.clamp(min=COMMITTED))
        count_B = masked_BL.sum(-1)
        width, last = int(count_B.max()), len(logodds_R) - 1
        seen_BA = torch.arange(width) < count_B[:, None]
        at_BA = torch.argsort((~masked_BL).byte(), dim=-1, stable=True)[:, :width]  # masked positions first, ascending
        row_BA = (first_row_S[torch.from_numpy(steps)][:, None] + torch.arange(width)).clamp(max=last)
        logodds_BL = torch.full(order_BL.shape, -math.inf).masked_scatter_(masked_BL, logodds_R[row_BA[seen_BA]])
        rank_BL = confidence_rank(logodds_BL, masked_BL)
        columns_BLC = path_columns(depth_BL, rank_BL)
        open_BA = (depth_BL == OPEN).gather(-1, at_BA)
        asked_B = torch.from_numpy(steps + depths + 1)  # the step whose state is the virtual one
        return cls(
            row_BA=row_BA,
            seen_BA=seen_BA,
            at_BA=at_BA,
            open_BA=open_BA,
            asked_BA=(order_BL == depth_B1 + 1).gather(-1, at_BA),
            rank_BA=rank_BL.gather(-1, at_BA),
            columns_BAC=columns_BLC.gather(1, at_BA[..., None].expand(-1, -1, columns_BLC.shape[-1])),
            fresh_row_BA=(first_row_S[asked_B][:, None] + open_BA.cumsum(-1) - 1).clamp(min=0, max=last),
        )
