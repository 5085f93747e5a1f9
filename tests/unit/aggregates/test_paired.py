"""The difference of two shares over the same prompts: score intervals against a search over the likelihood itself."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeps.paired import paired_difference, score
from sweeps.statistics import wilson

Z = 1.959963984540054
ANSWERS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


def of_counts(gained: int, lost: int, n: int):  # type: ignore[no-untyped-def]
    ours = [True] * gained + [False] * lost + [True] * (n - gained - lost)
    theirs = [False] * gained + [True] * lost + [True] * (n - gained - lost)
    return paired_difference(ours, theirs)


@pytest.mark.parametrize("n", [1, 3, 16, 30, 400])
def test_answers_that_all_agree_leave_room_as_wilson_does(n: int) -> None:
    """Without a differing prompt the score test is that of no success in n: Wilson's interval of a share of 0."""
    estimate = paired_difference([True] * n, [True] * n)
    assert (estimate.value, estimate.n) == (0.0, n)
    assert estimate.high == pytest.approx(Z**2 / (n + Z**2), abs=1e-9) == pytest.approx(wilson(0, n).high, abs=1e-9)
    assert estimate.low == -estimate.high
    assert paired_difference([False] * n, [False] * n) == estimate


def test_no_prompt_has_no_difference() -> None:
    assert paired_difference([], []).value is None


@pytest.mark.parametrize(
    ("gained", "lost", "n"), [(3, 0, 10), (10, 4, 40), (0, 2, 5), (1, 1, 2), (7, 7, 30), (2, 1, 3)]
)
def test_the_ends_are_where_the_score_test_turns(gained: int, lost: int, n: int) -> None:
    """The share of lost prompts under a supposed difference is searched for in the likelihood, not by formula."""

    def searched(difference: float) -> float:
        lost_P = np.linspace(max(0.0, -difference), (1 - difference) / 2, 200_001)
        gained_P, rest_P = lost_P + difference, 1 - 2 * lost_P - difference
        with np.errstate(divide="ignore", invalid="ignore"):
            likelihood_P = sum(
                (count * np.log(np.maximum(share_P, 0)) if count else np.zeros_like(share_P))
                for count, share_P in ((gained, gained_P), (lost, lost_P), (n - gained - lost, rest_P))
            )
        p = float(lost_P[int(np.nanargmax(likelihood_P))])
        return (gained - lost - n * difference) / math.sqrt(n * (2 * p + difference * (1 - difference)))

    estimate = of_counts(gained, lost, n)
    assert estimate.low is not None
    assert estimate.high is not None
    for end, sign in ((estimate.low, 1), (estimate.high, -1)):
        if abs(end) < 1:
            assert searched(end) == pytest.approx(sign * Z, abs=2e-3)
            assert score(gained, lost, n, end) == pytest.approx(sign * Z, abs=1e-5)


@given(ANSWERS)
def test_an_interval_holds_its_value_and_turns_round_with_the_sides(answers: list[tuple[bool, bool]]) -> None:
    ours, theirs = [a for a, _ in answers], [b for _, b in answers]
    estimate, turned = paired_difference(ours, theirs), paired_difference(theirs, ours)
    assert estimate.value == (sum(ours) - sum(theirs)) / len(answers)
    assert estimate.low is not None
    assert estimate.high is not None
    assert -1 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.low < estimate.high
    assert (turned.low, turned.high) == (-estimate.high, -estimate.low)


@given(ANSWERS, st.randoms(use_true_random=False))
def test_only_the_pairs_matter_not_their_order(answers: list[tuple[bool, bool]], rng: random.Random) -> None:
    mixed = rng.sample(answers, len(answers))
    assert paired_difference(*zip(*mixed, strict=True)) == paired_difference(*zip(*answers, strict=True))


@pytest.mark.parametrize(
    ("n", "both", "ours", "theirs"), [(10, 0.5, 0.2, 0.1), (30, 0.7, 0.1, 0.05), (100, 0.3, 0.1, 0.1)]
)
def test_it_covers_the_truth_about_as_often_as_it_says(n: int, both: float, ours: float, theirs: float) -> None:
    draws = np.random.default_rng(7).multinomial(n, [both, ours, theirs, 1 - both - ours - theirs], size=600)
    ends = {(int(g), int(b)): of_counts(int(g), int(b), n) for _, g, b, _ in draws}
    inside = [ends[int(g), int(b)].low <= ours - theirs <= ends[int(g), int(b)].high for _, g, b, _ in draws]
    assert 0.93 <= np.mean(inside) <= 0.99
