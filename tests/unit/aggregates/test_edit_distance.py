"""Levenshtein's distance against its definition as a table, and its laws."""

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.edit_distance import edit_distance, edit_share

IDS = st.lists(st.integers(0, 3), max_size=14)


def by_definition(one: list[int], other: list[int]) -> int:
    """The fewest edits, from the last tokens of both: match, or the best of replace, insert and delete."""

    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        same = one[i - 1] == other[j - 1]
        return min(of(i - 1, j - 1) + (not same), of(i - 1, j) + 1, of(i, j - 1) + 1)

    return of(len(one), len(other))


@settings(max_examples=400, deadline=None)
@given(IDS, IDS)
def test_it_is_the_distance_of_the_definition(one: list[int], other: list[int]) -> None:
    assert edit_distance(one, other) == edit_distance(other, one) == by_definition(one, other)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=60, max_size=90), st.lists(st.integers(0, 50), min_size=60, max_size=90))
def test_longer_than_a_machine_word(one: list[int], other: list[int]) -> None:
    assert edit_distance(one, other) == by_definition(one, other)


def test_by_hand() -> None:
    kitten, sitting = [list(map(ord, word)) for word in ("kitten", "sitting")]
    assert edit_distance(kitten, sitting) == 3
    assert edit_distance([], [1, 2]) == edit_distance([1, 2], []) == 2
    assert edit_distance([], []) == 0
    assert edit_distance([1, 2, 3, 4], [2, 3, 4]) == 1  # one dropped: at equal index all others differ
    assert edit_share(kitten, sitting) == 3 / 7
    assert edit_share([], []) == 0.0
    assert edit_share([1], []) == 1.0
