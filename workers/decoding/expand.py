"""Growing a draft tree from a prefix-conditional order scorer: the search for the budget's best states by mass.

A scorer tells, for each virtual state, where the next commit will fall; tokens and their factors come from the stale
distribution, never from the scorer (decoding.md section 4). `grow` searches level by level, one batched call of the
scorer a level; `best_first` holds the same search with a heap, as a readable reference.

What is searched. A node's *reach* is the mass of the orders that lead to it: the root's is 1, and a parent gives a
child `reach(parent) * q(position) * factor(token)`. Without merging each order is a node of its own, with one parent.
With merging a state is one node, and the orders' masses add up, as they are exclusive ways to come to it. A sum may
exceed what any single parent has, so nodes are ranked by a *mass* that is capped by the parent through which they come
in: parents are taken in rank order, and `mass(node) = max over k of min(mass(parent k), offers of parents 1..k)`.
Orders through parents that rank behind the node itself come too late and are not counted. So masses never grow along
a path, which is why both searches find the same set. Ties: shallower first, then lowest position, then lowest token id.

Shapes: B virtual states, L block width, 2 the drawn token and its hedge.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.decoding.tree import DraftTree

Floats = NDArray[np.float64]
SLACK = 1 - 1e-9  # pruning compares sums with bounds: rounding must never prune


@dataclass(frozen=True, slots=True)
class VirtualState:
    """A state the draft imagines, and how it got there.

    `state` is the root plus the draft's pairs; `known` the position of the known commit that made the root; `path` the
    positions the draft filled since the root, in order: `path[i]` at depth i + 1 (empty at the root). A merged state
    has the path of its heaviest order.
    """

    state: BlockState
    known: int
    path: tuple[int, ...] = ()


class Scorer(Protocol):
    """Where the next commit of each virtual state falls."""

    def __call__(self, nodes: Sequence[VirtualState]) -> Tensor:
        """Probabilities `q_BL` (float, CPU), one row a node: each row sums to 1 over `node.state.open`, 0 elsewhere.

        Called once a level with all nodes of that level which can still enter the tree.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of the search; `name` tells it from all others (its commits, in path order or, if merged, sorted)."""

    name: tuple[Commit, ...]
    virtual: VirtualState
    mass: float
    reach: float
    orders: int
    parent: "Node | None"
    commit: Commit | None

    @property
    def key(self) -> tuple[float, int, tuple[Commit, ...]]:
        """Rank: heavier, then shallower, then lower positions and tokens. A parent always comes before its children."""
        return -self.mass, len(self.name), self.name


def root_node(root: BlockState, known: int) -> Node:
    """Where every search begins."""
    start = VirtualState(root, known)
    return Node(name=(), virtual=start, mass=1.0, reach=1.0, orders=1, parent=None, commit=None)


def token_factors(stale: Stale, hedge: float) -> tuple[NDArray[np.int64], Floats]:
    """The two tokens of each position, `ids_L2`, and how much of a position's mass each takes, `factors_L2`.

    T = 0: p(token). Coupled noise: the drawn token is safe with e^s1 / (e^s1 + e^s2) and its runner-up has the rest
    (an improbable token that both sides draw is kept all the same). Independent noise: the tempered probability of the
    drafter's own draw. The runner-up is offered where the first factor is below `hedge` (a factor of 0: not offered).
    """
    scores_L2 = stale.drawn_scores_L2.to(torch.float64)
    if stale.temperature > 0 and stale.coupled:
        factors_L2 = (scores_L2 - scores_L2.flip(-1)).sigmoid()
    else:
        factors_L2 = scores_L2.exp().clamp(max=1.0)
    factors_L2[:, 1] *= factors_L2[:, 0] < hedge
    return stale.drawn_ids_L2.numpy(), factors_L2.numpy()


def grow(
    root: BlockState,
    known: int,
    stale: Stale,
    *,
    budget: int,
    gamma: float,
    hedge: float,
    merge_states: bool,
    score: Scorer,
) -> DraftTree:
    """The at most `budget` states of largest mass (at least `gamma`) below `root`, found level by level.

    A full state is never drafted. Raises nothing; a scorer that fills a filled position is a programming error.
    """
    ids_L2, factors_L2 = token_factors(stale, hedge)
    pool: list[Node] = []
    level, calls = [root_node(root, known)], 0
    for depth in range(1, len(root.open)):
        level = [node for node in level if len(pool) < budget or node.key < pool[-1].key]  # the last one's cannot enter
        if not level:
            break
        q_BL = score([node.virtual for node in level]).to(torch.float64).clamp(max=1.0).numpy()
        calls += 1
        reach_B = np.array([node.reach for node in level])
        offers_BL2 = reach_B[:, None, None] * q_BL[:, :, None] * factors_L2
        floor = max(gamma, pool[-1].mass if len(pool) == budget else 0.0)
        floor = max(floor, level_floor(level, offers_BL2, budget, depth if merge_states else 1))
        children = children_of(level, offers_BL2, ids_L2, floor, merge_states)
        pool += [child for child in children if child.mass >= gamma]
        pool = sorted(pool, key=lambda node: node.key)[:budget]
        level = [node for node in pool if len(node.name) == depth]
    return tree_of(root, pool, calls)


def level_floor(level: Sequence[Node], offers_BL2: Floats, budget: int, orders: int) -> float:
    """A mass that at least `budget` children of this level reach: a state takes part in at most `orders` offers."""
    mass_B = np.array([node.mass for node in level])
    lower = np.minimum(offers_BL2, mass_B[:, None, None]).ravel()
    rank = budget * orders
    return float(np.partition(lower, -rank)[-rank]) if rank <= lower.size else 0.0


def children_of(
    level: Sequence[Node], offers_BL2: Floats, ids_L2: NDArray[np.int64], floor: float, merge_states: bool
) -> Iterator[Node]:
    """All children of a level (its nodes in rank order) whose mass can be `floor` or more."""
    depth = len(level[0].name) + 1
    enough = floor * SLACK / (depth if merge_states else 1)  # a state of this depth has at most `depth` orders
    found = np.argwhere((offers_BL2 >= enough) & (offers_BL2 > 0))
    if not merge_states:
        for row, position, rank in found.tolist():
            commit = Commit(position, int(ids_L2[position, rank]))
            yield child_of([(level[row], commit, float(offers_BL2[row, position, rank]))], merge_states)
        return
    row_of = {node.name: row for row, node in enumerate(level)}
    rank_of = {
        (position, token): rank
        for position, ids in enumerate(ids_L2.tolist())
        for rank, token in ((1, ids[1]), (0, ids[0]))
    }
    seen: set[tuple[Commit, ...]] = set()
    for row, position, rank in found.tolist():
        name = tuple(sorted((*level[row].name, Commit(position, int(ids_L2[position, rank])))))
        if name in seen:
            continue
        seen.add(name)
        orders = []
        for index, commit in enumerate(name):
            parent = row_of.get(name[:index] + name[index + 1 :])
            if parent is not None and (offer := offers_BL2[parent, commit.position, rank_of[commit]]) > 0:
                orders.append((parent, commit, float(offer)))
        yield child_of([(level[parent], commit, offer) for parent, commit, offer in sorted(orders)], merge_states)


def child_of(orders: Sequence[tuple[Node, Commit, float]], merge_states: bool) -> Node:
    """The node that these (parent, commit, offered mass) lead to, parents in rank order (see the module's text)."""
    sums = list(accumulate(offer for _, _, offer in orders))
    mass = max(min(parent.mass, total) for (parent, _, _), total in zip(orders, sums, strict=True))
    timely = [order for order in orders if order[0].mass >= mass]
    parent, commit, _ = max(timely, key=lambda order: order[2])  # the heaviest order; max keeps the first of equals
    name = (*parent.name, commit)
    virtual = VirtualState(
        parent.virtual.state.fill(commit), parent.virtual.known, (*parent.virtual.path, commit.position)
    )
    return Node(
        name=tuple(sorted(name)) if merge_states else name,
        virtual=virtual,
        mass=mass,
        reach=sums[len(timely) - 1],
        orders=len(timely),
        parent=parent,
        commit=commit,
    )


def tree_of(root: BlockState, nodes: Sequence[Node], calls: int) -> DraftTree:
    """The draft tree of the chosen nodes, given in rank order."""
    index_of: dict[Any, int] = {(): 0} | {node.name: index for index, node in enumerate(nodes, start=1)}
    return DraftTree(
        states=(root, *(node.virtual.state for node in nodes)),
        parents=(-1, *(index_of[node.parent.name] for node in nodes if node.parent is not None)),
        steps=((), *((node.commit,) for node in nodes if node.commit is not None)),
        masses=(1.0, *(node.mass for node in nodes)),
        merged=sum(node.orders - 1 for node in nodes),
        calls=calls,
    )
