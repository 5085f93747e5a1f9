"""The steps that may follow a state: against all of them, written out, by exact arithmetic."""

from fractions import Fraction
from itertools import combinations, islice, product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.decoding.likely_steps import Listed, likely_steps
from workers.decoding.state import Commit

EIGHTHS = st.integers(0, 8).map(lambda n: n / 8)
ROWS = st.lists(st.tuples(EIGHTHS, EIGHTHS), max_size=6)


def chance_of(rows: list[tuple[float, float]], filled: tuple[int, ...]) -> Fraction:
    """Product over all rows, as fractions."""
    return prod(
        (Fraction(p) * Fraction(sure) if row in filled else 1 - Fraction(p) for row, (p, sure) in enumerate(rows)),
        start=Fraction(1),
    )


def steps(rows: list[tuple[float, float]]) -> list[tuple[float, tuple[Commit, ...]]]:
    """What comes of rows (P, p(token)) at positions 10, 12, .. with tokens 0, 1, .."""
    places = range(10, 10 + 2 * len(rows), 2)
    return list(likely_steps(places, [p for p, _ in rows], range(len(rows)), [sure for _, sure in rows]))


@settings(max_examples=500, deadline=None)
@given(ROWS)
def test_every_step_that_has_a_chance_comes_once_with_its_chance_heaviest_first(
    rows: list[tuple[float, float]],
) -> None:
    every = [filled for size in range(1, len(rows) + 1) for filled in combinations(range(len(rows)), size)]
    expected = {
        tuple(Commit(10 + 2 * row, row) for row in filled): chance_of(rows, filled)
        for filled in every
        if chance_of(rows, filled) > 0
    }
    found = steps(rows)
    assert {step for _, step in found} == set(expected)
    assert len(found) == len(expected)
    for chance, step in found:
        assert chance == pytest.approx(float(expected[step]), rel=1e-12)
        assert list(step) == sorted(step)
    chances = [chance for chance, _ in found]
    assert chances == sorted(chances, reverse=True), "exactly, rounding or not"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), max_size=6))
def test_with_certain_tokens_the_first_step_fills_what_is_likelier_than_not(chances: list[float]) -> None:
    """Base set and single best position by the words of the specification."""
    found = [step for _, step in steps([(p, 1.0) for p in chances])]
    if any(p > 0.5 for p in chances):
        assert [commit.token for commit in found[0]] == [row for row, p in enumerate(chances) if p > 0.5]
    elif any(chances):
        assert [commit.token for commit in found[0]] == [chances.index(max(chances))]
    else:
        assert found == []


def test_alternatives_flip_the_least_certain_position_first() -> None:
    rows = [(0.9, 1.0), (0.4, 1.0), (0.7, 1.0), (0.05, 1.0)]
    tokens = [tuple(commit.token for commit in step) for _, step in steps(rows)]
    assert tokens[:4] == [(0, 2), (0, 1, 2), (0,), (0, 1)], "1 is flipped at 2/3, 2 at 3/7, both at 2/7"


def test_ties_go_to_fewer_flips_and_lower_positions() -> None:
    tokens = [tuple(commit.token for commit in step) for _, step in steps([(0.5, 1.0)] * 3)]
    assert tokens == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]


def test_a_few_of_very_many_steps_are_found_at_once() -> None:
    """2^512 sets, all of them equal or none: an enumeration of them would not end."""
    for p in (0.5, 0.499, 0.9):
        found = list(islice(likely_steps(range(512), [p] * 512, [0] * 512, [1.0] * 512), 100))
        assert len(found) == 100
        assert len({step for _, step in found}) == 100


def test_a_sure_position_is_in_every_step_and_an_impossible_one_in_none() -> None:
    for rows in product([(1.0, 0.5), (0.0, 1.0), (0.5, 0.5)], repeat=3):
        for _, step in steps(list(rows)):
            assert {row for row, (p, _) in enumerate(rows) if p == 1.0} <= {commit.token for commit in step}
            assert all(rows[commit.token][0] > 0 for commit in step)


def test_listed_items_are_drawn_when_they_are_asked_for() -> None:
    drawn = []

    def source():  # type: ignore[no-untyped-def]
        for number in range(2):
            drawn.append(number)
            yield 1.0 / (1 + number), (Commit(number, 0),)

    listed = Listed(source())
    assert drawn == []
    assert listed.at(0) == (1.0, (Commit(0, 0),))
    assert drawn == [0]
    assert listed.at(1) == (0.5, (Commit(1, 0),))
    assert listed.at(2) is None
    assert listed.at(0) == (1.0, (Commit(0, 0),))
