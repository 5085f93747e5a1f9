import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toys import commits_of, hashed, normal
from workers.decoding.best_first import best_first
from workers.decoding.expand import VirtualState, grow, token_factors
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit

MASK = 90


def stale_with(
    scores_L2: torch.Tensor, *, ids_L2: torch.Tensor | None = None, temperature: float = 0.0, coupled: bool = True
) -> Stale:
    """A stale distribution of an all-masked block that holds what the search reads: draws and their scores."""
    length = len(scores_L2)
    ids_L2 = torch.tensor([[2 * i, 2 * i + 1] for i in range(length)]) if ids_L2 is None else ids_L2
    zeros_L = torch.zeros(length)
    return Stale(
        state=BlockState((MASK,) * length, tuple(range(length))),
        temperature=temperature,
        ids_LK=ids_L2,
        probs_LK=torch.zeros(length, 2),
        logprobs_LK=torch.zeros(length, 2),
        logodds_L=zeros_L,
        entropy_L=zeros_L,
        outside_L=zeros_L,
        drawn_ids_L2=ids_L2,
        drawn_scores_L2=scores_L2,
        fill_order=(),
        start=0,
        coupled=coupled,
    )


class HashScorer:
    """A seeded pure function of the whole virtual state, path included. Coarse: powers of two, so that masses tie."""

    def __init__(self, seed: int, *, coarse: bool, sharpness: float) -> None:
        self.seed, self.coarse, self.sharpness, self.calls = seed, coarse, sharpness, 0

    def __call__(self, nodes: Sequence[VirtualState]) -> torch.Tensor:
        self.calls += 1
        return torch.stack([self.row(node) for node in nodes])

    def row(self, node: VirtualState) -> torch.Tensor:
        weights_L = self.sharpness * normal(hashed(self.seed, node.state.tokens, node.path), len(node.state.tokens))
        masked_L = torch.full_like(weights_L, -torch.inf)
        masked_L[list(node.state.open)] = weights_L[list(node.state.open)]
        q_L = masked_L.softmax(-1)
        return torch.where(q_L > 0, torch.exp2(q_L.log2().floor()), q_L) if self.coarse else q_L


@st.composite
def searches(draw: st.DrawFn) -> tuple[BlockState, int, Stale, dict[str, object]]:
    rng = random.Random(draw(st.integers(0, 10**9)))
    length, coarse = rng.randint(2, 7), rng.random() < 0.5
    scores = normal(rng.getrandbits(40), length, 2) * 2
    temperature, coupled = rng.choice([(0.0, True), (0.7, True), (1.5, False)])
    if not (temperature and coupled):  # log probabilities: factors of powers of two, or any
        scores = (scores.abs() * -1).sort(-1, descending=True).values
        scores = (scores / math.log(2)).round().clamp(max=-1) * math.log(2) if coarse else scores - 0.1
    scores = scores.sort(-1, descending=True).values
    stale = stale_with(scores, temperature=temperature, coupled=coupled)
    known = rng.randrange(length)
    root = stale.state.fill(Commit(known, 77))
    options = {
        "budget": rng.randint(1, 30),
        "gamma": rng.choice([0.0, 0.0, 0.03, 0.2]),
        "hedge": rng.choice([0.0, 0.6, 1.0]),
        "merge_states": rng.random() < 0.6,
        "score": HashScorer(rng.getrandbits(40), coarse=coarse, sharpness=rng.choice([0.1, 1.0, 4.0])),
    }
    return root, known, stale, options


@settings(max_examples=400, deadline=None)
@given(searches())
def test_level_by_level_equals_best_first_ties_included(search) -> None:  # type: ignore[no-untyped-def]
    root, known, stale, options = search
    tree = grow(root, known, stale, **options)
    assert replace(tree, calls=0) == replace(best_first(root, known, stale, **options), calls=0)


@settings(max_examples=300, deadline=None)
@given(searches())
def test_every_tree_keeps_the_contract(search) -> None:  # type: ignore[no-untyped-def]
    root, known, stale, options = search
    tree = grow(root, known, stale, **options)
    assert tree.states[0] == root
    assert tree.drafts <= options["budget"]
    assert tree.calls == options["score"].calls <= max(len(root.open) - 1, 0)
    paths = {0: ()}
    for node in range(1, len(tree.states)):
        parent, (commit,) = tree.parents[node], tree.steps[node]
        assert parent < node
        assert commit.position in tree.states[parent].open
        assert tree.states[node] == tree.states[parent].fill(commit)
        assert not tree.states[node].full
        assert options["gamma"] <= tree.masses[node] <= tree.masses[parent]
        paths[node] = (*paths[parent], commit)
    assert list(tree.masses) == sorted(tree.masses, reverse=True)
    assert len(set(paths.values())) == len(paths)
    if options["merge_states"]:
        assert len({state.tokens for state in tree.states}) == len(tree.states)
    else:
        assert tree.merged == 0


