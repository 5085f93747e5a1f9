"""Token oracle: positions in stale confidence order, each filled with the token that it will hold (decoding.md 5).

What a drafter could reach that predicted tokens perfectly and read the order from the stale confidence.
"""

from collections.abc import Iterator

from sweeps.spec import DrafterSpec
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.drafters.oracle import ChainOracle


def true_tokens(root: BlockState, stale: Stale, coming: tuple[Commit, ...]) -> Iterator[Commit]:
    """The commits to come, by stale confidence (ties: lowest position) instead of in their real order."""
    confidence_L = stale.logodds_L.tolist()
    yield from sorted(coming, key=lambda commit: (-confidence_L[commit.position], commit.position))


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> ChainOracle:
    """The oracle with the spec's budget, its only option."""
    return ChainOracle(spec.budget, true_tokens)
