"""What a run of the checks was asked for, and the sizes that follow from it.

`--small` does all of it at sizes that a CPU manages in seconds, so that the script is known to work before it meets a
GPU. Times of such a run say nothing about a GPU, and their file is named after the CPU.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.catalog import TARGETS, ZOO
from workers.targets.published import SDAR_1_7B, SDAR_8B
from workers.targets.shape import BodyShape

Row = dict[str, Any]
Rows = Iterator[Row]
BLOCK = 32

TINY = BodyShape(
    vocab_size=300,
    hidden=64,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=16,
    mlp=128,
    norm_eps=1e-6,
    rope_theta=1e6,
    tied=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One run. `targets` and `drafters` narrow the zoo's part down (empty: all of them)."""

    device: str
    small: bool
    seed: int
    targets: tuple[str, ...] = ()
    drafters: tuple[str, ...] = ()

    @property
    def on_cuda(self) -> bool:
        """Whether CUDA's own clocks and counters can be used."""
        return self.device.startswith("cuda")

    @property
    def zoo(self) -> tuple[str, ...]:
        """Names of the shipped targets to check."""
        shipped = [name for name, entry in TARGETS.items() if Path(entry.path).is_relative_to(ZOO)]
        return tuple(name for name in shipped if not self.targets or name in self.targets)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Dtypes of the shipped targets."""
        return ("float32", "bfloat16")

    @property
    def prompts(self) -> int:
        """Prompts of each tiny task."""
        return 1 if self.small else 2

    @property
    def new_tokens(self) -> int:
        """Tokens generated for a prompt."""
        return 32 if self.small else 64

    @property
    def shapes(self) -> dict[str, BodyShape]:
        """Bodies with random weights whose forward is timed."""
        return {"tiny": TINY} if self.small else {"SDAR-1.7B": SDAR_1_7B.shape, "SDAR-8B": SDAR_8B.shape}

    @property
    def budgets(self) -> tuple[int, ...]:
        """Numbers of drafts D beside the root, for drafters."""
        return (4, 8) if self.small else (4, 8, 12, 20)

    @property
    def prefixes(self) -> tuple[int, ...]:
        """Lengths M of the cached prefix."""
        return (32,) if self.small else (128, 512)

    @property
    def repeats(self) -> int:
        """Timed repeats of everything."""
        return 3 if self.small else 20


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock; parts look at it between two rows."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """So many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self.at - time.monotonic())
