"""Estimates against closed forms, published tables and simulated coverage."""

import math
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeps import statistics
from sweeps.statistics import (
    AGREE,
    Estimate,
    mean,
    more_than_chance,
    ratio_of_sums,
    resampled_sums,
    student_t_quantile,
    wilson,
)

POSITIVE = st.floats(0.1, 1000, allow_nan=False)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    # Newcombe 1998, Statistics in Medicine 17, table I, method 3 (score without continuity correction)
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_equals_published_intervals(successes, n, low, high):
    estimate = wilson(successes, n)
    assert estimate.value == successes / n
    assert estimate.low == pytest.approx(low, abs=6e-5)
    assert estimate.high == pytest.approx(high, abs=6e-5)


def test_wilson_at_the_edges():
    assert wilson(0, 0) == Estimate(value=None, low=None, high=None, n=0)
    assert wilson(0, 5).low == 0.0
    assert wilson(5, 5).high == 1.0


@pytest.mark.parametrize(
    ("p", "degrees", "expected"),
    # Student's t table; one degree of freedom is Cauchy: tan(pi (p - 1/2))
    [(0.975, 1, 12.7062), (0.975, 2, 4.3027), (0.975, 5, 2.5706), (0.975, 30, 2.0423), (0.975, 1000, 1.9623)],
)
def test_t_quantiles_equal_the_table(p, degrees, expected):
    assert student_t_quantile(p, degrees) == pytest.approx(expected, abs=6e-5)


def test_t_quantile_does_not_jump_where_its_method_changes():
    around = [student_t_quantile(0.975, degrees) for degrees in range(195, 206)]
    steps = [a - b for a, b in pairwise(around)]
    assert all(5e-5 < step < 7e-5 for step in steps)


def test_ratio_of_means_is_not_the_mean_of_ratios():
    estimate = ratio_of_sums([100, 10, 40], [10, 10, 10])
    assert estimate.value == 150 / 30
    assert estimate.n == 3
    assert estimate.high / estimate.low > 10  # three prompts that differ tenfold say next to nothing


def test_undefined_is_none():
    assert mean([]).value is None
    assert ratio_of_sums([1, 2], [0, 0]).value is None
    single = mean([4.0])
    assert (single.value, single.low, single.high) == (4.0, None, None)


def test_an_estimate_refuses_what_is_not_finite():
    with pytest.raises(AssertionError, match="undefined numbers are None"):
        Estimate(value=math.nan, low=None, high=None, n=1)


def test_two_prompts_have_no_interval_whether_they_agree_or_not():
    for values in ([48.0, 48.0], [48.0, 49.0]):
        estimate = mean(values)
        assert (estimate.n, estimate.low, estimate.high) == (2, None, None)


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_a_few_prompts_that_agree_have_no_interval(share):
    """Not only equal numbers: also ratios that are equal up to rounding, and zeros."""
    for n in (3, 29):
        above = [share * length for length in range(40, 40 + n)]
        estimate = ratio_of_sums(above, list(range(40, 40 + n)))
        assert (estimate.value, estimate.low, estimate.high) == (pytest.approx(share), None, None)
        assert mean([0.0] * n) == Estimate(value=0.0, low=None, high=None, n=n, why=AGREE)


def test_many_prompts_that_agree_have_an_interval_of_no_width():
    estimate = ratio_of_sums([3.0] * 30, [2.0] * 30)
    assert (estimate.low, estimate.value, estimate.high) == pytest.approx((1.5, 1.5, 1.5))


@pytest.mark.parametrize("n", [3, 4, 6, 16])
def test_counts_that_are_often_equal_are_not_mistaken_for_certainty(n):
    """One prompt in five takes a forward more: nine small samples of ten cover the mean, or have no interval at all."""
    rng = random.Random(n)
    samples = [mean([48 + (rng.random() < 0.2) for _ in range(n)]) for _ in range(600)]
    given = [estimate for estimate in samples if estimate.low is not None]
    wrong = sum(not estimate.low <= 48.2 <= estimate.high for estimate in given)
    assert wrong / len(given) <= 0.13
    assert all(estimate.high > estimate.low for estimate in given)


def test_a_resample_that_divides_by_zero_leaves_no_interval():
    estimate = ratio_of_sums([1.0, 1.0, 1.0], [0.0, 0.0, 5.0])
    assert estimate.value == 0.6
    assert estimate.low is None


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=3, max_size=12), st.floats(0.5, 20))
def test_scaling_one_side_scales_value_and_interval(pairs, factor):
    above, below = [a for a, _ in pairs], [b for _, b in pairs]
    plain, scaled = ratio_of_sums(above, below), ratio_of_sums([factor * a for a in above], below)
    assert scaled.value == pytest.approx(factor * plain.value, rel=1e-9)
    if spread(pairs) > 1e-6:  # below it rounding decides whether the prompts agree
        for one, other in ((plain.low, scaled.low), (plain.high, scaled.high)):
            assert other == pytest.approx(factor * one, rel=1e-9)


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=3, max_size=12))
def test_an_interval_holds_its_value_and_stays_positive(pairs):
    estimate = ratio_of_sums([a for a, _ in pairs], [b for _, b in pairs])
    assert estimate.low is None or 0 < estimate.low <= estimate.value <= estimate.high
    assert estimate.low is not None or spread(pairs) < 1e-6


