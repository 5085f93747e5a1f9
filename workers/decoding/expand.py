"""Growing a draft tree from a prefix-conditional order scorer: the search for the budget's best states by mass.

`grow` is what scored drafters call. A scorer tells, for each virtual state, where the next commit will fall; tokens and
their factors come from the stale distribution, never from the scorer (decoding.md section 4).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree


@dataclass(frozen=True, slots=True)
class VirtualState:
    """A state the draft imagines, and how it got there.

    `state` is the root plus the draft's pairs; `known` the position of the known commit that made the root; `path` the
    positions the draft filled since the root, in order: `path[i]` at depth i + 1 (empty at the root).
    """

    state: BlockState
    known: int
    path: tuple[int, ...] = ()


class Scorer(Protocol):
    """Where the next commit of each virtual state falls."""

    def __call__(self, nodes: Sequence[VirtualState]) -> Tensor:
        """Probabilities `q_BL` (float, CPU), one row a node: each row sums to 1 over `node.state.open`, 0 elsewhere.

        Called once a level with all nodes of that level which can still enter the tree.
        """


def grow(
    root: BlockState,
    known: int,
    stale: Stale,
    *,
    budget: int,
    gamma: float,
    hedge: float,
    merge_states: bool,
    score: Scorer,
) -> DraftTree:
    """The `budget` states of largest mass below `root`, found level by level."""
    raise NotImplementedError
