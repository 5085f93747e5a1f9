"""The target's real future: what draft-free decoding of one prompt commits, block by block.

Oracles draft from it. With the noise shared, or none, a target's path does not depend on the drafter, so a recorded
trajectory is what will happen; where a run leaves it all the same (rounding at a near-tie), the record is a guess.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from workers.decoding.state import BlockState, Commit
from workers.decoding.tally import Generation

if TYPE_CHECKING:  # the file format needs more libraries than decoding does
    from workers.replay.trace import Trace


@dataclass(frozen=True, slots=True)
class Future:
    """Commits in order, by the absolute position at which their block begins."""

    blocks: Mapping[int, tuple[Commit, ...]]

    def __len__(self) -> int:
        return sum(map(len, self.blocks.values()))

    def coming(self, start: int, state: BlockState) -> tuple[Commit, ...]:
        """The recorded commits of the block at `start` whose positions are open in `state`, in order.

        On the recorded path these are the next ones, all of them; off it, what the record says of the open positions.
        """
        still_open = frozenset(state.open)
        return tuple(commit for commit in self.blocks.get(start, ()) if commit.position in still_open)

    @classmethod
    def of(cls, generation: Generation, block_length: int) -> Self:
        """The future that a draft-free generation holds."""
        first, ids = generation.prompt_tokens, generation.output_ids
        placed = ((*divmod(first + index, block_length), ids[index]) for index in generation.order)
        return cls.grouped((block * block_length, Commit(position, token)) for block, position, token in placed)

    @classmethod
    def of_trace(cls, trace: "Trace") -> Self:
        """The future that a recorded trajectory holds."""
        return cls.grouped(zip((step.start for step in trace.steps), trace.commits, strict=True))

    @classmethod
    def grouped(cls, commits: Iterable[tuple[int, Commit]]) -> Self:
        """Commits in order, each with its block's absolute position."""
        blocks: dict[int, list[Commit]] = {}
        for start, commit in commits:
            blocks.setdefault(start, []).append(commit)
        return cls({start: tuple(own) for start, own in blocks.items()})
