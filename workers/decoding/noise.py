"""Gumbel noise as a pure function of (seed, absolute position, token): a counter-based generator.

Any shape, any order of asking and any device give the same bits. The hash (splitmix64) is integer arithmetic, and the
logarithm is written out in additions, multiplications and divisions, which IEEE 754 rounds alike everywhere; a
library's `log` may differ in its last bit between a vector and its tail, or between a CPU and a GPU.

Shapes: P positions, V vocabulary, X any shape.
"""

import hashlib
import math

import torch
from torch import Tensor

from sweeps.spec import DecodeSpec

GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
WORD = (1 << 64) - 1
SERIES = tuple(1.0 / (2 * k + 1) for k in range(13))  # atanh(s)/s in powers of s*s; |s| < 0.172 leaves < 1e-20
DRAFTER_STREAM, TARGET_STREAM = 1, 2


class BlockNoise:
    """The noise of one block: one shared table (coupled), fresh draws (independent), or none (T = 0).

    Independent noise is keyed by the forward and the node too, so that a run can be repeated; the drafter has a stream
    of its own. A drafter that knew the target's could choose which draws are made, and so bend the distribution.

    The shared table samples what fresh draws sample where positions do not depend on draws (`confidence: top1`): each
    number then decides once. With `confidence: sampled` a position that was passed over for an unlikely draw keeps that
    draw, so runs are lossless against their draft-free ones, but both follow a law of their own.
    """

    def __init__(self, spec: DecodeSpec, seed: int, positions_L: Tensor, vocab_size: int) -> None:
        self.seed, self.positions_L, self.vocab_size = seed, positions_L, vocab_size
        self.drawn = spec.temperature > 0
        self.coupled = spec.noise == "coupled"
        self.table_LV = gumbel(seed, positions_L, vocab_size) if self.drawn and self.coupled else None

    def target(self, forward: int, node: int, open: tuple[int, ...]) -> Tensor | None:
        """What the target draws with at the open positions of a node: `noise_RV`, None at T = 0."""
        if self.table_LV is not None:
            return self.table_LV[list(open)]
        return self._fresh(TARGET_STREAM, forward, node, open) if self.drawn else None

    def drafter(self, forward: int, open: tuple[int, ...]) -> Tensor | None:
        """The drafter's own `noise_RV`; None where it shares the target's draws (coupled, or T = 0)."""
        return self._fresh(DRAFTER_STREAM, forward, 0, open) if self.drawn and not self.coupled else None

    def _fresh(self, stream: int, forward: int, node: int, open: tuple[int, ...]) -> Tensor:
        return gumbel(mixed(self.seed, stream, forward, node), self.positions_L[list(open)], self.vocab_size)


def sample_seed(seed: int, prompt_id: str) -> int:
    """The seed of one prompt's generation, whoever decodes it, and when; prompts with different ids share no noise."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{prompt_id}".encode()).digest()[:8], "big") >> 1


def mixed(seed: int, *words: int) -> int:
    """A 64-bit word (unsigned) that depends on `seed` and every one of `words`, in order."""
    value = _mix(seed & WORD)
    for word in words:
        value = _mix((value + (word + 1) * GOLDEN) & WORD)
    return value


def gumbel(seed: int, positions_P: Tensor, vocab_size: int) -> Tensor:
    """Standard Gumbel noise `G_PV` (float64) at absolute positions, for every token, on the positions' device.

    `G = -log(-log u)` with u uniform on a grid of 2**52 midpoints in (0, 1): always finite, within [-3.61, 36.74].
    """
    key_P = _mix_tensor((positions_P.to(torch.int64) + 1) * _signed(GOLDEN) + _signed(mixed(seed)))
    token_V = torch.arange(1, vocab_size + 1, device=positions_P.device)
    bits_PV = _mix_tensor(key_P[:, None] + token_V * _signed(GOLDEN))
    u_PV = (((bits_PV >> 12) & ((1 << 52) - 1)).to(torch.float64) + 0.5) * 2.0**-52
    return log(log(u_PV).neg_()).neg_()


def log(x_X: Tensor) -> Tensor:
    """Natural logarithm of positive normal float64 numbers, the same bits on every device and for every shape."""
    bits_X = x_X.contiguous().view(torch.int64)
    mantissa_X = ((bits_X & ((1 << 52) - 1)) | (1023 << 52)).view(torch.float64)
    large_X = mantissa_X > math.sqrt(2.0)
    exponent_X = ((bits_X >> 52) - 1023 + large_X).to(torch.float64)
    mantissa_X = torch.where(large_X, mantissa_X * 0.5, mantissa_X)
    s_X = (mantissa_X - 1.0) / (mantissa_X + 1.0)
    square_X = s_X * s_X
    series_X = torch.full_like(s_X, SERIES[-1])
    for coefficient in SERIES[-2::-1]:
        series_X.mul_(square_X).add_(coefficient)
    return s_X.mul_(2.0).mul_(series_X).add_(exponent_X.mul_(math.log(2.0)))


def _mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * FIRST) & WORD
    value = ((value ^ (value >> 27)) * SECOND) & WORD
    return value ^ (value >> 31)


def _mix_tensor(value_X: Tensor) -> Tensor:
    value_X = (value_X ^ _shifted(value_X, 30)) * _signed(FIRST)  # int64 products wrap, as the hash wants
    value_X = (value_X ^ _shifted(value_X, 27)) * _signed(SECOND)
    return value_X ^ _shifted(value_X, 31)


def _shifted(value_X: Tensor, bits: int) -> Tensor:
    return (value_X >> bits) & ((1 << (64 - bits)) - 1)  # a logical shift: int64's own copies the sign


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
