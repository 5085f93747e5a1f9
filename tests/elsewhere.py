"""A device that is not the CPU, where there is none: torch's `meta`, whose tensors have a place and no values.

An operation that mixes it with the CPU raises as it would on a GPU. What the host reads from it (`cpu`, `tolist`,
`int`, `float`, `nonzero`) is made up here and counted by name: each such read makes a host wait for a real device.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

DEVICE = "meta"
MADE_UP = 0.5  # as a probability it lets trees grow; as an id it is 0


def made_up(tensor: Tensor) -> Tensor:
    """A tensor on the CPU of the same shape and dtype, with a value in every place."""
    return torch.full(tensor.shape, MADE_UP, dtype=torch.float64).to(tensor.dtype)


@contextmanager
def elsewhere() -> Iterator[Counter[str]]:
    """Within, tensors on `DEVICE` can be read; yields how often each kind of read was made."""
    reads: Counter[str] = Counter()
    real = {name: getattr(Tensor, name) for name in ("cpu", "tolist", "__int__", "__float__", "__bool__", "nonzero")}

    def reading(name: str) -> Any:
        def read(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            if not self.is_meta:
                return real[name](self, *args, **kwargs)
            reads[name] += 1
            if name == "nonzero":
                return torch.zeros((0, self.ndim), dtype=torch.int64, device=self.device)
            host = made_up(self)
            return host if name == "cpu" else real[name](host)

        return read

    with patch.multiple(Tensor, **{name: reading(name) for name in real}):
        yield reads
