"""FreeDave (arXiv 2510.00294): the draft states of `ssd`, whose walk goes to the target's next state wherever it is.

Its drafts are nested states, one position apart, and its walk goes on at the largest drafted state equal to the
target's next one: there is one at most, since nested states differ. With one commit a step that is the next state of
the chain, so it equals `ssd` state by state and forward by forward. A step of several commits jumps over states of the
chain.

That nested states are one position apart under the threshold rule too is our reading: it is what the target's own rule
makes of the stale distribution, where the known step took every position above tau, so that each further step takes the
single most confident one. The public code counts the known next step as its first draft row: its `draft_steps` d is
budget d - 1 here.
"""

from sweeps.spec import DrafterSpec
from workers.drafters.ssd import SsdDrafter


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> SsdDrafter:
    """The chain drafter with the spec's budget, its only option."""
    return SsdDrafter(spec.budget)
