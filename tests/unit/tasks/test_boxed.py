"""Boxed answers: which box counts, what is equal, and that no answer can hang or break the grader."""

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.tasks.boxed import Comparer, gold_box, score_boxed
from workers.tasks.boxes import last_box

CASES = [
    ("1/2", r"\boxed{\frac{1}{2}}", True),
    ("1/2", r"\boxed{\frac{1}{3}}", False),
    ("1/2", r"\boxed{\frac12}", True),
    ("1/2", r"\boxed{0.5}", True),
    ("1/2", r"\boxed{2} wait, \boxed{\dfrac{1}{2}}", True),
    ("1/2", r"\boxed{\frac{1}{2}} wait, \boxed{2}", False),
    ("1/2", r"\fbox{1/2}", True),
    ("1/2", r"\boxed{\frac{1}{2", False),
    ("1/2", r"\boxed{}", False),
    ("1/2", r"\boxed{\text{(A) }1/2}", False),  # documented: as math-verify decides
    ("1/2", "1/2", False),  # documented: no box, no answer
    (r"28\%", r"\boxed{28}", True),
    (r"28\%", r"\boxed{28 percent}", True),
    (r"28\%", r"\boxed{28\text{ percent}}", True),
    (r"28\%", r"\boxed{0.28}", True),  # documented: as math-verify decides
    (r"28\%", r"\boxed{27}", False),
    (r"\$18.90", r"\boxed{18.9}", True),
    ("x^2+2x+1", r"\boxed{(x+1)^2}", True),
    (r"so \boxed{7} it is", r"\boxed{7.0}", True),
    ("5 * 3 = 15\n#### 15", r"\boxed{15}", True),
    (r"(1,2)", r"\boxed{(2,1)}", False),
]


@pytest.mark.parametrize(("gold", "text", "correct"), CASES)
def test_cases(gold: str, text: str, correct: bool) -> None:
    assert score_boxed(gold, text).correct is correct


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("", None),
        (r"\boxed{a{b}c}", "a{b}c"),
        (r"\boxed {5}", "5"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{1} \boxed{2", "1"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"} } \boxed{4}", "4"),
        (r"\mbox{5}", None),
        ("\\boxed{" * 5 + "1" + "}" * 2, "1"),
    ],
)
def test_last_closed_box(text: str, content: str | None) -> None:
    assert last_box(text) == content


@given(st.text(alphabet=r"\boxed{} 12", max_size=60))
def test_a_box_added_at_the_end_is_the_one_that_counts(text: str) -> None:
    assert last_box(text + " \n" + r"\boxed{77}") == "77"


@pytest.mark.parametrize("gold", ["", "  ", "#### "])
def test_an_empty_gold_is_refused(gold: str) -> None:
    with pytest.raises(ValueError, match="empty"):
        gold_box(gold)


@pytest.mark.parametrize(
    "content", ["\ud800", "\0", "(" * 900, r"\frac{1}{0}", "x" * 10**6, r"\int", r"\begin{matrix}", "\u2028", "$$$"]
)
def test_hostile_content_is_wrong_and_storable(content: str) -> None:
    score = score_boxed("5", rf"\boxed{{{content}}}")
    assert not score.correct
    score.reason.encode()
    assert score.extracted is None or len(score.extracted.encode()) < 100_000


@pytest.fixture
def hurried() -> Iterator[Comparer]:
    comparer = Comparer(seconds=0.5)
    yield comparer
    comparer.close()


def test_an_endless_comparison_is_given_up_and_the_next_one_works(hurried: Comparer) -> None:
    assert hurried.compare("1", "1.0") == (True, "")
    started = time.monotonic()
    equal, why = hurried.compare("5", "9^{9^{9^{9^9}}}")
    assert (equal, why) == (False, "not compared within 0.5 s or the memory limit")
    assert time.monotonic() - started < 5
    assert hurried.compare("1/2", "0.5") == (True, "")


def test_threads_share_one_server(hurried: Comparer) -> None:
    results: dict[int, bool] = {}

    def one(i: int) -> None:
        results[i] = hurried.compare(str(i), f"{i // 2 * 2}.0")[0]

    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: i % 2 == 0 for i in range(6)}
