"""Self-speculative chain (SSD, arXiv 2510.04147): positions by stale confidence, tokens by the target's own stale rule.

Draft state j is the root plus the first j pairs. Order and tokens are frozen at the stale distribution: no model, one
guess. At T > 0 the stale token is the stale draw (with the shared noise where noise is coupled).
"""

from sweeps.spec import DrafterSpec
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.decoding.tree import DraftTree


class SsdDrafter:
    """Proposes one chain of at most `budget` states."""

    def __init__(self, budget: int) -> None:
        self.budget = budget

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        """The chain below `root`; a node's mass is the product of its tokens' stale confidences."""
        confidence_L = stale.logodds_L.tolist()
        order = sorted(root.open, key=lambda position: (-confidence_L[position], position))
        token_L, p_L = stale.drawn_ids_L2[:, 0].tolist(), stale.logodds_L.sigmoid().tolist()
        states, steps, masses = [root], list[tuple[Commit, ...]]([()]), [1.0]
        for position in order[: min(self.budget, len(root.open) - 1)]:
            steps.append((Commit(position, token_L[position]),))
            states.append(states[-1].fill(*steps[-1]))
            masses.append(masses[-1] * p_L[position])
        parents = tuple(range(-1, len(steps) - 1))
        return DraftTree(states=tuple(states), parents=parents, steps=tuple(steps), masses=tuple(masses))


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> SsdDrafter:
    """The chain drafter with the spec's budget, its only option."""
    return SsdDrafter(spec.budget)
