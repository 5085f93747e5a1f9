"""The contract of a drafter: from the root and the stale distribution to a draft tree.

A drafter never asks the target, nor sees its noise table or its future; it may only read what the last forward left
behind. A wrong draft costs time, never output. A target reader is shown the target's weights once, before any prompt;
an oracle is told the future first, and therefore is a bound and no method.
"""

from typing import Protocol, runtime_checkable

from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree
from workers.replay.future import Future
from workers.targets.base import Target


class Drafter(Protocol):
    """Proposes at most `budget` draft states (its own spec's D).

    `budget` 0 means draft-free: the drafter is never asked, and no stale distribution is made for it.
    """

    budget: int

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        """Drafts for `root`, which is `stale.state` plus its known next step: commits at the positions `known`.

        Returns a tree whose drafts are distinct (as paths, where states are not merged), are not full (a full state
        needs no forward), fill only open positions, and number at most the budget; parents before children, masses
        non-increasing along a path. Asked only when `root` has at least two open positions.

        Where `stale.beyond` is given one open position is enough, and a step may fill the block: the draft is then the
        next block's first state, `stale.beyond.after(filled)`, and has no children (None: it cannot be drafted).
        """


@runtime_checkable
class Oracle(Protocol):
    """Drafts from the target's real future. What it measures bounds drafters; it cannot decode an unseen prompt."""

    budget: int

    def knowing(self, future: Future) -> Drafter:
        """The drafter of one prompt, whose draft-free trajectory under the same rule and seed is `future`."""


@runtime_checkable
class TargetReader(Protocol):
    """A drafter that needs something of the target's weights, as its embeddings, and what a forward leaves beside the
    distribution (`Stale.hidden_LH`). So it drafts beside the target alone, never from what was recorded of one.
    """

    budget: int

    def reading(self, target: Target) -> Drafter:
        """The drafter for this target, which may be dropped with it. Raises ValueError when its model is not for it."""
