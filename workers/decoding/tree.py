"""The draft tree: which states are verified beside the root, as parallel arrays.

Node 0 is the root. Node i > 0 is its parent's state plus a step, a set of (position, token) pairs: one pair where the
target commits one position at a time. Parents come before children and masses never grow along a path. A step that
fills the block leads to the next block's first state (`NextBlock.after`); such a node has no children.
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

    @property
    def crossings(self) -> tuple[int, ...]:
        """The nodes in the next block, ascending."""
        return tuple(node for node, state in enumerate(self.states) if state.behind)

    def children(self, parent: int) -> tuple[int, ...]:
        """The nodes below a node, ascending."""
        return tuple(node for node, own in enumerate(self.parents) if own == parent)

    def find(self, state: BlockState) -> int | None:
        """The node that `state` is, or, where it fills the block, that its next block's first state is; the lowest
        where there are several, None where there is none.
        """
        if state.full and not state.behind:
            return next((node for node, own in enumerate(self.states) if own.behind == state.tokens), None)
        return next((node for node, own in enumerate(self.states) if own == state), None)

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

    def below(self, root: BlockState, step: tuple[Commit, ...]) -> "DraftTree":
        """This tree hung below another root, from which `step` leads to its own, now a draft state of mass 1. Its root
        may be in the next block, if the step fills this one.
        """
        after = root.fill(*step)
        assert self.states[0] == after or self.states[0].behind == after.tokens, "the step leads to another root"
        return replace(
            self,
            states=(root, *self.states),
            parents=(-1, 0, *(parent + 1 for parent in self.parents[1:])),
            steps=((), step, *self.steps[1:]),
            masses=(1.0, *self.masses),
        )


def root_alone(root: BlockState) -> DraftTree:
    """The tree without a draft."""
    return DraftTree(states=(root,), parents=(-1,), steps=((),), masses=(1.0,))
