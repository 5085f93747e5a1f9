"""The tree of sets: against best-first search one state at a time, and against all paths written out."""

import heapq
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.set_scorers import HashSets
from tests.unit.decoding.test_expand import stale_with
from workers.decoding.set_tree import grow_sets
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit, NextBlock
from workers.decoding.tree import DraftTree
from workers.drafters.set_scores import SetNode, SetScores

MASK = 90
STOP = 4
Options = dict[str, object]
Search = tuple[BlockState, tuple[int, ...], Stale, Options]


@st.composite
def searches(draw: st.DrawFn) -> Search:
    rng = random.Random(draw(st.integers(0, 10**9)))
    open = rng.randint(1, 6)
    known = tuple(sorted(rng.sample(range(open + 2), 2)))
    stale = stale_with(torch.zeros(open + 2, 2))
    root = stale.state.fill(*(Commit(position, 0) for position in known))
    untouched = (MASK,) * (open + 2)
    stops = frozenset({STOP} if rng.random() < 0.5 else ())
    beyond = NextBlock(tokens=untouched, open=tuple(range(open + 2)), given=0, stops=stops)
    stale = replace(stale, beyond=beyond if rng.random() < 0.5 else None)
    score = HashSets(rng.getrandbits(40), grid=rng.choice([2, 4, 1000]), tokens=rng.choice([1, 2, 5]))
    options = {"budget": rng.randint(1, 30), "gamma": rng.choice([0.0, 0.0, 0.03, 0.2]), "score": score}
    return root, known, stale, options


def every_step(node: SetNode, scores: SetScores) -> list[tuple[float, tuple[Commit, ...]]]:
    """All steps from a state with their chances, ranked as `likely_steps` says: from the sets, not by a heap."""
    open = node.state.open
    p, sure, token = (
        [row[0][i] for i in open]
        for row in (scores.include_BL.tolist(), scores.sure_BL.tolist(), scores.token_BL.tolist())
    )
    fill = [a * b for a, b in zip(p, sure, strict=True)]
    leave = [1 - a for a in p]
    base = {row for row in range(len(open)) if fill[row] > leave[row]}
    whole = prod(max(pair) for pair in zip(fill, leave, strict=True))
    ratio = [min(pair) / max(pair) if max(pair) else 0.0 for pair in zip(fill, leave, strict=True)]
    order = sorted(range(len(open)), key=lambda row: (-ratio[row], row))
    ranked = []
    for size in range(len(open) + 1):
        for flips in combinations(range(len(open)), size):
            chance = whole
            for index in flips:
                chance *= ratio[order[index]]
            rows = base ^ {order[index] for index in flips}
            if rows and chance > 0:
                step = tuple(Commit(open[row], token[row]) for row in sorted(rows))
                ranked.append(((-chance, size, flips), step))
    return [(-key[0], step) for key, step in sorted(ranked)]


def one_at_a_time(root: BlockState, known: tuple[int, ...], stale: Stale, *, budget, gamma, score) -> DraftTree:  # type: ignore[no-untyped-def]
    """Best-first search with a heap: take the heaviest, have it scored, offer all its children."""
    beyond = stale.beyond
    heap = [(-1.0, 0, (), root, (), -1)]
    taken: dict[BlockState, int] = {}
    nodes, merged = [], 0
    while heap and len(nodes) <= budget:
        negative, depth, ranks, state, path, parent = heapq.heappop(heap)
        if state in taken:
            merged += 1
            continue
        taken[state] = len(nodes)
        nodes.append((state, parent, path, -negative))
        if state.behind or (beyond is None and len(state.open) < 2):
            continue
        node = SetNode(state=state, known=known, path=path)
        for rank, (chance, step) in enumerate(every_step(node, score([node]))):
            child = state.fill(*step)
            if child.full:
                child = beyond.after(child) if beyond else None
            mass = -negative * chance
            if child is not None and mass > 0 and mass >= gamma:
                entry = (-mass, depth + 1, (*ranks, rank), child, (*path, step), taken[state])
                heapq.heappush(heap, entry)
    states, parents, paths, masses = zip(*nodes, strict=True)
    steps = ((), *(path[-1] for path in paths[1:]))
    return DraftTree(states=states, parents=parents, steps=steps, masses=masses, merged=merged)


