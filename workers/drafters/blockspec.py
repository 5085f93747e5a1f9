"""BlockSpec-style tree, from the abstract (OpenReview hmAviop5rm): wide over position and token, frozen, breadth first.

Only the abstract is public, so the expansion is ours. A child's mass is its parent's times a position factor (the stale
confidence, renormalised over the node's open positions) times a token factor (`token_factors`, both tokens always
offered); both are frozen at the stale distribution, no model is asked. Each level keeps its `width_of` heaviest states
before the next one begins, until the budget is spent; orders that lead to one state add up, as in SPOT's own tree.
"""

import math
from collections.abc import Sequence

import numpy as np

from sweeps.spec import DrafterSpec
from workers.decoding.expand import Floats, Node, children_of, level_floor, root_node, token_factors, tree_of
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree


class BlockSpecDrafter:
    """Proposes levels of equal width, at most `budget` states in all."""

    def __init__(self, budget: int) -> None:
        self.budget = budget

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        """The tree below `root`, in breadth-first order."""
        ids_L2, factors_L2 = token_factors(stale, hedge=1.0)
        confidence_L: Floats = stale.logodds_L.sigmoid().numpy()
        level, chosen = [root_node(root, known[0])], list[Node]()
        for depth in range(1, len(root.open)):  # a draft of depth `len(root.open)` would be full
            room = min(width_of(self.budget), self.budget - len(chosen))
            if not room:
                break
            reach_B = np.array([node.reach for node in level])
            offers_BL2 = reach_B[:, None, None] * frozen_order(confidence_L, level)[:, :, None] * factors_L2
            floor = level_floor(level, offers_BL2, room, depth)
            children = children_of(level, offers_BL2, ids_L2, floor, merge_states=True)
            level = sorted(children, key=lambda node: node.key)[:room]
            chosen += level
        return tree_of(root, chosen, calls=0)


def width_of(budget: int) -> int:
    """States a level: a tree about twice as deep as wide, never a chain (budgets 4, 8, 12: 2; 20: 3)."""
    return max(2, round(math.sqrt(budget / 2)))


def frozen_order(confidence_L: Floats, level: Sequence[Node]) -> Floats:
    """Where each node's next commit would fall, `q_BL`: the stale confidences of its open positions, summing to 1."""
    q_BL = np.zeros((len(level), len(confidence_L)))
    for row, node in enumerate(level):
        open = list(node.virtual.state.open)
        q_BL[row, open] = confidence_L[open] / confidence_L[open].sum()
    return q_BL


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> BlockSpecDrafter:
    """The frozen tree with the spec's budget, its only option."""
    return BlockSpecDrafter(spec.budget)
