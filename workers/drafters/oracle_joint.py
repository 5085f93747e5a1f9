"""Joint oracle: the target's real next commits, positions and tokens (decoding.md section 5).

No drafter of the same budget needs fewer forwards. A walk steps through drafts only and never into a full state, so a
round commits at most min(D, o - 1) + 1 of a root's o open positions, and the first forward of a block commits one. This
chain commits exactly that many each time: a block of n positions takes 1 + ceil((n - 1) / (D + 1)) forwards.
"""

from sweeps.spec import DrafterSpec
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.drafters.oracle import ChainOracle


def true_commits(root: BlockState, stale: Stale, coming: tuple[Commit, ...]) -> tuple[Commit, ...]:
    """What comes, as it comes."""
    return coming


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> ChainOracle:
    """The oracle with the spec's budget, its only option."""
    return ChainOracle(spec.budget, true_commits)