@settings(max_examples=200, deadline=None)
@given(searches(), st.integers(1, 20))
def test_a_smaller_budget_gives_the_first_states_of_a_larger_one(search, budget: int) -> None:  # type: ignore[no-untyped-def]
    root, known, stale, options = search
    small = grow(root, known, stale, **{**options, "budget": budget})
    large = grow(root, known, stale, **{**options, "budget": budget + 10})
    assert large.states[: len(small.states)] == small.states
    assert large.masses[: len(small.states)] == small.masses


@settings(max_examples=200, deadline=None)
@given(searches())
def test_the_mass_floor_only_cuts_the_tail(search) -> None:  # type: ignore[no-untyped-def]
    root, known, stale, options = search
    free, floored = (grow(root, known, stale, **{**options, "gamma": gamma}) for gamma in (0.0, 0.1))
    heavy = [state for state, mass in zip(free.states, free.masses, strict=True) if mass >= 0.1]
    assert list(floored.states) == heavy


@settings(max_examples=100, deadline=None)
@given(searches())
def test_the_plain_tree_holds_the_heaviest_paths_of_all(search) -> None:  # type: ignore[no-untyped-def]
    """Against every path there is, written out, with the masses multiplied along it."""
    root, known, stale, options = search
    options = {**options, "merge_states": False, "gamma": 0.0}
    ids_L2, factors_L2 = token_factors(stale, options["hedge"])
    found = []

    def visit(state: BlockState, path: tuple[Commit, ...], mass: float) -> None:
        if path:
            found.append((-mass, len(path), path))
        if len(state.open) == 1 or len(path) == 3:
            return
        q_L = options["score"].row(VirtualState(state, known, tuple(c.position for c in path))).tolist()
        for position in state.open:
            for token, factor in zip(ids_L2[position].tolist(), factors_L2[position].tolist(), strict=True):
                if (product := mass * min(q_L[position], 1.0) * factor) > 0:
                    commit = Commit(position, token)
                    visit(state.fill(commit), (*path, commit), product)

    visit(root, (), 1.0)
    if len(root.open) > 4:
        return  # paths longer than three exist and were not written out
    found.sort()
    tree = grow(root, known, stale, **options)
    best = found[: options["budget"]]
    assert sorted(-mass for mass in tree.masses[1:]) == [mass for mass, _, _ in best]
    paths = [()]
    for parent, commit in zip(tree.parents[1:], commits_of(tree), strict=True):
        paths.append((*paths[parent], commit))
    assert paths[1:] == [path for _, _, path in best]


def by_position(weights: dict[int, float]):  # type: ignore[no-untyped-def]
    """A scorer that knows no path: these weights, renormalised over what is open."""

    def score(nodes: Sequence[VirtualState]) -> torch.Tensor:
        rows = []
        for node in nodes:
            row = torch.zeros(len(node.state.tokens), dtype=torch.float64)
            for position in node.state.open:
                row[position] = weights[position]
            rows.append(row / row.sum())
        return torch.stack(rows)

    return score


def test_merging_adds_the_orders_of_a_state_and_caps_them_by_the_parent() -> None:
    """Three open positions with q = 1/2, 3/8, 1/8 and sure tokens, worked out by hand.

    {1} 1/2, {2} 3/8, {3} 1/8. {1,2} is reached by 1/2 * 3/4 (after 1) and 3/8 * 4/5 (after 2): 0.375 + 0.3 = 0.675,
    but it comes in through {1} with 0.375, and, as its second parent {2} is taken at 3/8, through both with
    min(3/8, 0.675) = 0.375. It ranks behind {2} (as heavy, but deeper) and so both orders count.
    """
    stale = stale_with(torch.tensor([[0.0, -math.inf]] * 4, dtype=torch.float64))
    root = stale.state.fill(Commit(0, 77))
    score = by_position({1: 0.5, 2: 0.375, 3: 0.125})
    options = {"gamma": 0.0, "hedge": 0.6, "score": score}
    merged = grow(root, 0, stale, budget=3, merge_states=True, **options)
    assert [state.open for state in merged.states[1:]] == [(2, 3), (1, 3), (3,)]
    assert merged.masses[1:] == pytest.approx((0.5, 0.375, 0.375))
    assert merged.merged == 1
    assert merged.parents[3] == 1  # the heavier of its two orders
    plain = grow(root, 0, stale, budget=6, merge_states=False, **options)
    assert [state.open for state in plain.states[1:]] == [(2, 3), (1, 3), (3,), (3,), (1, 2), (2,)]
    assert plain.masses[1:] == pytest.approx((0.5, 0.375, 0.375, 0.3, 0.125, 0.125))


