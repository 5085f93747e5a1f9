"""A small Transformer encoder over the masked positions of one block: what the order model and the set model share.

The stale part of the input is embedded once a round and shared by all virtual states; the path part is a sum of table
rows, one for each path column. Positions that were filled before the stale forward carry no distribution and are left
out: the path columns of the others say where they are, and a round costs half as much.

Shapes: B virtual states, A positions looked at (those masked in the stale state), W model width, F stale features, C
path columns, H heads, X any leading shape.
"""

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.models.features import POSITION
from workers.models.order_shapes import EncoderShape, column_sizes


class EncoderLayer(nn.Module):
    """Pre-norm self-attention over all positions looked at, with a bias for each offset, then a GELU feed-forward."""

    def __init__(self, config: EncoderShape, dropout: float) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm_attention = nn.LayerNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.bias = nn.Embedding(2 * config.block_length - 1, config.heads)
        nn.init.zeros_(self.bias.weight)
        self.norm_mlp = nn.LayerNorm(config.width)
        self.up = nn.Linear(config.width, config.feedforward)
        self.down = nn.Linear(config.feedforward, config.width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BAW: Tensor, offsets_XAA: Tensor, padding_B11A: Tensor | None) -> Tensor:
        """One layer; the shape stays. `padding_B11A` is -inf at padding, else 0 (None: there is none)."""
        states, length, width = x_BAW.shape
        bias_XHAA = self.bias(offsets_XAA).permute(0, 3, 1, 2)
        qkv = self.qkv(self.norm_attention(x_BAW)).view(states, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mask_XHAA = bias_XHAA if padding_B11A is None else bias_XHAA + padding_B11A
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask_XHAA)
        x_BAW = x_BAW + self.dropout(self.out(mixed.transpose(1, 2).reshape(states, length, width)))
        return x_BAW + cast(Tensor, self.dropout(self.down(functional.gelu(self.up(self.norm_mlp(x_BAW))))))


class BlockEncoder(nn.Module):
    """Input projection of the stale features, path table, layers and a last norm.

    `dropout` matters to training only and is no part of a checkpoint.
    """

    offsets_C: Tensor

    def __init__(self, config: EncoderShape, *, stale_features: int, dropout: float) -> None:
        super().__init__()
        self.block_length = config.block_length
        sizes = column_sizes(config.block_length)
        self.stale = nn.Linear(stale_features, config.width)
        self.path = nn.EmbeddingBag(sum(sizes), config.width, mode="sum")
        nn.init.normal_(self.path.weight, std=1 / math.sqrt(len(sizes)))
        self.layers = nn.ModuleList(EncoderLayer(config, dropout) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        starts = torch.tensor(sizes).cumsum(0) - torch.tensor(sizes)
        self.register_buffer("offsets_C", starts, persistent=False)

    def encode(self, stale_XAW: Tensor, columns_BAC: Tensor, seen_BA: Tensor | None = None) -> Tensor:
        """What the encoder makes of each position, `hidden_BAW`.

        `stale_XAW` has B or 1 leading rows; `seen_BA` is false at padding. Without it (None: there is none) all states
        are taken to look at the same positions.
        """
        states, length, columns = columns_BAC.shape
        index = (columns_BAC + self.offsets_C).view(states * length, columns)
        x_BAW = stale_XAW + self.path(index).view(states, length, -1)
        at_XA = columns_BAC[:, :, POSITION] if seen_BA is not None else columns_BAC[:1, :, POSITION]
        offsets_XAA = at_XA[:, :, None] - at_XA[:, None, :] + self.block_length - 1
        padding_B11A = None
        if seen_BA is not None:
            padding_B11A = torch.zeros(seen_BA.shape, device=seen_BA.device).masked_fill_(~seen_BA, -math.inf)[
                :, None, None
            ]
        for layer in self.layers:
            x_BAW = layer(x_BAW, offsets_XAA, padding_B11A)
        return cast(Tensor, self.norm(x_BAW))
