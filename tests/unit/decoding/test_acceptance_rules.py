"""Each acceptance rule by itself, on numbers worked out by hand."""

import math
from typing import get_args

import pytest
import torch

from sweeps.spec import Acceptance, DecodeSpec
from workers.decoding.acceptance import RULES
from workers.decoding.rule import Draws, Verdict
from workers.decoding.state import BlockState, Commit
from workers.decoding.tree import DraftTree
from workers.decoding.verification import Verification

Pairs = tuple[tuple[int, int], ...]
A, B, C = (0, 0), (1, 0), (2, 0)
OTHER_A, OTHER_C = (0, 1), (2, 1)
PROBABILITIES = ((0.9, 0.1), (0.71, 0.29), (1.0, 0.0))
OWN: Pairs = (A, C)


def verdict_of(own: Pairs, rows: tuple[tuple[float, ...], ...] = PROBABILITIES, *, first: int = 0) -> Verdict:
    """A verdict about open positions from `first` on with these probabilities, as if the target took `own`."""
    logits_RV = torch.tensor(rows, dtype=torch.float64).log()
    unread_R = torch.zeros(len(rows), dtype=torch.int64)
    return Verdict(
        step=tuple(Commit(*pair) for pair in own),
        margin=math.inf,
        open=tuple(range(first, first + len(rows))),
        logits_RV=logits_RV,
        draws=Draws(scores_RV=logits_RV, token_R=unread_R, confidence_R=unread_R.double()),
    )


def accepted(rule: Acceptance, drafted: Pairs, verdict: Verdict, tau: float = 0.8, **options: object) -> Pairs:
    spec = DecodeSpec(commit="threshold", tau=tau, **options)  # type: ignore[arg-type]
    (found,) = RULES[rule]([tuple(Commit(*pair) for pair in drafted)], verdict, spec)
    return tuple(tuple(commit) for commit in found)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("drafted", "exact", "subset", "cut", "product"),
    [
        ((A, C), (A, C), (A, C), (A, C), (A, C)),  # the own step
        ((C, A), (C, A), (C, A), (C, A), (C, A)),  # whatever the order it is written in
        ((A,), (), (A,), (A,), (A,)),  # a part, .9
        ((C,), (), (C,), (C,), (C,)),
        ((A, B), (), (), (A,), ()),  # sqrt(.9 * .71) is .7994: less than tau, as the arithmetic mean .805 is not
        ((B, C), (), (), (C,), (B, C)),  # sqrt(.71) is .8426, although .71 is less than tau
        ((A, B, C), (), (), (A, C), (A, B, C)),  # the cube root of .639 is .8613
        ((B,), (), (), (), ()),
        ((OTHER_A, C), (), (), (C,), ()),  # sqrt(.1)
        ((A, OTHER_C), (), (), (A,), ()),  # a token that cannot be: 0
        ((OTHER_C,), (), (), (), ()),
    ],
)
def test_what_each_rule_accepts(drafted: Pairs, exact: Pairs, subset: Pairs, cut: Pairs, product: Pairs) -> None:
    verdict = verdict_of(OWN)
    found = {rule: accepted(rule, drafted, verdict) for rule in RULES}
    assert found == {"exact": exact, "subset": subset, "cut": cut, "product": product}


@pytest.mark.parametrize("rule", get_args(Acceptance))
def test_of_several_steps_each_is_judged_as_it_is_alone(rule: Acceptance) -> None:
    """The own step among them, one twice, in any order, and none."""
    steps: tuple[Pairs, ...] = ((B,), (A, C), (A, B, C), (OTHER_A, C), (A,), (B, C), (A,), (C, A), (A, B))
    verdict, spec = verdict_of(OWN), DecodeSpec(commit="threshold", tau=0.8)
    for asked in (steps, steps[::-1], steps[:1], ()):
        found = RULES[rule]([tuple(Commit(*pair) for pair in step) for step in asked], verdict, spec)
        assert [tuple(map(tuple, step)) for step in found] == [accepted(rule, step, verdict) for step in asked]


def test_every_rule_accepts_the_own_step_however_unsure_it_is() -> None:
    """Where nothing exceeds tau the target fills its most confident position all the same."""
    for rule in RULES:
        assert accepted(rule, (B,), verdict_of((B,)), tau=0.99) == (B,)
    assert accepted("product", (B,), verdict_of((A,)), tau=0.99) == ()


def test_a_mean_at_tau_exactly_is_enough_where_the_target_itself_wants_more() -> None:
    """Halves and quarters are exact: p = tau is not above it, so the position is no part of a larger own step."""
    for rows, tau in ((((0.5, 0.5),) * 2, 0.5), (((0.25,) * 4,) * 2, 0.25)):
        verdict = verdict_of((A,), rows)
        assert accepted("product", (B,), verdict, tau=tau) == (B,)
        assert accepted("product", (A, B), verdict, tau=tau) == (A, B)
        assert accepted("product", (A, B), verdict, tau=math.nextafter(tau, 1)) == ()
        assert accepted("subset", (B,), verdict, tau=tau) == accepted("cut", (B,), verdict, tau=tau) == ()


