"""What a set model sees beside the order model's features: tau, the target's hidden states, the candidates.

The same functions serve the drafter (a few virtual states of one stale distribution) and training (many pairs), so both
see the same numbers (decoding.md section 6).

Shapes: X any leading shape, A positions masked in the stale state, H the target's width, K kept candidates, C the best
16 of them.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from workers.models.features import LOG_FLOOR
from workers.models.set_facts import CANDIDATES

EPSILON = 1e-6
ABSENT = -1  # the id of a candidate that a small vocabulary lacks


def with_tau(features_XAF: Tensor, limit_X: Tensor) -> Tensor:
    """The order model's stale features with one more column: the log-odds of tau, the same at all positions."""
    column_XA1 = (limit_X / 8)[..., None, None].expand(*features_XAF.shape[:-1], 1)
    return torch.cat((features_XAF, column_XA1.to(features_XAF)), dim=-1)


def evened(vectors_XH: Tensor) -> Tensor:
    """Vectors of a target in float32, scaled to a root mean square of 1: widths and layers differ by factors of 100."""
    vectors_XH = vectors_XH.float()
    return vectors_XH * torch.rsqrt(vectors_XH.square().mean(-1, keepdim=True) + EPSILON)


def candidates_of(ids_XK: Tensor, logprobs_XK: Tensor) -> tuple[Tensor, Tensor]:
    """The best 16 candidates: `ids_XC` (ABSENT where there are fewer that can be had) and their log probabilities
    (float32, cut at the floor of the features).
    """
    missing = max(0, CANDIDATES - ids_XK.shape[-1])
    ids_XC = functional.pad(ids_XK[..., :CANDIDATES].long(), (0, missing), value=ABSENT)
    logprobs_XC = functional.pad(logprobs_XK[..., :CANDIDATES].float(), (0, missing), value=-math.inf)
    ids_XC = ids_XC.masked_fill(logprobs_XC == -math.inf, ABSENT)
    return ids_XC, logprobs_XC.clamp(LOG_FLOOR, 0.0)


def shares(ids_XC: Tensor, logprobs_XC: Tensor) -> Tensor:
    """Probabilities of the candidates among themselves: what their embeddings are weighed with; absent ones have 0."""
    return logprobs_XC.masked_fill(ids_XC == ABSENT, -torch.inf).softmax(-1)
