"""A budget chosen each round: of the drafts found, verify the first D that are worth their forward (decoding.md 8).

Masses are taken as chances, so a round is expected to commit 1 + the sum of the verified masses; it takes the forward
of 1 + D states and the drafter. What judging a state costs is paid a commit, on whichever round, and moves no maximum.
"""

from collections.abc import Sequence
from functools import lru_cache

from sweeps.spec import DrafterSpec
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree
from workers.drafters.base import Drafter
from workers.models.cost_curve import CostCurve, find_cost_curve, read_cost_curve


def best_drafts(masses_D: Sequence[float], forward_seconds_N: Sequence[float], drafter_seconds: float) -> int:
    """The D that maximises (1 + sum of the first D masses) / (seconds of 1 + D states + drafter's); the least one.

    `masses_D` are those of the drafts in rank order, `forward_seconds_N[n]` belongs to n + 1 states.
    """
    best, most, commits = 0, 1.0 / (forward_seconds_N[0] + drafter_seconds), 1.0
    for drafts, mass in enumerate(masses_D, start=1):
        commits += mass
        rate = commits / (forward_seconds_N[drafts] + drafter_seconds)
        if rate > most:
            best, most = drafts, rate
    return best


class CostAwareDrafter:
    """Cuts the trees of another drafter, whose nodes must be in rank order with masses that are chances."""

    def __init__(self, drafter: Drafter, curve: CostCurve) -> None:
        self.drafter = drafter
        self.budget = drafter.budget
        self.forward_seconds = lru_cache(maxsize=None)(curve.forward_seconds)
        self.drafter_seconds = curve.drafter_seconds(drafter.budget)

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        """The drafts of the other drafter that are worth it; at a block's start `stale.start` is the prefix length."""
        tree = self.drafter.propose(root, known, stale)
        return tree.cut(best_drafts(tree.masses[1:], self.forward_seconds(stale.start), self.drafter_seconds))


def cost_aware(drafter: Drafter, spec: DrafterSpec, *, block_length: int) -> Drafter:
    """`drafter` itself, or one that cuts its trees by the curve of `spec.cost`.

    Raises ValueError when the curve is missing, is for other blocks or too few states, or not the one of a digest that
    `spec` names.
    """
    if not spec.cost:
        return drafter
    curve = read_cost_curve(find_cost_curve(spec.cost))
    if spec.cost_digest and curve.digest != spec.cost_digest:
        raise ValueError(
            f"drafter {spec.name}: its cost curve has digest {curve.digest}, the cell says {spec.cost_digest}"
        )
    if curve.block_length != block_length:
        raise ValueError(
            f"drafter {spec.name}: its cost curve is for blocks of {curve.block_length}: asked is {block_length}"
        )
    if curve.budget_max < drafter.budget:
        raise ValueError(
            f"drafter {spec.name}: budget is {drafter.budget}: allowed by its cost curve is up to {curve.budget_max}"
        )
    return CostAwareDrafter(drafter, curve)