@pytest.mark.parametrize(
    ("temperature", "drafted", "top1", "sampled"),
    [
        (0.0, (A,), True, True),  # .9; nothing is tempered at T = 0
        (2.0, (A,), True, False),  # 3/4 tempered: the square roots are as 3 to 1
        (0.5, (B,), False, True),  # .71 against .5041/.5882 = .857
        (2.0, (OTHER_A,), False, False),
        (2.0, (C,), True, True),  # certain at every temperature
        (2.0, (A, C), True, True),  # sqrt(3/4) is .866
    ],
)
def test_a_sampled_confidence_is_tempered(temperature: float, drafted: Pairs, top1: bool, sampled: bool) -> None:
    verdict = verdict_of((B, OTHER_C))
    for confidence, expected in (("top1", top1), ("sampled", sampled)):
        found = accepted("product", drafted, verdict, temperature=temperature, confidence=confidence)
        assert found == (drafted if expected else ())


def test_positions_are_those_of_the_block_not_of_the_open_rows() -> None:
    verdict = verdict_of(((5, 0),), first=5)
    assert accepted("product", ((5, 0), (7, 0)), verdict) == ((5, 0), (7, 0))
    assert accepted("product", ((6, 0),), verdict) == ()


def tree_of_steps(*drafts: tuple[int, Pairs]) -> DraftTree:
    """A tree below an untouched block of five: parent and step of each draft."""
    root = BlockState((9,) * 5, (0, 1, 2, 3, 4))
    states, steps = [root], [tuple[Commit, ...]()]
    for parent, pairs in drafts:
        steps.append(tuple(Commit(*pair) for pair in pairs))
        states.append(states[parent].fill(*steps[-1]))
    parents = (-1, *(parent for parent, _ in drafts))
    return DraftTree(states=tuple(states), parents=parents, steps=tuple(steps), masses=(1.0,) * len(states))


def walk(tree: DraftTree, own: dict[int, Pairs], **options: object) -> tuple[tuple[int, ...], tuple[Pairs, ...]]:
    """Nodes and steps of the walk over a tree whose nodes' own steps are given; other nodes may not be judged."""
    spec = DecodeSpec(commit="threshold", tau=0.8)
    verdicts = {node: verdict_of(pairs, ((0.5, 0.5),) * 5) for node, pairs in own.items()}
    walked = Verification(**options).walk(tree, verdicts.__getitem__, spec)  # type: ignore[arg-type]
    return walked.nodes, tuple(tuple((c.position, c.token) for c in step) for step in walked.steps)


def test_the_own_step_goes_before_a_lower_child() -> None:
    tree = tree_of_steps((0, (A,)), (0, (A, B)))
    own = {0: (A, B), 1: (B,), 2: (C,)}
    assert walk(tree, own, acceptance="subset") == ((0, 2), ((A, B), (C,)))


def test_of_parts_the_lowest_child_is_taken_and_the_walk_goes_on_from_there() -> None:
    tree = tree_of_steps((0, (B,)), (0, (A,)), (1, (A,)))
    own = {0: (A, B, C), 1: (A, C), 3: (C,)}
    assert walk(tree, own, acceptance="subset") == ((0, 1, 3), ((B,), (A,), (C,)))
    assert walk(tree, {0: (A, B, C)}, acceptance="exact") == ((0,), ((A, B, C),))


def test_a_cut_ends_the_walk_with_the_part_and_only_where_nothing_is_accepted_whole() -> None:
    tree = tree_of_steps((0, (A, (3, 0))), (1, (B,)), (0, (B, (4, 0))))
    assert walk(tree, {0: (A, B)}, acceptance="cut") == ((0,), ((A,),))
    assert walk(tree, {0: (A, B)}, acceptance="subset") == ((0,), ((A, B),))
    whole = tree_of_steps((0, (A, (3, 0))), (0, (B,)))
    assert walk(whole, {0: (A, B), 2: (A,)}, acceptance="cut") == ((0, 2), ((B,), (A,)))


def test_max_commit_takes_the_way_that_commits_the_most_and_of_equals_the_lowest_last_node() -> None:
    """A walk that ends in node 1 commits two, in node 3 three, in nodes 2 and 4 four alike."""
    tree = tree_of_steps((0, (A,)), (0, (B,)), (2, (A,)), (2, (C,)))
    own: dict[int, Pairs] = {0: (A, B, C), 1: (C,), 2: (A, C, (3, 0)), 3: (C,), 4: (A, (3, 0))}
    assert walk(tree, own, acceptance="subset") == ((0, 1), ((A,), (C,)))
    assert walk(tree, own, acceptance="subset", max_commit=True) == ((0, 2), ((B,), (A, C, (3, 0))))
    assert walk(tree, own, acceptance="cut", max_commit=True) == ((0, 2), ((B,), (A, C, (3, 0))))
    assert walk(tree, {0: (A, B, C)}, acceptance="exact", max_commit=True) == ((0,), ((A, B, C),))
