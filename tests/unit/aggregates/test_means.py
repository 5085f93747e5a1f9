"""Means over tasks: values by hand, intervals against closed forms and against simulated truth."""

import math
import random

import pytest

from sweeps.means import arithmetic, geometric, over_seeds
from sweeps.statistics import Estimate, ratio_of_sums


def estimate(value, factor, n=8):
    return Estimate(value=value, low=value / factor, high=value * factor, n=n)


def test_values_are_the_two_means():
    tasks = [estimate(2.0, 1.1), estimate(8.0, 1.1)]
    assert geometric(tasks).value == pytest.approx(4.0)
    assert arithmetic(tasks).value == pytest.approx(5.0)
    assert geometric(tasks).n == arithmetic(tasks).n == 16


def test_one_task_keeps_its_own_interval():
    for mean in (geometric, arithmetic):
        alone = mean([estimate(3.0, 1.2)])
        assert (alone.low, alone.value, alone.high) == pytest.approx((2.5, 3.0, 3.6))


def test_equal_tasks_narrow_the_interval_as_independent_ones_do():
    """Two tasks of 8 prompts: standard error over sqrt(2), 14 degrees of freedom instead of 7 (2.1448 and 2.3646)."""
    for mean in (geometric, arithmetic):
        both = mean([estimate(3.0, 1.2), estimate(3.0, 1.2)])
        expected = math.log(1.2) / 2.3646 / math.sqrt(2) * 2.1448
        assert math.log(both.high / both.low) / 2 == pytest.approx(expected, rel=1e-3)


def test_a_task_without_interval_leaves_the_mean_without_one():
    bare = Estimate(value=2.0, low=None, high=None, n=2)
    for mean in (geometric, arithmetic, over_seeds):
        made = mean([estimate(2.0, 1.1), bare])
        assert (made.value, made.low, made.high) == (pytest.approx(2.0), None, None)


def test_an_undefined_or_zero_task_leaves_no_mean():
    for value in (None, 0.0):
        for mean in (geometric, arithmetic, over_seeds):
            assert mean([estimate(2.0, 1.1), Estimate(value=value, low=None, high=None, n=0)]).value is None
    assert geometric([]).value is arithmetic([]).value is None


def test_seeds_share_their_prompts_and_do_not_narrow_the_interval():
    made = over_seeds([estimate(2.0, 1.2), estimate(4.0, 1.2)])
    assert (made.low, made.value, made.high, made.n) == (pytest.approx(2.5), 3.0, pytest.approx(3.6), 8)


@pytest.mark.parametrize("mean", [geometric, arithmetic])
def test_intervals_cover_the_truth_about_as_often_as_they_say(mean):
    """Two tasks of 8 and 4 prompts whose true ratios are 2 and 4."""
    rng = random.Random(1)
    truth = {geometric: math.sqrt(8), arithmetic: 3.0}[mean]
    hits, trials = 0, 400
    for _ in range(trials):
        tasks = []
        for ratio, n in ((2, 8), (4, 4)):
            tokens = [rng.uniform(40, 128) for _ in range(n)]
            tasks.append(ratio_of_sums(tokens, [length / ratio * rng.uniform(0.7, 1.3) for length in tokens]))
        made = mean(tasks)
        hits += made.low <= truth <= made.high
    assert 0.9 <= hits / trials <= 0.98
