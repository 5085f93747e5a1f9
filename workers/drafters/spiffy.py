"""Spiffy (arXiv 2509.18085): a calibrated graph of draft states, frozen at the root's stale distribution.

The graph says which sets of (position rank, token rank) pairs to draft; this file puts the root's positions and tokens
in the place of the ranks. A graph for the threshold rule is made of whole steps of the target. No model is asked and
nothing depends on an earlier draft: the shape is always the same.

Ours, where the paper is silent. Token ranks are 0 and 1, the drawn token and the runner-up under the target's own token
rule at that temperature, which are all that a round keeps of the drawn scores. Further ranks, which T = 0 alone could
offer, would add nothing: on tiny-sdar the next token is a third one at 0.1 % of steps there, and among the 64 nodes
that came out best none has even a runner-up. A budget beyond what the graph was made for is refused rather than cut
down silently.
"""

from dataclasses import dataclass

from sweeps.spec import DrafterSpec
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.decoding.tree import DraftTree
from workers.models.draft_graph import NOUN, ROOT, DraftGraph, Pairs, find_draft_graph, read_draft_graph


@dataclass(frozen=True, slots=True)
class Shape:
    """A node of the graph of one budget, as a tree wants it.

    `parent` is the parent with the most pairs, of those the one with the highest count (ties: the lowest pairs), `step`
    what the node has beyond it (ascending), `orders` how many parents it has. The walk compares states, so every parent
    leads to the node. `mass`: the share of counted steps at which the node came true, but never more than its parent's.
    """

    pairs: Pairs
    parent: Pairs
    step: tuple[tuple[int, int], ...]
    orders: int
    mass: float


def shapes_of(graph: DraftGraph, budget: int) -> tuple[Shape, ...]:
    """The first `budget` nodes of a graph, those with fewer pairs first, so that parents come before children."""
    nodes = graph.nodes[:budget]
    count_of = {ROOT: graph.steps} | {node.key: node.count for node in nodes}
    mass_of = {ROOT: 1.0}
    shapes = []
    for node in sorted(nodes, key=lambda node: len(node.pairs)):
        parents = graph.parents(node.key, count_of.keys())
        parent = min(parents, key=lambda parent: (-len(parent), -count_of[parent], sorted(parent)))
        mass = mass_of[node.key] = min(mass_of[parent], node.count / graph.steps)
        shapes.append(Shape(node.key, parent, tuple(sorted(node.key - parent)), len(parents), mass))
    return tuple(shapes)


def ranked_positions(root: BlockState, stale: Stale) -> list[int]:
    """The open positions of `root`, stale most confident first; ties go to the lowest position."""
    confidence_L = stale.logodds_L.tolist()
    return sorted(root.open, key=lambda position: (-confidence_L[position], position))


class SpiffyDrafter:
    """Proposes the graph's states that exist below a root.

    A node is left out where the root has too few open positions for its ranks, where it would fill the block, or where
    there is no second token to choose. Whatever has all its pairs is then left out for the same reason.
    """

    def __init__(self, shapes: tuple[Shape, ...], budget: int) -> None:
        self.shapes = shapes
        self.budget = budget

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        """The draft tree below `root`. `merged` counts the parents beyond the one that the tree names."""
        position_of = ranked_positions(root, stale)
        ids_L2, finite_L2 = stale.drawn_ids_L2.tolist(), stale.drawn_scores_L2.isfinite().tolist()
        commit_of = {
            (rank, token): Commit(position, ids_L2[position][token])
            for rank, position in enumerate(position_of)
            for token in (0, 1)
            if finite_L2[position][token]
        }
        index_of, states, steps = {ROOT: 0}, [root], list[tuple[Commit, ...]]([()])
        kept = [s for s in self.shapes if s.pairs <= commit_of.keys() and len(s.pairs) < len(root.open)]
        for index, shape in enumerate(kept, start=1):
            index_of[shape.pairs] = index
            steps.append(tuple(sorted(commit_of[pair] for pair in shape.step)))
            states.append(states[index_of[shape.parent]].fill(*steps[-1]))
        return DraftTree(
            states=tuple(states),
            parents=(-1, *(index_of[shape.parent] for shape in kept)),
            steps=tuple(steps),
            masses=(1.0, *(shape.mass for shape in kept)),
            merged=sum(shape.orders - 1 for shape in kept),
        )


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> SpiffyDrafter:
    """The drafter with the graph of `spec.checkpoint`.

    Raises ValueError when it is missing, foreign, altered, or made for another block length or for smaller budgets.
    """
    path = find_draft_graph(spec.checkpoint)
    graph = read_draft_graph(path)
    if graph.block_length != block_length:
        allowed = f"allowed is the decoder's {block_length}"
        raise ValueError(f"{NOUN} {path}: block_length is {graph.block_length}: {allowed}")
    if spec.budget > graph.budget_max:
        allowed = f"allowed is at most {graph.budget_max}, for which its {NOUN} was made"
        raise ValueError(f"drafter {spec.name}: budget is {spec.budget}: {allowed}")
    return SpiffyDrafter(shapes_of(graph, spec.budget), spec.budget)
