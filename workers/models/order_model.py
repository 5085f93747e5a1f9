"""The order model of SPOT: which position does the target commit next? A small Transformer encoder over one block.

Prefix-conditional: asked again for each virtual state, it gives `q(position | state)` over the masked positions
(arXiv 2610.22543; decoding.md section 4). The stale part of the input is embedded once a round and shared by all
virtual states; only the path part and the encoder run for each of them. Positions that were filled before the stale
forward carry no distribution and are left out: the path columns of the others say where they are, and a round costs
half as much. About 0.63 M parameters at L = 32.

Shapes: B virtual states, A positions looked at (those masked in the stale state), W model width, F stale features, C
path columns, X any leading shape.
"""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from torch.nn import functional

from workers.models.facts import CONFIG_FILE, WEIGHTS_FILE, OrderConfig, digest_of, inspect_order_model, read_config
from workers.models.features import POSITION
from workers.models.order_shapes import STALE_FEATURES, column_sizes
from workers.models.plain import plain


class EncoderLayer(nn.Module):
    """Pre-norm self-attention over all positions looked at, with a bias for each offset, then a GELU feed-forward."""

    def __init__(self, config: OrderConfig, dropout: float) -> None:
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


class OrderModel(nn.Module):
    """Encoder with one output a position. `embed_stale` once a round, then `encode` and `log_order` for each level.

    `dropout` matters to training only and is no part of a checkpoint.
    """

    offsets_C: Tensor

    def __init__(self, config: OrderConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        sizes = column_sizes(config.block_length)
        self.stale = nn.Linear(STALE_FEATURES, config.width)
        self.path = nn.EmbeddingBag(sum(sizes), config.width, mode="sum")
        nn.init.normal_(self.path.weight, std=1 / math.sqrt(len(sizes)))
        self.layers = nn.ModuleList(EncoderLayer(config, dropout) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, 1)
        starts = torch.tensor(sizes).cumsum(0) - torch.tensor(sizes)
        self.register_buffer("offsets_C", starts, persistent=False)

    def embed_stale(self, features_XAF: Tensor) -> Tensor:
        """The stale part of the input, `stale_XAW`."""
        return cast(Tensor, self.stale(features_XAF))

    def encode(self, stale_XAW: Tensor, columns_BAC: Tensor, seen_BA: Tensor | None = None) -> Tensor:
        """What the encoder makes of each position, `hidden_BAW`.

        `stale_XAW` has B or 1 leading rows; `seen_BA` is false at padding. Without it (None: there is none) all states
        are taken to look at the same positions.
        """
        states, length, columns = columns_BAC.shape
        index = (columns_BAC + self.offsets_C).view(states * length, columns)
        x_BAW = stale_XAW + self.path(index).view(states, length, -1)
        at_XA = columns_BAC[:, :, POSITION] if seen_BA is not None else columns_BAC[:1, :, POSITION]
        offsets_XAA = at_XA[:, :, None] - at_XA[:, None, :] + self.config.block_length - 1
        padding_B11A = None
        if seen_BA is not None:
            padding_B11A = torch.zeros(seen_BA.shape, device=seen_BA.device).masked_fill_(~seen_BA, -math.inf)[
                :, None, None
            ]
        for layer in self.layers:
            x_BAW = layer(x_BAW, offsets_XAA, padding_B11A)
        return cast(Tensor, self.norm(x_BAW))

    def log_order(self, hidden_BAW: Tensor, open_BA: Tensor) -> Tensor:
        """Log probabilities `logq_BA` of the next commit's position; -inf where `open_BA` is false.

        Every state needs at least one open position.
        """
        scores_BA = self.head(hidden_BAW).squeeze(-1)
        return functional.log_softmax(scores_BA.masked_fill(~open_BA, -math.inf), dim=-1)


def save_order_model(model: OrderModel, path: Path) -> str:
    """Write weights (float16) and configuration into the directory `path`; returns the checkpoint's digest."""
    path.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().cpu().half().contiguous() for name, tensor in model.state_dict().items()}
    weights = save_tensors(tensors)
    settings = replace(model.config, digest="")
    config = replace(settings, digest=digest_of(settings, weights))
    (path / WEIGHTS_FILE).write_bytes(weights)
    (path / CONFIG_FILE).write_bytes(json.dumps(plain(config), indent=2).encode() + b"\n")
    return config.digest


def load_order_model(path: str | Path, *, block_length: int, device: str = "cpu") -> OrderModel:
    """The order model in the directory `path`, in float32 and evaluation mode.

    Raises ValueError when a file is missing, foreign or altered, or the model was trained for another block length.
    """
    facts = inspect_order_model(path)
    if facts.block_length != block_length:
        raise ValueError(
            f"order model {path}: block_length is {facts.block_length}: allowed is the decoder's {block_length}"
        )
    model = OrderModel(read_config(facts.path))
    tensors = load_tensors((facts.path / WEIGHTS_FILE).read_bytes())
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})  # names and shapes were checked
    return model.to(device).eval()
