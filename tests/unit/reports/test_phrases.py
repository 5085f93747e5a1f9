"""Ratios in words: below 1 nothing is called fewer, and a missing interval says why it is missing."""

import pytest

from reports.phrases import chance, evidence, fewer, inverted, span
from sweeps.statistics import Estimate


def ratio(value, low, high, n=8):
    return Estimate(value=value, low=low, high=high, n=n)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (ratio(2.0, 1.8, 2.2), "2.00 times fewer forwards than ssd (1.80 – 2.20; 8 prompts)"),
        (ratio(0.95, 0.80, 1.25), "1.05 times as many forwards as ssd (0.80 – 1.25; 8 prompts)"),
        (ratio(0.5, None, None, 2), "2.00 times as many forwards as ssd (no interval from so few prompts; 2 prompts)"),
        (ratio(0.999, 0.9, 1.1), "as many forwards as ssd (ratio 1.00; 0.90 – 1.10; 8 prompts)"),
        (ratio(1.0, None, None), "as many forwards as ssd (ratio 1.00; no interval: all prompts agree; 8 prompts)"),
    ],
)
def test_a_ratio_is_said_the_way_it_points(estimate, text):
    assert fewer(estimate, "ssd") == text


def test_turning_a_ratio_round_turns_its_interval_round():
    assert inverted(ratio(0.5, 0.25, 0.8)) == ratio(2.0, 1.25, 4.0)
    assert inverted(ratio(0.5, 0.0, 0.8)).high is None  # nothing can be said of one over zero


def test_what_a_number_rests_on():
    assert evidence(ratio(2.0, 1.5, 2.5, 1)) == "1.50 – 2.50; 1 prompt"
    assert span(ratio(2.0, None, None, 1)) == "no interval from so few prompts"
    assert span(ratio(2.0, None, None, 12)) == "no interval: all prompts agree"


def test_counts_that_chance_may_give_are_called_so():
    assert chance(1, 8) == "1 of 8 is what chance may give"
    assert chance(2, 8) == chance(0, 8) == chance(1, 2) == ""
    assert chance(2, 8, sides=2) == "2 of 8 is what chance may give"
