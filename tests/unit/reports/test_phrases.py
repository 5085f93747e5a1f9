"""Ratios in words: below 1 nothing is called fewer, and a missing interval says why it is missing."""

import pytest

from reports.phrases import chance, evidence, fewer, inverted, span
from sweeps.means import arithmetic, geometric, over_seeds
from sweeps.statistics import Estimate, ratio_of_sums


def ratio(value, low, high, n=8, why=""):
    return Estimate(value=value, low=low, high=high, n=n, why=why)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (ratio(2.0, 1.8, 2.2), "2.00 times fewer forwards than ssd (1.80 – 2.20; 8 prompts)"),
        (ratio(0.95, 0.80, 1.25), "1.05 times as many forwards as ssd (0.80 – 1.25; 8 prompts)"),
        (
            ratio(0.5, None, None, 2, "fewer than 3 prompts"),
            "2.00 times as many forwards as ssd (no interval: fewer than 3 prompts; 2 prompts)",
        ),
        (ratio(0.999, 0.9, 1.1), "as many forwards as ssd (ratio 1.00; 0.90 – 1.10; 8 prompts)"),
        (ratio(1.0, None, None), "as many forwards as ssd (ratio 1.00; no interval; 8 prompts)"),
    ],
)
def test_a_ratio_is_said_the_way_it_points(estimate, text):
    assert fewer(estimate, "ssd") == text


def test_turning_a_ratio_round_turns_its_interval_round():
    assert inverted(ratio(0.5, 0.25, 0.8)) == ratio(2.0, 1.25, 4.0)
    assert inverted(ratio(0.5, 0.0, 0.8)).high is None  # nothing can be said of one over zero


def test_what_a_number_rests_on():
    assert evidence(ratio(2.0, 1.5, 2.5, 1)) == "1.50 – 2.50; 1 prompt"
    assert span(ratio_of_sums([4], [2])) == "no interval: fewer than 3 prompts"
    assert span(ratio_of_sums([4] * 12, [2] * 12)) == "no interval: all prompts agree"


def test_a_mean_over_tasks_has_the_tasks_reason_whatever_their_prompts_are_together():
    """Two tasks of two prompts each, which differ: four prompts together, yet no task has an interval."""
    few = ratio_of_sums([44, 17], [20, 10]), ratio_of_sums([41, 13], [20, 10])
    alike, sound = ratio_of_sums([4] * 5, [2] * 5), ratio_of_sums([4, 5, 6], [2, 2, 2])
    for mean in (arithmetic, geometric):
        assert evidence(mean(few)) == "no interval: fewer than 3 prompts in 2 tasks; 4 prompts"
        assert evidence(mean(few[:1])) == "no interval: fewer than 3 prompts; 2 prompts"
        assert evidence(mean([few[0], sound])) == "no interval: fewer than 3 prompts in a task; 5 prompts"
        assert evidence(mean([alike, sound])) == "no interval: all prompts agree in a task; 8 prompts"
        both = "no interval: fewer than 3 prompts or all prompts agree in 2 tasks; 7 prompts"
        assert evidence(mean([few[0], alike])) == both
    assert span(over_seeds(few)) == "no interval: fewer than 3 prompts in 2 seeds"


def test_counts_that_chance_may_give_are_called_so():
    assert chance(1, 8) == "1 of 8 is what chance may give"
    assert chance(2, 8) == chance(0, 8) == chance(1, 2) == ""
    assert chance(2, 8, sides=2) == "2 of 8 is what chance may give"
