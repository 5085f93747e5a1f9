"""Following the target's own commits through the verified states: what is on the walk is committed.

Verification is state equality. The target's next commit is unique, so the walk is too; a state that was drafted in
another order than the target's is the same state and is walked through all the same.

Rounding differs between batch shapes, so a verdict by a hair may not be the draft-free one: with a `doubt` the walk
ends at the first such node, and the caller judges it again by a forward in the draft-free shape.
"""

from collections.abc import Callable
from dataclasses import dataclass

from workers.decoding.rule import Verdict
from workers.decoding.tree import DraftTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The nodes visited, from the root on, and the target's verdict in each; `accepted` drafts are among them.

    `doubtful`: the last verdict's margin was too small to be relied on, so its node is to be judged again.
    """

    nodes: tuple[int, ...]
    verdicts: tuple[Verdict, ...]
    doubtful: bool = False

    @property
    def accepted(self) -> int:
        """Number of draft states on the walk (the root is not one)."""
        return len(self.nodes) - 1


def walk(tree: DraftTree, judge_node: Callable[[int], Verdict], *, doubt: float = 0.0) -> Walk:
    """Walk from the root: judge a node, step to the state its commit leads to, stop when that was not verified.

    Only visited nodes are judged, and only they pay for the output head. The last verdict's state is never verified:
    it starts the next round. A margin below `doubt` ends the walk as well.
    """
    node_of = {state.tokens: node for node, state in reversed(list(enumerate(tree.states)))}  # lowest index wins
    nodes, verdicts = [0], [judge_node(0)]
    while verdicts[-1].margin >= doubt:
        node = node_of.get(tree.states[nodes[-1]].fill(verdicts[-1].commit).tokens)
        if node is None:
            break
        nodes.append(node)
        verdicts.append(judge_node(node))
    return Walk(nodes=tuple(nodes), verdicts=tuple(verdicts), doubtful=verdicts[-1].margin < doubt)
