"""How estimates without an interval are spoken of."""

from reports.text import no_interval, number, percent, unsaid
from sweeps.statistics import Estimate


def bare(n: int) -> Estimate:
    return Estimate(value=1.0, low=None, high=None, n=n)


def test_why_there_is_no_interval() -> None:
    assert no_interval([bare(1)]) == no_interval([bare(1), bare(1)]) == "no interval (1 prompt)"
    assert no_interval([bare(1), bare(2)]) == "no interval (1 to 2 prompts)"
    assert no_interval([bare(8)]) == "no interval (8 prompts, too few or too alike)"
    assert not bare(8).has_interval
    assert Estimate(value=1.0, low=0.0, high=2.0, n=8).has_interval


def test_comparisons_without_an_interval_are_counted_in_one_sentence() -> None:
    assert unsaid([], "pair") == ""
    assert unsaid([bare(1)], "pair") == "1 pair has no interval (1 prompt): nothing can be said of it."
    assert unsaid([bare(1)] * 2, "pair") == "2 pairs have no interval (1 prompt): nothing can be said of them."


def test_what_rounds_to_zero_has_no_sign():
    assert (number(-0.004), number(-0.04, 1), percent(-0.0004)) == ("0.00", "0.0", "0.0 %")
    assert (number(-0.006), percent(-0.006)) == ("-0.01", "-0.6 %")
