"""A drafter that breaks its contract, for the test that the checks see it: its drafts hide a position that is open."""

from dataclasses import replace

from sweeps.spec import DrafterSpec
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree
from workers.drafters.ssd import SsdDrafter


class HidingDrafter(SsdDrafter):
    """The chain of `ssd`, but in every draft the first open position is missing from those that may be filled.

    The states' tokens are right, so that they are walked through; the target then cannot commit where it wants to.
    """

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        tree = super().propose(root, known, stale)
        hiding = tuple(BlockState(state.tokens, state.open[1:] or state.open) for state in tree.states[1:])
        return replace(tree, states=(root, *hiding))


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> HidingDrafter:
    return HidingDrafter(spec.budget)
