"""The choice of a draft graph against brute force, on instances small enough to try everything."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.training.spiffy_choice import Chain, accepted, choose, rounds

A, B, C, D = (0, 0), (1, 0), (2, 0), (3, 0)
Pair = tuple[int, int]
Chains = dict[Chain, int]


def ones(pairs: Sequence[Pair]) -> Chain:
    """A chain whose steps have one pair each."""
    return tuple((pair,) for pair in pairs)


def after(chain: Chain, steps: int) -> frozenset[Pair]:
    """The pairs of the first steps."""
    return frozenset(pair for step in chain[:steps] for pair in step)


def walked(chains: Chains, graph: set[frozenset[Pair]]) -> int:
    """Drafts accepted over all chains, step by step."""
    total = 0
    for chain, times in chains.items():
        state: frozenset[Pair] = frozenset()
        for step in chain:
            state = state | {*step}
            if state not in graph:
                break
            total += times
    return total


def best_of(chains: Chains, size: int) -> int:
    """The most that any set of `size` nodes accepts."""
    nodes = sorted({after(chain, n + 1) for chain in chains for n in range(len(chain))}, key=sorted)
    return max(walked(chains, set(some)) for some in combinations(nodes, min(size, len(nodes))))


@st.composite
def futures(draw: st.DrawFn, *, one_order: bool, sets: bool = False) -> Chains:
    """Chains over four pairs; with `one_order` every set is reached by its pairs in ascending order only, with `sets`
    a step may have several.
    """
    order = st.permutations([A, B, C, D])
    chains: Counter[Chain] = Counter()
    for _ in range(draw(st.integers(1, 5))):
        pairs = draw(order)[: draw(st.integers(1, 3))]
        chain = ones(sorted(pairs) if one_order else pairs)
        if sets and len(chain) > 1 and draw(st.booleans()):
            cut = draw(st.integers(1, len(chain) - 1))
            chain = tuple(tuple(sorted(after(part, len(part)))) for part in (chain[:cut], chain[cut:]))
        chains[chain] += draw(st.integers(1, 9))
    return dict(chains)


@given(futures(one_order=True), st.integers(1, 5))
def test_where_every_set_has_one_order_no_graph_of_any_size_accepts_more(chains: Chains, size: int) -> None:
    graph = {node.key for node in choose(chains, size)}
    assert walked(chains, graph) == best_of(chains, size)


@settings(max_examples=200)
@given(st.booleans().flatmap(lambda sets: futures(one_order=False, sets=sets)), st.integers(1, 5))
def test_the_choice_is_connected_and_exact_in_its_counts_and_gains(chains: Chains, size: int) -> None:
    nodes = choose(chains, size)
    graph: set[frozenset[Pair]] = {frozenset()}
    reached = [(after(chain, n), after(chain, n + 1)) for chain in chains for n in range(len(chain))]
    for node in nodes:
        assert any(parent in graph and child == node.key for parent, child in reached)
        before = walked(chains, graph)
        graph.add(node.key)
        assert node.gain == walked(chains, graph) - before
        assert node.count == sum(
            times for chain, times in chains.items() if any(after(chain, n + 1) == node.key for n in range(len(chain)))
        )
    found = {node.key for node in nodes}
    assert sum(accepted(chain, found) * times for chain, times in chains.items()) == walked(chains, found)
    reachable = {after(chain, n + 1) for chain in chains for n in range(len(chain))}
    assert len(nodes) == min(size, len(reachable))


def test_where_sets_have_several_orders_the_choice_is_nearly_always_the_best() -> None:
    rng, shares = random.Random(0), []
    for _ in range(150):
        chains: Counter[Chain] = Counter()
        for _ in range(rng.randint(2, 6)):
            chains[ones(rng.sample([A, B, C, D], rng.randint(1, 3)))] += rng.randint(1, 9)
        for size in (2, 3, 4):
            found = {node.key for node in choose(chains, size)}
            shares.append(walked(chains, found) / best_of(chains, size))
    assert max(shares) == 1.0
    assert sum(share == 1.0 for share in shares) >= 0.9 * len(shares)
    assert min(shares) >= 0.75


@given(futures(one_order=False), st.integers(1, 5))
def test_a_larger_graph_begins_with_the_smaller_one_and_the_order_of_the_input_does_not_matter(
    chains: Chains, size: int
) -> None:
    assert choose(chains, size + 1)[:size] == choose(dict(reversed(chains.items())), size)


def test_a_set_that_came_true_counts_only_where_the_walk_gets_to_it() -> None:
    chains = {ones([A, B]): 5, ones([B, A]): 4, ones([C]): 3}
    nodes = choose(chains, 3)
    assert [sorted(node.key) for node in nodes] == [[A], [A, B], [B]]
    assert [(node.count, node.gain) for node in nodes] == [(5, 5), (9, 5), (4, 8)]  # with {B}, {A, B} is reached again


def test_ties_go_to_fewer_pairs_then_to_the_lowest() -> None:
    assert [sorted(node.key) for node in choose({ones([B]): 2, ones([A, C]): 2}, 3)] == [[A], [B], [A, C]]


def test_a_step_of_several_pairs_is_one_node_that_smaller_ones_do_not_lead_to() -> None:
    chains = {((A, B), (C,)): 4, ((A,), (B, C)): 3}
    nodes = choose(chains, 4)
    assert [(sorted(node.key), node.count, node.gain) for node in nodes] == [
        ([A, B], 4, 4),  # {A} is worth 3 at first ...
        ([A, B, C], 7, 4),  # ... where {A, B, C} ends both futures
        ([A], 3, 6),  # and so is worth more once that is there
    ]


def test_nothing_to_choose() -> None:
    assert choose({(): 7}, 4) == ()


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([], [0, 0, 0, 0, 0]),  # draft-free: a forward a commit
        ([[A]], [0, 1, 0, 0]),  # commits 1 and 2 in one round, then the chain of step 2 begins with B
        ([[A], [B]], [0, 1, 1]),
        ([[A], [A, B], [B], [B, A]], [0, 2, 0]),  # the last commit is never drafted: it fills the block
    ],
)
def test_rounds_of_a_block(nodes: list[list[tuple[int, int]]], expected: list[int]) -> None:
    chains = {0: ones([A, B, C]), 1: ones([A, B]), 2: ones([B])}
    assert list(rounds(chains, 5, {frozenset(node) for node in nodes})) == expected
