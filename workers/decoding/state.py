"""Block states and commits: host-side nouns without tensors on a device.

A block state is the tuple of token ids of the active block, mask ids where nothing is filled yet. Two states are the
same when their tuples are equal, whatever order filled them: verification is state equality and nothing else. A state
of the next block is reached by filling the active one: it carries the filled block in front of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Commit(NamedTuple):
    """Filling one position of the active block: `position` in [0, L), `token` an id of the vocabulary."""

    position: int
    token: int


def positions(step: Iterable[Commit]) -> tuple[int, ...]:
    """Where a step fills, in its order."""
    return tuple(commit.position for commit in step)


@dataclass(frozen=True, slots=True)
class BlockState:
    """Token ids of a block and which of its positions may still be filled.

    `open` is the ascending tuple of masked positions a commit may fill. Masked positions that are not open lie behind
    the requested number of new tokens: they stay masks, are seen by the target as such, and are never candidates.
    `behind` holds the tokens of the filled block in front of a state of the next block; it is empty in the active one.
    """

    tokens: tuple[int, ...]
    open: tuple[int, ...]
    behind: tuple[int, ...] = ()

    def fill(self, *step: Commit) -> "BlockState":
        """The state after a step, a set of commits. Filling a position that is not open is a programming error."""
        tokens, token_at = list(self.tokens), dict(step)
        assert len(token_at) == len(step), "a step fills a position twice"
        for position, token in step:
            assert position in self.open, f"position {position} is not open"
            tokens[position] = token
        open = tuple(position for position in self.open if position not in token_at)
        return BlockState(tuple(tokens), open, self.behind)

    @property
    def full(self) -> bool:
        """Whether nothing is left to fill."""
        return not self.open


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBlock:
    """The block behind the active one, untouched: where a draft that fills the active block goes on.

    `given` is the number of tokens that opened the active block, which were not generated; a generated id of `stops`
    ends the text, so that nothing goes on behind a block that holds one.
    """

    tokens: tuple[int, ...]
    open: tuple[int, ...]
    given: int
    stops: frozenset[int]

    def after(self, filled: BlockState) -> BlockState | None:
        """The first state of the next block behind a filled one; None where the text ends in that."""
        assert filled.full, "a block that is not filled has no next one"
        ended = not self.stops.isdisjoint(filled.tokens[self.given :])
        return None if ended else BlockState(self.tokens, self.open, filled.tokens)