@settings(max_examples=400, deadline=None)
@given(searches())
def test_batches_of_states_find_what_one_at_a_time_does_ties_included(search: Search) -> None:
    root, known, stale, options = search
    tree = grow_sets(root, known, stale, **options)  # type: ignore[arg-type]
    assert replace(tree, calls=0) == one_at_a_time(root, known, stale, **options)


@settings(max_examples=400, deadline=None)
@given(searches())
def test_every_tree_keeps_the_contract(search: Search) -> None:
    root, known, stale, options = search
    tree = grow_sets(root, known, stale, **options)  # type: ignore[arg-type]
    assert tree.states[0] == root
    assert tree.drafts <= options["budget"]  # type: ignore[operator]
    assert tree.calls == options["score"].asked  # type: ignore[attr-defined]
    assert tree.calls <= len(root.open) + 1
    assert len(set(tree.states)) == len(tree.states)
    assert list(tree.masses) == sorted(tree.masses, reverse=True)
    for node in range(1, len(tree.states)):
        parent, step, state = tree.parents[node], tree.steps[node], tree.states[node]
        above = tree.states[parent]
        assert parent < node
        assert not above.behind, "nothing hangs below a crossing"
        assert step
        assert {*dict(step)} <= {*above.open}
        filled = above.fill(*step)
        if filled.full:
            assert stale.beyond is not None
            assert state == stale.beyond.after(filled)
            assert STOP not in filled.tokens or not stale.beyond.stops
        else:
            assert state == filled
        assert max(options["gamma"], 1e-300) <= tree.masses[node] <= tree.masses[parent]  # type: ignore[call-overload]


def paths(root: BlockState, known: tuple[int, ...], score: HashSets, depth: int) -> Iterator[tuple[float, SetNode]]:
    """Every path of at most `depth` steps below `root` with its mass multiplied out, position by position."""
    todo = [(1.0, SetNode(state=root, known=known, path=()))]
    for mass, node in todo:
        include, token, sure = score.row(node)
        open = node.state.open
        for size in range(1, len(open) + 1):
            for chosen in combinations(open, size):
                below = mass * prod(include[i] * sure[i] if i in chosen else 1 - include[i] for i in open)
                step = tuple(Commit(i, token[i]) for i in chosen)
                child = SetNode(state=node.state.fill(*step), known=known, path=(*node.path, step))
                yield below, child
                if len(child.path) < depth and not child.state.full:
                    todo.append((below, child))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 4), st.integers(1, 40))
def test_masses_are_those_of_the_heaviest_paths_there_are(seed: int, open: int, budget: int) -> None:
    """Against all paths, as no scorer here minds how a state came to be: each state's mass is its heaviest path's."""
    state = BlockState((MASK,) * open, tuple(range(open)))

    class Pathless(HashSets):
        def row(self, node: SetNode):  # type: ignore[no-untyped-def]
            return super().row(replace(node, path=()))

    score = Pathless(seed, grid=1000, tokens=2)
    heaviest: dict[BlockState, float] = {}
    for mass, node in paths(state, (), score, depth=open):
        if not node.state.full and mass > 0:
            heaviest[node.state] = max(mass, heaviest.get(node.state, 0.0))
    stale = stale_with(torch.zeros(open, 2))
    tree = grow_sets(state, (), stale, budget=budget, gamma=0.0, score=score)
    best = sorted(heaviest.values(), reverse=True)[:budget]
    assert list(tree.masses[1:]) == pytest.approx(best, rel=1e-12)
    for node, mass in zip(tree.states[1:], tree.masses[1:], strict=True):
        assert mass == pytest.approx(heaviest[node], rel=1e-12)


@settings(max_examples=200, deadline=None)
@given(searches(), st.integers(1, 20))
def test_a_smaller_budget_gives_the_first_states_of_a_larger_one(search: Search, budget: int) -> None:
    root, known, stale, options = search
    small = grow_sets(root, known, stale, **{**options, "budget": budget})  # type: ignore[arg-type]
    large = grow_sets(root, known, stale, **{**options, "budget": budget + 10})  # type: ignore[arg-type]
    assert large.states[: len(small.states)] == small.states
    assert large.masses[: len(small.states)] == small.masses


