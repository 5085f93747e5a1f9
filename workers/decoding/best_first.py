"""The tree search of `expand` as best-first search with a heap: the readable reference it must agree with.

A node is taken when it ranks first among all that are known; taking it offers mass to its children. What is offered to
a state after it was taken comes too late. The scorer is asked for one node at a time.
"""

import heapq
from collections import defaultdict
from functools import reduce
from operator import add

import torch

from workers.decoding.expand import Node, Scorer, VirtualState, root_node, token_factors, tree_of
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.decoding.tree import DraftTree

Name = tuple[Commit, ...]


def best_first(
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
    """The same tree as `grow`, ties included (only its number of scorer calls differs)."""
    ids_L2, factors_L2 = (table.tolist() for table in token_factors(stale, hedge))
    offers: dict[Name, list[tuple[Node, Commit, float]]] = defaultdict(list)
    taken: dict[Name, Node] = {}
    heap: list[tuple[float, int, Name]] = []
    node, calls = root_node(root, known), 0
    while len(taken) < budget:
        if len(node.virtual.state.open) > 1:  # else its children are full
            q_L = score([node.virtual])[0].to(torch.float64).clamp(max=1.0).tolist()
            calls += 1
            for position in node.virtual.state.open:
                for token, factor in zip(ids_L2[position], factors_L2[position], strict=True):
                    commit, offer = Commit(position, token), node.reach * q_L[position] * factor
                    name = (*node.name, commit)
                    name = tuple(sorted(name)) if merge_states else name
                    if offer > 0 and name not in taken:
                        offers[name].append((node, commit, offer))
                        mass = min(node.mass, total(offers[name]))
                        if mass >= gamma:
                            heapq.heappush(heap, (-mass, len(name), name))
        while heap and heap[0][2] in taken:
            heapq.heappop(heap)
        if not heap:
            break
        negative_mass, _, name = heapq.heappop(heap)
        node = taken[name] = node_of(name, -negative_mass, offers[name])
    return tree_of(root, list(taken.values()), calls)


def total(orders: list[tuple[Node, Commit, float]]) -> float:
    """The sum of all offered masses, added in the order of the offers."""
    return reduce(add, (offer for _, _, offer in orders))


def node_of(name: Name, mass: float, orders: list[tuple[Node, Commit, float]]) -> Node:
    """The node that these orders lead to; it takes the path of the heaviest (the first of equals)."""
    parent, commit, _ = max(orders, key=lambda order: order[2])
    before = parent.virtual
    virtual = VirtualState(before.state.fill(commit), before.known, (*before.path, commit.position))
    return Node(
        name=name,
        virtual=virtual,
        mass=mass,
        reach=total(orders),
        orders=len(orders),
        parent=parent,
        commit=commit,
    )
