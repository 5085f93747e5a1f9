"""Following accepted steps through the verified states: what is on the walk is committed.

The target's own step is taken wherever it leads to a verified state. That is state equality: a state that was drafted
in another order than the target's, or in more or fewer steps, is the same state and is walked through all the same, so
that a step of several commits may jump over nested states (the walk of FreeDave, arXiv 2510.00294). The own step is
unique, so under the rule `exact`, which accepts nothing else, the walk is too. Other acceptance rules go to drafted
children as well: the plain walk to the first that is accepted, `max_commit` along the path that commits the most.

Rounding differs between batch shapes, so a verdict by a hair may not be the draft-free one: with a `doubt` the walk
ends at the first such node, and the caller judges it again by a forward in the draft-free shape.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from workers.decoding.acceptance import Step
from workers.decoding.rule import Verdict
from workers.decoding.tree import DraftTree

Judge = Callable[[int], Verdict]
Accept = Callable[[Sequence[Step], Verdict], list[Step]]  # of each drafted step of a node what is accepted of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The nodes visited, from the root on, the target's verdict in each and the step taken from it.

    The last step leads to a state that was not verified: it starts the next round. `doubtful`: the last verdict's
    margin was too small to be relied on, so its node is to be judged again.
    """

    nodes: tuple[int, ...]
    verdicts: tuple[Verdict, ...]
    steps: tuple[Step, ...]
    doubtful: bool = False

    @property
    def accepted(self) -> int:
        """Number of draft states on the walk (the root is not one)."""
        return len(self.nodes) - 1


def first_accepted(tree: DraftTree, judge_node: Judge, accept: Accept, *, doubt: float = 0.0) -> Walk:
    """Walk from the root to the first state that is accepted, the one of the target's own step before all others.

    Where no drafted step is accepted whole, the first that is accepted in part ends the walk with that part; where none
    is at all, the target's own step does. Only visited nodes are judged, and only they pay for the output head. A
    margin below `doubt` ends the walk as well.
    """
    nodes, verdicts, steps = [0], [judge_node(0)], list[Step]()
    while not (doubtful := verdicts[-1].margin < doubt):
        child, step = next_move(tree, nodes[-1], verdicts[-1], accept)
        steps.append(step)
        if child is None:
            break
        nodes.append(child)
        verdicts.append(judge_node(child))
    if doubtful:
        steps.append(verdicts[-1].step)
    return Walk(nodes=tuple(nodes), verdicts=tuple(verdicts), steps=tuple(steps), doubtful=doubtful)


def most_commits(tree: DraftTree, judge_node: Judge, accept: Accept) -> Walk:
    """The walk with the most commits of all that accepted steps allow; ties go to the lowest last node.

    Every state that can be reached is judged. A walk ends with the target's own step, which holds whatever part of a
    drafted step could be accepted there. A state says how much was committed on the way to it, so that one way to each
    is enough: one with the fewest moves.
    """
    verdicts, came, filled = {0: judge_node(0)}, dict[int, tuple[int, Step]](), {0: 0}
    waiting = [0]
    for node in waiting:
        for child, step in moves(tree, node, verdicts[node], accept):
            if child not in verdicts:
                verdicts[child], came[child], filled[child] = judge_node(child), (node, step), filled[node] + len(step)
                waiting.append(child)
    last = min(waiting, key=lambda node: (-filled[node] - len(verdicts[node].step), node))
    nodes, steps = [last], [verdicts[last].step]
    while nodes[0]:
        before, step = came[nodes[0]]
        nodes.insert(0, before)
        steps.insert(0, step)
    return Walk(nodes=tuple(nodes), verdicts=tuple(verdicts[node] for node in nodes), steps=tuple(steps))


def next_move(tree: DraftTree, node: int, verdict: Verdict, accept: Accept) -> tuple[int | None, Step]:
    """The first verified state that may follow a node, with the step to it; None where there is none, with the step
    that ends the walk: the first part of a drafted step that is accepted, else the target's own.
    """
    own = own_state(tree, node, verdict)
    if own is not None:
        return own, verdict.step
    children = tree.children(node)
    parts = accept([tree.steps[child] for child in children], verdict)
    whole = ((child, part) for child, part in zip(children, parts, strict=True) if part == tree.steps[child])
    return next(whole, (None, next((part for part in parts if part), verdict.step)))


def moves(tree: DraftTree, node: int, verdict: Verdict, accept: Accept) -> Iterator[tuple[int, Step]]:
    """The verified states that may follow a node, with the step to each: the target's own first, then children."""
    own = own_state(tree, node, verdict)
    if own is not None:
        yield own, verdict.step
    children = [child for child in tree.children(node) if child != own]
    parts = accept([tree.steps[child] for child in children], verdict)
    yield from ((child, part) for child, part in zip(children, parts, strict=True) if part == tree.steps[child])


def own_state(tree: DraftTree, node: int, verdict: Verdict) -> int | None:
    """The verified state that the target's own step leads to; None where it was not verified."""
    return tree.find(tree.states[node].fill(*verdict.step))
