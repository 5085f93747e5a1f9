"""Claims checked token by token: where two generations part, and whether rounding explains it."""

from dataclasses import replace

import pytest

from sweeps.identity import NEAR_TIE, compare, mismatch
from tests.synthetic import at_margin, draft_free, grid

BASE = draft_free(grid()[0], 3)
MIDDLE = len(BASE.order) // 2


def test_equal_generations_are_identical_whatever_their_counts():
    other = replace(BASE, rounds=tuple(0 for _ in BASE.rounds), correct=None)
    found = compare({3: other}, {3: BASE}, dtype="float32")
    assert (found.n_checked, found.n_identical, found.mismatches, found.share) == (1, 1, (), 1.0)


def test_only_prompts_on_both_sides_are_compared():
    found = compare({3: BASE, 4: BASE}, {3: BASE, 9: BASE}, dtype="float32")
    assert found.n_checked == 1
    assert compare({}, {3: BASE}, dtype="float32").share is None


def test_a_mismatch_is_found_in_commit_order_not_in_text_order():
    plain, flipped = at_margin(BASE, 5.0, flip=False), at_margin(BASE, 5.0, flip=True)
    found = mismatch(flipped, plain, limit=NEAR_TIE["float32"])
    assert found.step == MIDDLE
    assert found.index == BASE.order[MIDDLE]
    assert (found.margin, found.verdict) == (5.0, "BUG")


def test_two_positions_in_another_order_are_the_first_difference_even_where_the_text_parts_later():
    order = list(BASE.order)
    order[4], order[5] = order[5], order[4]
    ids = list(BASE.output_ids)
    ids[BASE.order[40]] += 1
    swapped = replace(BASE, order=tuple(order), output_ids=tuple(ids))
    assert mismatch(swapped, BASE, limit=NEAR_TIE["float32"]).step == 4


def test_a_low_temperature_magnifies_what_rounding_can_flip():
    ours, theirs = at_margin(BASE, 0.004, flip=True), at_margin(BASE, 0.004, flip=False)
    verdicts = {
        temperature: compare({3: ours}, {3: theirs}, dtype="float32", temperature=temperature).mismatches[0].verdict
        for temperature in (0.0, 0.2, 0.5, 1.0, 3.0)
    }
    assert verdicts == {0.0: "BUG", 0.2: "near-tie", 0.5: "BUG", 1.0: "BUG", 3.0: "BUG"}


@pytest.mark.parametrize("dtype", NEAR_TIE)
def test_a_near_tie_must_be_one_in_both_runs(dtype):
    small, large = NEAR_TIE[dtype] / 2, NEAR_TIE[dtype] * 2
    for ours, theirs, verdict in ((small, small, "near-tie"), (small, large, "BUG"), (large, small, "BUG")):
        found = mismatch(at_margin(BASE, ours, flip=True), at_margin(BASE, theirs, flip=False), limit=NEAR_TIE[dtype])
        assert found.verdict == verdict
        assert found.margin == max(ours, theirs)


def test_no_rival_or_another_length_is_a_bug():
    assert (
        mismatch(
            at_margin(BASE, None, flip=True), at_margin(BASE, None, flip=False), limit=NEAR_TIE["bfloat16"]
        ).verdict
        == "BUG"
    )
    last = max(range(len(BASE.order)), key=lambda i: BASE.order[i])
    shorter = replace(BASE, output_ids=BASE.output_ids[:-1], order=BASE.order[:last] + BASE.order[last + 1 :])
    found = mismatch(shorter, BASE, limit=NEAR_TIE["bfloat16"])
    assert found.index == len(BASE.output_ids) - 1
    assert found.verdict == "BUG"


def test_shares_count_each_class():
    rows = {i: draft_free(grid()[0], i) for i in range(4)}
    other = {
        0: rows[0],
        1: at_margin(rows[1], 1e-6, flip=True),
        2: at_margin(rows[2], 3.0, flip=True),
        3: rows[3],
    }
    base = {**rows, 1: at_margin(rows[1], 1e-6, flip=False)}
    found = compare(other, base, dtype="float32")
    assert (found.n_checked, found.n_identical, found.near_ties, found.bugs) == (4, 2, 1, 1)
    assert [m.prompt_index for m in found.mismatches] == [1, 2]
