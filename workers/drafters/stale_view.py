"""What a model that drafts sees of one round's stale distribution: the positions masked in it, and how virtual states
look on it.

Shapes: B virtual states, L block width, A positions masked in the stale state, F stale features, C path columns.
"""

import torch
from torch import Tensor

from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.models.features import BEYOND, COMMITTED, OPEN, confidence_rank, path_columns, stale_features


class StaleView:
    """What no draft changes: the open positions, fill depths `depth_L`, ranks of confidence and `features_AF`."""

    def __init__(self, stale: Stale) -> None:
        self.open = torch.tensor(stale.state.open)
        self.depth_L = depths_of(stale.state)
        self.rank_L = confidence_rank(stale.logodds_L, self.depth_L == OPEN)
        rows = (stale.probs_LK, stale.logprobs_LK, stale.logodds_L, stale.entropy_L, stale.outside_L, self.rank_L)
        self.features_AF = stale_features(*(row[self.open] for row in rows), block_length=len(self.depth_L))

    def columns(self, depth_BL: Tensor) -> Tensor:
        """Path columns `columns_BAC` of virtual states with these fill depths."""
        return path_columns(depth_BL, self.rank_L.expand_as(depth_BL))[:, self.open]

    def spread(self, values_BA: Tensor) -> Tensor:
        """Values of the positions looked at, zero elsewhere in the block."""
        zeros_BL = torch.zeros(len(values_BA), len(self.depth_L), dtype=values_BA.dtype)
        return zeros_BL.index_copy_(1, self.open, values_BA)


def depths_of(state: BlockState) -> Tensor:
    """Fill depths `depth_L` of a forwarded state, before any further commit: OPEN, COMMITTED or BEYOND."""
    tokens = torch.tensor(state.tokens)
    depth_L = torch.where(tokens == tokens[state.open[0]], BEYOND, COMMITTED)  # an open position holds the mask id
    depth_L[[*state.open]] = OPEN
    return depth_L
