"""The final number of an answer: where it is, how it is written, and exact comparison."""

import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.tasks.numbers import final_number, gold_number, score_number

READINGS = {
    # stop words in ordinary reasoning, invented next questions
    "Identify the Question first. 6*7=42 #### 42": 42,
    "#### 42\n\nQuestion: Tom has 9 pens... #### 9": 42,
    "#### \n#### 7": 7,
    "#### none, I mean 5 apples": 5,
    # shapes
    "The total is 72 clips, altogether.": 72,
    "profit was $70,000.": 70000,
    "$29.00": 29,
    "29.50": Fraction(59, 2),
    "1,234,567": 1234567,
    "1,2345": 2345,
    ".5": Fraction(1, 2),
    "3.": 3,
    "72 , .": 72,
    "5/2": Fraction(5, 2),
    "50%": 50,
    "12 apples and 3 pears": 3,
    "７２": 72,
    "１，２３４．５％": Fraction(2469, 2),
    "٤٢": 42,
    "1e3": 1000,
    "2.5E-1": Fraction(1, 4),
    "72km": 72,
    "€5": 5,
    # boxes
    r"\boxed{72}. Check: 70 + 2 = 3 + 69": 72,
    r"\boxed{70{,}000} and 3 more": 70000,
    r"\boxed{\$70\,000}": 70000,
    r"\boxed{\frac{5}{2}}": Fraction(5, 2),
    r"\boxed{-\dfrac{5}{2}}": Fraction(-5, 2),
    r"\boxed{\text{seventy}} that is 70": 70,
    # signs
    "-3": -3,
    "−3": -3,
    "－3": -3,
    "-1,234.5": Fraction(-2469, 2),
    "10-3 = 7": 7,
    "10-7": 7,
    "10 - 7": 7,
    "10 -7": 7,
    "(4)-7": 7,
    "= -7": -7,
    "it is -7.": -7,
    "**-7**": -7,
    "-$7": -7,
    "$-7": -7,
    "- 7 apples": 7,
    "covid-19": 19,
    "+5": 5,
}
NOTHING = ["", "no number here", ", . -", "$", "####", "####  \n", r"\boxed{}", "0/0", "1e999999999", "9" * 5000, "½"]


@pytest.mark.parametrize("text", READINGS)
def test_number_is_read_as_documented(text: str) -> None:
    found = final_number(text)
    assert found is not None
    assert found[0] == READINGS[text]


@pytest.mark.parametrize("text", NOTHING, ids=lambda text: ascii(text[:12]))
def test_no_number_is_counted_wrong_without_an_exception(text: str) -> None:
    assert final_number(text) is None
    assert not score_number("72", text).correct


@pytest.mark.parametrize(
    ("gold", "text", "correct"),
    [
        ("2 to... #### -3", "-3", True),
        ("-3", "3", False),
        ("-1,234.5", "-1234.5", True),
        ("-3", "−3", True),
        ("7", "10-3 = 7", True),
        ("7", "10-7", True),
        ("-7", "10-7", False),
        ("#### +5", "5", True),
        ("29", "$29.00", True),
        ("29", "29.50", False),
        ("0.5", ".5", True),
        ("2.5", "5/2", True),
        ("50", "50%", True),
        ("72.0", "72", True),
        ("1E+3", "1,000", True),
        ("12345678901234567890", "12345678901234567890", True),
        ("12345678901234567890", "12345678901234567891", False),
        ("0.1", "0.1000000000000000055511151231257827", False),
    ],
)
def test_scores(gold: str, text: str, correct: bool) -> None:
    assert score_number(gold, text).correct is correct


@pytest.mark.parametrize("gold", ["", "ten", "1 2", "#### 5 apples", "1/0", "--", "5-3"])
def test_a_gold_that_is_not_one_number_is_refused(gold: str) -> None:
    with pytest.raises(ValueError, match="not one number"):
        gold_number(gold)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12))
def test_every_decimal_reads_back_exactly_with_and_without_thousands(value: Decimal) -> None:
    for written in (f"{value:f}", f"{value:,f}"):
        assert gold_number(written) == Fraction(value)
        found = final_number(f"So the answer is {written}.")
        assert found is not None
        assert found[0] == Fraction(value)


@given(st.text())
def test_any_text_is_scored(text: str) -> None:
    score = score_number("5", text)
    assert score.correct == (score.extracted is not None and Fraction(score.extracted.replace(",", "")) == 5)


@pytest.mark.parametrize("text", ["1" * 10**6, "1,111" * 10**5, "-" * 10**6, "\\boxed{" * 10**5, "####" * 10**5])
def test_huge_texts_take_little_time(text: str) -> None:
    started = time.process_time()
    score_number("5", text)
    assert time.process_time() - started < 3
