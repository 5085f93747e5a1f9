"""The draft tree: which states are verified beside the root, as parallel arrays.

Node 0 is the root. Node i > 0 is its parent's state plus a step, a set of (position, token) pairs: one pair where the
target commits one position at a time. Parents come before children and masses never grow along a path.
"""

from dataclasses import dataclass, replace

from workers.decoding.state import BlockState, Commit


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTree:
    """Draft states beside a root.

    `states[0]` is the root; `parents[i]`, `steps[i]` (pairs in ascending position), `masses[i]` describe node i (entry
    0: -1, (), 1.0).
    `merged` counts candidates that were another order of a state already in the tree, `calls` the batched forwards of
    an order model that growing it took, `trimmed` the drafts that were found and then cut off.
    """

    states: tuple[BlockState, ...]
    parents: tuple[int, ...]
    steps: tuple[tuple[Commit, ...], ...]
    masses: tuple[float, ...]
    merged: int = 0
    calls: int = 0
    trimmed: int = 0

    @property
    def drafts(self) -> int:
        """Number of draft states (the root is not one)."""
        return len(self.states) - 1

    def find(self, state: BlockState) -> int | None:
        """The node with this state, the lowest where several have it; None where none has."""
        return next((node for node, own in enumerate(self.states) if own.tokens == state.tokens), None)

    def cut(self, drafts: int) -> "DraftTree":
        """The first `drafts` draft states: a tree too, since parents come before children."""
        assert 0 <= drafts <= self.drafts
        return replace(
            self,
            states=self.states[: drafts + 1],
            parents=self.parents[: drafts + 1],
            steps=self.steps[: drafts + 1],
            masses=self.masses[: drafts + 1],
            trimmed=self.trimmed + self.drafts - drafts,
        )


def root_alone(root: BlockState) -> DraftTree:
    """The tree without a draft."""
    return DraftTree(states=(root,), parents=(-1,), steps=((),), masses=(1.0,))