def test_a_hedge_is_a_second_child_only_where_the_first_is_unsure() -> None:
    scores = torch.tensor([[0.59, 0.4], [0.6, 0.4], [1.0, 0.0]], dtype=torch.float64).log()
    root = stale_with(scores).state
    tree = grow(
        root,
        0,
        stale_with(scores),
        budget=9,
        gamma=0.0,
        hedge=0.6,
        merge_states=True,
        score=by_position({0: 0.2, 1: 0.3, 2: 0.5}),
    )
    first_level = {
        commit: mass
        for parent, commit, mass in zip(tree.parents[1:], commits_of(tree), tree.masses[1:], strict=True)
        if parent == 0
    }
    assert first_level == pytest.approx({(2, 4): 0.5, (1, 2): 0.18, (0, 0): 0.118, (0, 1): 0.08})


@pytest.mark.parametrize(
    ("temperature", "coupled", "first", "second"),
    [(0.0, True, 0.5, 0.25), (1.0, True, 2 / 3, 1 / 3), (1.0, False, 0.5, 0.25)],
)
def test_token_factors(temperature: float, coupled: bool, first: float, second: float) -> None:
    scores = torch.tensor([[0.5, 0.25]], dtype=torch.float64).log()
    stale = stale_with(scores, temperature=temperature, coupled=coupled)
    assert token_factors(stale, 1.0)[1][0].tolist() == pytest.approx([first, second])
    assert token_factors(stale, 0.0)[1][0].tolist() == pytest.approx([first, 0.0])


def test_a_token_without_rival_has_no_hedge_even_where_hedging_is_always_on() -> None:
    for temperature in (0.0, 1.0):
        stale = stale_with(torch.tensor([[1.0, -math.inf]]), temperature=temperature)
        assert token_factors(stale, 1.0)[1][0].tolist() == [1.0, 0.0]


def test_states_of_tiny_mass_enter_where_heavier_ones_take_two_orders_each() -> None:
    """Three open positions with two tokens each: 6 states of depth 1 and 12 of depth 2, which 24 orders lead to.

    The 16 heaviest orders make only 8 states, so a budget of 16 has room for two of the four that are far lighter.
    """
    scores = torch.tensor([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.99, 1e-4]], dtype=torch.float64).log()
    stale = stale_with(scores)
    root = stale.state.fill(Commit(0, 77))
    score = by_position({1: 1.0, 2: 1.0, 3: 1.0})
    for budget in (14, 16, 18, 30):
        tree = grow(root, 0, stale, budget=budget, gamma=0.0, hedge=1.0, merge_states=True, score=score)
        assert tree.drafts == min(budget, 18)


def test_one_open_position_leaves_nothing_to_draft_and_no_scorer_call() -> None:
    stale = stale_with(torch.zeros(2, 2))
    root = stale.state.fill(Commit(0, 1))
    scorer = HashScorer(0, coarse=False, sharpness=1.0)
    tree = grow(root, 0, stale, budget=5, gamma=0.0, hedge=0.6, merge_states=True, score=scorer)
    assert tree.drafts == scorer.calls == 0


def test_a_state_is_asked_with_the_path_of_its_heaviest_order() -> None:
    asked: list[VirtualState] = []
    weigh = by_position({1: 0.5, 2: 0.375, 3: 0.1, 4: 0.025})

    def score(nodes: Sequence[VirtualState]) -> torch.Tensor:
        asked.extend(nodes)
        return weigh(nodes)

    stale = stale_with(torch.tensor([[0.0, -math.inf]] * 5, dtype=torch.float64))
    root = stale.state.fill(Commit(0, 77))
    grow(root, 0, stale, budget=8, gamma=0.0, hedge=0.6, merge_states=True, score=score)
    paths = {node.state.open: node.path for node in asked}
    assert all(node.known == 0 for node in asked)
    assert paths[(3, 4)] == (1, 2)  # 0.5 * 0.75 outweighs 0.375 * 0.8
