"""Block states and commits: host-side nouns without tensors on a device.

A block state is the tuple of token ids of the active block, mask ids where nothing is filled yet. Two states are the
same when their tuples are equal, whatever order filled them: verification is state equality and nothing else.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Commit(NamedTuple):
    """Filling one position of the active block: `position` in [0, L), `token` an id of the vocabulary."""

    position: int
    token: int


@dataclass(frozen=True, slots=True)
class BlockState:
    """Token ids of the active block and which of its positions may still be filled.

    `open` is the ascending tuple of masked positions a commit may fill. Masked positions that are not open lie behind
    the requested number of new tokens: they stay masks, are seen by the target as such, and are never candidates.
    """

    tokens: tuple[int, ...]
    open: tuple[int, ...]

    def fill(self, *step: Commit) -> "BlockState":
        """The state after a step, a set of commits. Filling a position that is not open is a programming error."""
        tokens, token_at = list(self.tokens), dict(step)
        assert len(token_at) == len(step), "a step fills a position twice"
        for position, token in step:
            assert position in self.open, f"position {position} is not open"
            tokens[position] = token
        return BlockState(tuple(tokens), tuple(position for position in self.open if position not in token_at))

    @property
    def full(self) -> bool:
        """Whether nothing is left to fill."""
        return not self.open
