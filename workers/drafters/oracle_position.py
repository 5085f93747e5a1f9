"""Position oracle: the target's real next positions, filled with the stale tokens (decoding.md section 5).

What a drafter could reach that knew the commit order and predicted no token, which is what SPOT predicts. The chain
stops where the stale token is not the one that the target will commit: nothing behind it could be on the walk.
"""

from collections.abc import Iterator

from sweeps.spec import DrafterSpec
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.drafters.oracle import ChainOracle


def true_positions(root: BlockState, stale: Stale, coming: tuple[Commit, ...]) -> Iterator[Commit]:
    """What comes, up to the first commit whose token is not the stale one (at T > 0: not the stale draw)."""
    token_L = stale.drawn_ids_L2[:, 0].tolist()
    for commit in coming:
        if token_L[commit.position] != commit.token:
            return
        yield commit


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> ChainOracle:
    """The oracle with the spec's budget, its only option."""
    return ChainOracle(spec.budget, true_positions)
