"""Following the target's own steps through the verified states: what is on the walk is committed.

Verification is state equality (`exact`). The target's next step is unique, so the walk is too; a state that was drafted
in another order than the target's, or in more or fewer steps, is the same state and is walked through all the same. So
a step of several commits may jump over nested states (the walk of FreeDave, arXiv 2510.00294).

Rounding differs between batch shapes, so a verdict by a hair may not be the draft-free one: with a `doubt` the walk
ends at the first such node, and the caller judges it again by a forward in the draft-free shape.
"""

from collections.abc import Callable
from dataclasses import dataclass

from workers.decoding.rule import Verdict
from workers.decoding.tree import DraftTree

Acceptance = Callable[[DraftTree, int, Verdict], int | None]


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


def exact(tree: DraftTree, node: int, verdict: Verdict) -> int | None:
    """The verified state that the target's own step leads to from a node; None where it was not drafted."""
    return tree.find(tree.states[node].fill(*verdict.step))


def walk(
    tree: DraftTree, judge_node: Callable[[int], Verdict], *, doubt: float = 0.0, accept: Acceptance = exact
) -> Walk:
    """Walk from the root: judge a node, go on to the node that `accept` names for its verdict, stop where it names
    none.

    Only visited nodes are judged, and only they pay for the output head. The state that the last verdict leads to is
    never verified: it starts the next round. A margin below `doubt` ends the walk as well.
    """
    nodes, verdicts = [0], [judge_node(0)]
    while verdicts[-1].margin >= doubt:
        node = accept(tree, nodes[-1], verdicts[-1])
        if node is None:
            break
        nodes.append(node)
        verdicts.append(judge_node(node))
    return Walk(nodes=tuple(nodes), verdicts=tuple(verdicts), doubtful=verdicts[-1].margin < doubt)
