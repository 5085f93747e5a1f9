"""What an order model's configuration says of its weights, without torch: so that planning can tell what does not fit.

Shapes: W model width, F stale features, C path columns, H heads, L block length.
"""

TOP_K = 32  # candidates of the stale distribution that are looked at
STATISTICS = 6  # entropy, margin, log(1 - p1), log-odds, mass outside the top K, rank of p1
STALE_FEATURES = 2 * TOP_K + STATISTICS
DEPTH_CAP = 12  # deeper draft commits share one row of the table


def column_sizes(block_length: int) -> tuple[int, ...]:
    """Number of values of each path column, in the order of `features.path_columns`."""
    length = block_length
    return (5, DEPTH_CAP + 1, 2 * length - 1, length + 1, length + 1, length + 1, length, length + 1)


def weight_shapes(
    *, block_length: int, layers: int, width: int, heads: int, feedforward: int
) -> dict[str, tuple[int, ...]]:
    """Every tensor of an order model's weight file and its shape."""

    def linear(name: str, out: int, into: int) -> dict[str, tuple[int, ...]]:
        return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}

    def norm(name: str) -> dict[str, tuple[int, ...]]:
        return {f"{name}.weight": (width,), f"{name}.bias": (width,)}

    shapes = {**linear("stale", width, STALE_FEATURES), "path.weight": (sum(column_sizes(block_length)), width)}
    for number in range(layers):
        layer = f"layers.{number}"
        shapes |= {
            **norm(f"{layer}.norm_attention"),
            **linear(f"{layer}.qkv", 3 * width, width),
            **linear(f"{layer}.out", width, width),
            f"{layer}.bias.weight": (2 * block_length - 1, heads),
            **norm(f"{layer}.norm_mlp"),
            **linear(f"{layer}.up", feedforward, width),
            **linear(f"{layer}.down", width, feedforward),
        }
    return {**shapes, **norm("norm"), **linear("head", 1, width)}
