"""The order model of SPOT: which position does the target commit next? A small Transformer encoder over one block.

Prefix-conditional: asked again for each virtual state, it gives `q(position | state)` over the masked positions
(arXiv 2610.22543; decoding.md section 4). About 0.63 M parameters at L = 32.

Shapes: B virtual states, A positions looked at (those masked in the stale state), W model width, F stale features, X
any leading shape.
"""

import math
from pathlib import Path
from typing import cast

from torch import Tensor, nn
from torch.nn import functional

from workers.models.encoder import BlockEncoder
from workers.models.facts import KIND, OrderConfig
from workers.models.order_shapes import STALE_FEATURES
from workers.models.weights import load_model, save_model


class OrderModel(BlockEncoder):
    """Encoder with one output a position. `embed_stale` once a round, then `encode` and `log_order` for each level.

    `dropout` matters to training only and is no part of a checkpoint.
    """

    def __init__(self, config: OrderConfig, *, dropout: float = 0.0) -> None:
        super().__init__(config, stale_features=STALE_FEATURES, dropout=dropout)
        self.config = config
        self.head = nn.Linear(config.width, 1)

    def embed_stale(self, features_XAF: Tensor) -> Tensor:
        """The stale part of the input, `stale_XAW`."""
        return cast(Tensor, self.stale(features_XAF))

    def log_order(self, hidden_BAW: Tensor, open_BA: Tensor) -> Tensor:
        """Log probabilities `logq_BA` of the next commit's position; -inf where `open_BA` is false.

        Every state needs at least one open position.
        """
        scores_BA = self.head(hidden_BAW).squeeze(-1)
        return functional.log_softmax(scores_BA.masked_fill(~open_BA, -math.inf), dim=-1)


def save_order_model(model: OrderModel, path: Path) -> str:
    """Write weights (float16) and configuration into the directory `path`; returns the checkpoint's digest."""
    return save_model(model, model.config, path)


def load_order_model(path: str | Path, *, block_length: int, device: str = "cpu") -> OrderModel:
    """The order model in the directory `path`, in float32 and evaluation mode.

    Raises ValueError when a file is missing, foreign or altered, or the model was trained for another block length.
    """
    return load_model(OrderModel, path, KIND, block_length=block_length, device=device)
