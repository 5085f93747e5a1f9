"""Growing a tree of commit sets: a node is one whole step of the target (decoding.md section 6).

A scorer says, for each virtual state, how likely every position is to be filled by the next step, and with which token.
A child's mass is its parent's times the chance of the step between them (`likely_steps`): no mass grows along a path.
The tree holds the `budget` heaviest states, as best-first search finds them. A state is reached by the heaviest of its
paths (the first to be taken) and verified once; what other paths there are is counted in `merged`. Ties: fewer steps,
then the path whose steps come first among those of their parents.

`grow_sets` repeats the search on what is known so far and then has all states scored at once that it came upon and that
are not: when it finds none, the search is the one that asks for one state at a time.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from workers.decoding.acceptance import Step
from workers.decoding.likely_steps import Listed, likely_steps
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, NextBlock
from workers.decoding.tree import DraftTree
from workers.drafters.set_scores import SetNode, SetScorer

Ranks = tuple[int, ...]  # a path: the number of each of its steps among those of its parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """A state of the search. `ranks` tells its path from all others; `parent` is the number of its parent's node."""

    state: BlockState
    mass: float
    ranks: Ranks = ()
    path: tuple[Step, ...] = ()
    parent: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search came to: the root and the states of the tree in order, and how many further paths led to these."""

    nodes: tuple[Drafted, ...]
    merged: int


def grow_sets(
    root: BlockState,
    known: tuple[int, ...],
    stale: Stale,
    *,
    budget: int,
    gamma: float,
    score: SetScorer,
) -> DraftTree:
    """The at most `budget` states of largest mass (at least `gamma`, above 0) below `root`, in that order.

    A draft that fills the block becomes the first state of the block `stale.beyond`, from which none goes on; it is not
    drafted where there is no such block, or where the text ends before it. `known` are the positions of the step that
    led to `root`.
    """
    beyond = stale.beyond
    steps: dict[Ranks, Listed] = {}
    calls = 0
    while True:
        found = heaviest(root, beyond, steps, budget=budget, gamma=gamma)
        asked = [node for node in found.nodes[:budget] if node.ranks not in steps and goes_on(node.state, beyond)]
        if not asked:  # what follows the last state could only come behind it
            return tree_of(found, calls)
        scored = listed([SetNode(state=node.state, known=known, path=node.path) for node in asked], score)
        steps |= {node.ranks: own for node, own in zip(asked, scored, strict=True)}
        calls += 1


def goes_on(state: BlockState, beyond: NextBlock | None) -> bool:
    """Whether anything can be drafted from a state."""
    return not state.behind and len(state.open) > (0 if beyond else 1)


def listed(nodes: list[SetNode], score: SetScorer) -> list[Listed]:
    """The steps that may follow each node, in order."""
    scores = score(nodes)
    include_BL, sure_BL = (part.to(torch.float64).clamp(0.0, 1.0) for part in (scores.include_BL, scores.sure_BL))
    assert not (include_BL.isnan() | sure_BL.isnan()).any(), "a scorer that gives no numbers"
    rows = zip(nodes, include_BL.tolist(), scores.token_BL.tolist(), sure_BL.tolist(), strict=True)
    return [
        Listed(likely_steps(open, *([row_L[position] for position in open] for row_L in rows_3L)))
        for open, *rows_3L in ((node.state.open, *row_3L) for node, *row_3L in rows)
    ]


def heaviest(
    root: BlockState, beyond: NextBlock | None, steps: Mapping[Ranks, Listed], *, budget: int, gamma: float
) -> Found:
    """Best-first search among the states that the known `steps` lead to."""
    nodes, taken, merged = [Drafted(state=root, mass=1.0)], {root}, 0
    heap: list[tuple[float, int, Ranks, int, Step]] = []

    def offer(parent: int, rank: int) -> None:
        """Put the child number `rank` of a node on the heap; the next one follows when it is taken from there."""
        above = nodes[parent]
        item = steps[above.ranks].at(rank) if above.ranks in steps else None
        if item is not None and (mass := above.mass * item[0]) > 0 and mass >= gamma:
            heapq.heappush(heap, (-mass, len(above.ranks) + 1, (*above.ranks, rank), parent, item[1]))

    offer(0, 0)
    while heap and len(nodes) <= budget:
        negative, _, ranks, parent, step = heapq.heappop(heap)
        offer(parent, ranks[-1] + 1)
        above = nodes[parent]
        filled = above.state.fill(*step)
        state = filled if not filled.full else beyond.after(filled) if beyond else None
        if state is None:
            continue
        if state in taken:
            merged += 1
            continue
        taken.add(state)
        nodes.append(Drafted(state=state, mass=-negative, ranks=ranks, path=(*above.path, step), parent=parent))
        offer(len(nodes) - 1, 0)
    return Found(nodes=tuple(nodes), merged=merged)


def tree_of(found: Found, calls: int) -> DraftTree:
    """The draft tree of a search."""
    nodes = found.nodes
    return DraftTree(
        states=tuple(node.state for node in nodes),
        parents=tuple(node.parent for node in nodes),
        steps=((), *(node.path[-1] for node in nodes[1:])),
        masses=tuple(node.mass for node in nodes),
        merged=found.merged,
        calls=calls,
    )
