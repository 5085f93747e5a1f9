"""The contract of a drafter: from the root and the stale distribution to a draft tree.

A drafter never sees the target, its noise table or its future; it may only read what the last forward left behind. A
wrong draft costs time, never output.
"""

from typing import Protocol

from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree


class Drafter(Protocol):
    """Proposes at most `budget` draft states (its own spec's D).

    `budget` 0 means draft-free: the drafter is never asked, and no stale distribution is made for it.
    """

    budget: int

    def propose(self, root: BlockState, known: int, stale: Stale) -> DraftTree:
        """Drafts for `root`, which is `stale.state` plus its known next commit at position `known`.

        Returns a tree whose drafts are distinct (as paths, where states are not merged), are not full (a full state
        needs no forward), fill only open positions, and number at most the budget; parents before children, masses
        non-increasing along a path. Asked only when `root` has at least two open positions.
        """