@settings(max_examples=200, deadline=None)
@given(searches())
def test_the_mass_floor_only_cuts_the_tail(search: Search) -> None:
    root, known, stale, options = search
    free, floored = (grow_sets(root, known, stale, **{**options, "gamma": gamma}) for gamma in (0.0, 0.1))  # type: ignore[arg-type]
    heavy = [state for state, mass in zip(free.states, free.masses, strict=True) if mass >= 0.1]
    assert list(floored.states) == heavy


class Fixed:
    """P and p(token) by position, whatever the state; token i at position i."""

    def __init__(self, include: list[float], sure: list[float]) -> None:
        self.include, self.sure, self.batches = include, sure, list[int]()

    def __call__(self, nodes):  # type: ignore[no-untyped-def]
        self.batches.append(len(nodes))
        rows = [[p if i in node.state.open else 0.0 for i, p in enumerate(self.include)] for node in nodes]
        tokens = torch.arange(len(self.include)).expand(len(nodes), -1)
        return SetScores(
            include_BL=torch.tensor(rows), token_BL=tokens, sure_BL=torch.tensor(self.sure).expand(len(nodes), -1)
        )


def test_a_tree_by_hand() -> None:
    """Three positions, P 3/4, 1/2 and 1/4, tokens certain: {0} and {0, 1} tie at 9/32, {0, 2} and {1} at 3/32.

    From {0} the others have P 1/2 and 1/4: {1} there is 27/256, more than 3/32, and a state already taken. {0, 2} is
    one flip away from the best step, {1} two.
    """
    score = Fixed([0.75, 0.5, 0.25], [1.0, 1.0, 1.0])
    state = BlockState((MASK,) * 3, (0, 1, 2))
    tree = grow_sets(state, (), stale_with(torch.zeros(3, 2)), budget=3, gamma=0.0, score=score)
    assert tree.steps[1:] == ((Commit(0, 0),), (Commit(0, 0), Commit(1, 1)), (Commit(0, 0), Commit(2, 2)))
    assert tree.masses[1:] == (9 / 32, 9 / 32, 3 / 32)
    assert tree.merged == 1, "{0} and then {1} leads where {0, 1} does"
    assert tree.parents == (-1, 0, 0, 0)
    assert score.batches == [1, 1], "the root, then {0} ({0, 1} has one position left and fills nothing)"


def test_a_filled_block_goes_on_in_the_next_one_or_not_at_all() -> None:
    score = Fixed([0.9, 0.9], [1.0, 1.0])
    state = BlockState((MASK,) * 2, (0, 1))
    untouched = NextBlock(tokens=(MASK,) * 2, open=(0, 1), given=0, stops=frozenset({1}))
    stale = stale_with(torch.zeros(2, 2))
    assert grow_sets(state, (), stale, budget=9, gamma=0.5, score=score).drafts == 0
    crossing = grow_sets(
        state, (), replace(stale, beyond=replace(untouched, stops=frozenset())), budget=9, gamma=0.5, score=score
    )
    assert crossing.states[1:] == (BlockState((MASK,) * 2, (0, 1), behind=(0, 1)),)
    assert crossing.masses[1] == pytest.approx(0.81)
    ended = grow_sets(state, (), replace(stale, beyond=untouched), budget=9, gamma=0.5, score=score)
    assert ended.drafts == 0, "token 1 ends the text"
    given = replace(untouched, given=2)
    assert grow_sets(state, (), replace(stale, beyond=given), budget=9, gamma=0.5, score=score).drafts == 1


def test_one_open_position_is_asked_about_only_where_a_next_block_is() -> None:
    score = Fixed([0.9, 0.9], [1.0, 1.0])
    state = BlockState((0, MASK), (1,))
    stale = stale_with(torch.zeros(2, 2))
    assert grow_sets(state, (0,), stale, budget=4, gamma=0.0, score=score).calls == 0
    beyond = NextBlock(tokens=(MASK,) * 2, open=(0, 1), given=0, stops=frozenset())
    tree = grow_sets(state, (0,), replace(stale, beyond=beyond), budget=4, gamma=0.0, score=score)
    assert (tree.calls, tree.crossings) == (1, (1,))
