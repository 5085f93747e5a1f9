"""What a model's configuration says of its weights, without torch: so that planning can tell what does not fit.

The order model and the set model are the same encoder over a block, with inputs and outputs of their own.

Shapes: W model width, F stale features, C path columns, H heads, L block length.
"""

from typing import Protocol

TOP_K = 32  # candidates of the stale distribution that are looked at
STATISTICS = 6  # entropy, margin, log(1 - p1), log-odds, mass outside the top K, rank of p1
STALE_FEATURES = 2 * TOP_K + STATISTICS
DEPTH_CAP = 12  # deeper draft commits share one row of the table


def column_sizes(block_length: int) -> tuple[int, ...]:
    """Number of values of each path column, in the order of `features.path_columns`."""
    length = block_length
    return (5, DEPTH_CAP + 1, 2 * length - 1, length + 1, length + 1, length + 1, length, length + 1)


class EncoderShape(Protocol):
    """The sizes of an encoder over one block."""

    @property
    def block_length(self) -> int:
        """Positions of a block."""

    @property
    def layers(self) -> int:
        """Encoder layers."""

    @property
    def width(self) -> int:
        """Model width."""

    @property
    def heads(self) -> int:
        """Attention heads."""

    @property
    def feedforward(self) -> int:
        """Width between the two feed-forward projections."""


def linear(name: str, out: int, into: int) -> dict[str, tuple[int, ...]]:
    """The tensors of a projection."""
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def encoder_shapes(shape: EncoderShape, stale_features: int) -> dict[str, tuple[int, ...]]:
    """The tensors of an encoder whose stale input has so many features."""
    width, feedforward = shape.width, shape.feedforward

    def norm(name: str) -> dict[str, tuple[int, ...]]:
        return {f"{name}.weight": (width,), f"{name}.bias": (width,)}

    shapes = {**linear("stale", width, stale_features), "path.weight": (sum(column_sizes(shape.block_length)), width)}
    for number in range(shape.layers):
        layer = f"layers.{number}"
        shapes |= {
            **norm(f"{layer}.norm_attention"),
            **linear(f"{layer}.qkv", 3 * width, width),
            **linear(f"{layer}.out", width, width),
            f"{layer}.bias.weight": (2 * shape.block_length - 1, shape.heads),
            **norm(f"{layer}.norm_mlp"),
            **linear(f"{layer}.up", feedforward, width),
            **linear(f"{layer}.down", width, feedforward),
        }
    return {**shapes, **norm("norm")}


def weight_shapes(shape: EncoderShape) -> dict[str, tuple[int, ...]]:
    """Every tensor of an order model's weight file and its shape."""
    return {**encoder_shapes(shape, STALE_FEATURES), **linear("head", 1, shape.width)}
