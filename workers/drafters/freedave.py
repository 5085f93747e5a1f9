"""FreeDave (arXiv 2510.00294) where the target commits one position a step: the draft states of `ssd`, walked alike.

Its drafts are the same nested states, and its walk goes on at the largest drafted state equal to the target's next one.
With one commit a step that is the next state of the chain, so it equals `ssd` state by state and forward by forward.
(Only where a step commits a whole set can its walk jump over drafted states.) The public code counts the known next
commit as its first draft row: its `draft_steps` d is budget d - 1 here.
"""

from sweeps.spec import DrafterSpec
from workers.drafters.ssd import SsdDrafter


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> SsdDrafter:
    """The chain drafter with the spec's budget, its only option."""
    return SsdDrafter(spec.budget)
