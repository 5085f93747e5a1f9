"""The two floors of a forward, both measured in the same run: bytes over copy bandwidth, operations over matrix rate.

A forward must at least read its layers' weights once and do its products; what it takes beyond the larger of both is
launches, attention, norms and the host.
"""

from dataclasses import dataclass
from functools import partial
from math import prod

import torch

from tests.gpu.clock import seconds_of, spread
from tests.gpu.setting import Row, Setting
from workers.targets.shape import BodyShape

BYTES = 2  # bfloat16


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What the device was measured to do: bytes moved a second (read and written), operations a second."""

    bytes_s: float
    operations_s: float

    def floors(self, shape: BodyShape, positions: int, prefix: int, block: int) -> dict[str, float]:
        """Seconds of both floors for so many positions over a prefix, in bfloat16."""
        return {
            "bytes_floor_s": layer_weights(shape) * BYTES / self.bytes_s,
            "operations_floor_s": operations(shape, positions, prefix, block) / self.operations_s,
        }


def layer_weights(shape: BodyShape) -> int:
    """Number of weights that a forward to hidden states reads: all but embedding and head."""
    return sum(prod(size) for name, size in shape.weights() if "layers" in name or name == "model.norm.weight")


def operations(shape: BodyShape, positions: int, prefix: int, block: int) -> int:
    """Multiplications and additions of the layers' products and of attention to the prefix and the own copy."""
    matrices = sum(prod(size) for name, size in shape.weights() if "layers" in name and len(size) == 2)
    attention = 4 * shape.layers * shape.heads * shape.head_dim * (prefix + block)
    return positions * (2 * matrices + attention)


def measured_rates(setting: Setting) -> tuple[Rates, Row]:
    """The device's rates and the row that tells of them."""
    size, width = (1 << 20, 256) if setting.small else (1 << 31, 8192)
    source = torch.zeros(size, dtype=torch.uint8, device=setting.device)
    copying = spread(seconds_of(partial(torch.empty_like(source).copy_, source), setting))
    del source
    left, right = (torch.randn(width, width, device=setting.device).to(torch.bfloat16) for _ in range(2))
    product = torch.empty_like(left)
    multiplying = spread(seconds_of(lambda: torch.mm(left, right, out=product), setting))
    rates = Rates(bytes_s=2 * size / copying["median_s"], operations_s=2 * width**3 / multiplying["median_s"])
    row = {
        "kind": "rates",
        "copied_bytes": size,
        "copy": copying,
        "bytes_s": rates.bytes_s,
        "matrix_width": width,
        "matrix_dtype": "bfloat16",
        "product": multiplying,
        "operations_s": rates.operations_s,
    }
    return rates, row
