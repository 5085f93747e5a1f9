"""No drafts: draft-free decoding, one step of the target a forward. The denominator of every ratio."""

from sweeps.spec import DrafterSpec
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree, root_alone


class NoDrafter:
    """Proposes nothing."""

    budget = 0

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        """The root alone."""
        return root_alone(root)


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> NoDrafter:
    """The draft-free drafter; it has no options."""
    return NoDrafter()