def spread(pairs):
    ratios = [above / below for above, below in pairs]
    return max(ratios) / min(ratios) - 1


def test_the_width_for_large_samples_is_that_of_the_delta_method():
    rng = np.random.default_rng(3)
    below = rng.uniform(40, 128, size=400)
    above = 2.5 * below * rng.uniform(0.7, 1.3, size=400)
    estimate = ratio_of_sums(list(above), list(below))
    residual = above - estimate.value * below
    error = residual.std(ddof=1) / math.sqrt(400) / below.mean()
    assert estimate.high - estimate.low == pytest.approx(2 * 1.966 * error, rel=0.06)


def test_counts_that_may_be_zero_have_an_interval_that_stops_there():
    estimate = mean([0.0, 0.0, 0.0, 1.0])
    assert estimate.low == 0.0
    assert estimate.high > 0.5


def test_large_cells_are_resampled_in_pieces_of_the_same_distribution(monkeypatch):
    values = np.random.default_rng(1).lognormal(size=(300, 1))
    whole = resampled_sums(values)
    monkeypatch.setattr(statistics, "CHUNK", 60_000)
    pieces = resampled_sums(values)
    assert pieces.shape == whole.shape
    assert pieces.mean() == pytest.approx(whole.mean(), rel=0.01)
    assert pieces.std() == pytest.approx(whole.std(), rel=0.1)
    assert whole.mean() == pytest.approx(values.sum(), rel=0.01)  # a resample has as many prompts as the sample
    assert whole.std() == pytest.approx(values.std() * math.sqrt(300), rel=0.1)  # variance of a sum of 300 draws


@pytest.mark.parametrize("n", [3, 6, 16])
def test_intervals_cover_the_truth_about_as_often_as_they_say(n):
    """Draft-free lengths and accept rates vary by prompt; the true ratio of means is known: 2.5."""
    rng = random.Random(n)
    hits, trials = 0, 600
    for _ in range(trials):
        tokens = [rng.uniform(40, 128) for _ in range(n)]
        forwards = [length / 2.5 * rng.uniform(0.7, 1.3) for length in tokens]
        estimate = ratio_of_sums(tokens, forwards)
        hits += estimate.low <= 2.5 <= estimate.high
    assert 0.9 <= hits / trials <= 0.98


def test_the_same_numbers_give_the_same_interval():
    assert mean([1.0, 5.0, 2.0]) == mean([1.0, 5.0, 2.0])


@pytest.mark.parametrize(
    ("hits", "n", "expected"),
    [
        (0, 8, False),  # of no difference at all nothing follows
        (1, 1, True),  # 0.025
        (1, 2, True),  # 1 - 0.975^2 = 0.0494
        (1, 3, False),  # 1 - 0.975^3 = 0.0731
        (1, 8, False),  # 1 - 0.975^8 = 0.1833
        (2, 8, True),  # 1 - 0.975^8 - 8 * 0.025 * 0.975^7 = 0.0158
        (2, 14, True),  # 1 - 0.975^14 - 14 * 0.025 * 0.975^13 = 0.0467
        (2, 15, False),  # 1 - 0.975^15 - 15 * 0.025 * 0.975^14 = 0.0531
        (0, 0, False),
        (3000, 100_000, True),  # expected 2500, deviation 49
        (2500, 100_000, False),
    ],
)
def test_more_than_chance_is_a_binomial_tail_below_five_per_cent(hits, n, expected):
    assert more_than_chance(hits, n) is expected


def test_differences_on_either_side_are_twice_as_often_chance():
    """One of one: 0.05, as a 95 % interval says; of two: 0.0975; 1 - 0.95^8 - 8 * 0.05 * 0.95^7 = 0.057; then 0.006."""
    assert more_than_chance(1, 1, sides=2)
    assert not more_than_chance(1, 2, sides=2)
    assert not more_than_chance(2, 8, sides=2)
    assert more_than_chance(3, 8, sides=2)


def test_the_tail_is_that_of_exact_fractions():
    p = Fraction(1, 40)
    for n in range(1, 60):
        for hits in range(n + 1):
            below = sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(hits))
            assert more_than_chance(hits, n) is (1 - below <= Fraction(1, 20)), (hits, n)
