"""What a scorer of commit sets answers: which positions the target's next step fills from a virtual state, and how.

The tree of sets asks, a scorer (a trained set model, or any other) answers, whole batches of states at a time. Shapes:
B states, L block width.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from workers.decoding.acceptance import Step
from workers.decoding.state import BlockState


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNode:
    """A virtual state below the root, and the drafted steps that lead to it, in order.

    `state` is what they make of the root (which it is itself where `path` is empty); the root is the stale state plus
    the known step, at the positions `known`.
    """

    state: BlockState
    known: tuple[int, ...]
    path: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetScores:
    """The target's next step from each of B states, position by position.

    `include_BL` is the probability that the step fills the position (0 where it is not open in that state), `token_BL`
    the likeliest token there (its id) and `sure_BL` the probability that it is that token, given that it is filled.
    """

    include_BL: Tensor
    token_BL: Tensor
    sure_BL: Tensor


SetScorer = Callable[[Sequence[SetNode]], SetScores]
