"""What the three oracles share: one chain of draft states, chosen with the target's real future at hand.

Oracles ask what should be predicted (decoding.md section 5): each replaces one thing that a drafter must guess, the
next position or its token, by the truth. They are bounds and no methods.
"""

from collections.abc import Callable, Iterable
from itertools import islice

from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.decoding.tree import DraftTree
from workers.replay.future import Future

Choice = Callable[[BlockState, Stale, tuple[Commit, ...]], Iterable[Commit]]


class ChainOracle:
    """An oracle that drafts one chain. `choose(root, stale, coming)` gives its commits, one state more each.

    `coming` are the target's real next commits in the block, in order.
    """

    def __init__(self, budget: int, choose: Choice) -> None:
        self.budget = budget
        self.choose = choose

    def knowing(self, future: Future) -> "InformedChain":
        """The drafter of the prompt whose future this is."""
        return InformedChain(self.budget, self.choose, future)


class InformedChain:
    """The drafter of one prompt: a chain of at most `budget` states. All masses are 1, as an oracle has no doubts."""

    def __init__(self, budget: int, choose: Choice, future: Future) -> None:
        self.budget = budget
        self.choose = choose
        self.future = future

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        """The chain below `root`, never up to a full state."""
        coming = self.future.coming(stale.start, root)
        commits = tuple(islice(self.choose(root, stale, coming), min(self.budget, len(root.open) - 1)))
        states = [root]
        for commit in commits:
            states.append(states[-1].fill(commit))
        nodes = len(states)
        return DraftTree(
            states=tuple(states),
            parents=tuple(range(-1, nodes - 1)),
            steps=((), *((commit,) for commit in commits)),
            masses=(1.0,) * nodes,
        )
