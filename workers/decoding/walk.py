"""Following the target's own commits through the verified states: what is on the walk is committed.

Verification is state equality. The target's next commit is unique, so the walk is too; a state that was drafted in
another order than the target's is the same state and is walked through all the same.
"""

from collections.abc import Callable
from dataclasses import dataclass

from workers.decoding.rule import Verdict
from workers.decoding.tree import DraftTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The nodes visited, from the root on, and the target's verdict in each; `accepted` drafts are among them."""

    nodes: tuple[int, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def accepted(self) -> int:
        """Number of draft states on the walk (the root is not one)."""
        return len(self.nodes) - 1


def walk(tree: DraftTree, judge_node: Callable[[int], Verdict]) -> Walk:
    """Walk from the root: judge a node, step to the state its commit leads to, stop when that was not verified.

    Only visited nodes are judged, and only they pay for the output head. The last verdict's state is never verified:
    it starts the next round.
    """
    node_of = {state.tokens: node for node, state in reversed(list(enumerate(tree.states)))}  # lowest index wins
    nodes, verdicts = [0], [judge_node(0)]
    while (node := node_of.get(tree.states[nodes[-1]].fill(verdicts[-1].commit).tokens)) is not None:
        nodes.append(node)
        verdicts.append(judge_node(node))
    return Walk(nodes=tuple(nodes), verdicts=tuple(verdicts))
