"""Agreement with the uncached decoder: shares, places and differences worked out by hand, and laws that must hold."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.aggregate import aggregate_all
from sweeps.agreement import (
    NO_OUTPUTS,
    NOT_MEASURED,
    Outputs,
    agreement,
    agreement_of,
    equal_share,
    kept,
    outputs_of,
)
from sweeps.records import GenerationRecord
from tests.set_rows import set_cells
from tests.synthetic import cached, draft_free, grid, sweep

CELL = cached(grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,), gammas=())[:1], "dual")[0]
IDS = st.lists(st.integers(0, 3), max_size=12)


def row(
    ids: list[int], *, kept: int | None = None, positions: int = 10, correct: bool | None = True
) -> GenerationRecord:
    base = draft_free(CELL.uncached(), 0)
    counters = replace(base.counters, positions=positions)
    length = len(ids) if kept is None else kept
    return replace(base, output_ids=tuple(ids), tokens_kept=length, correct=correct, counters=counters)


def test_numbers_of_four_prompts_by_hand() -> None:
    own = agreement(
        [
            (row([1, 2, 3, 4], positions=10, correct=True), row([1, 2, 3, 4], positions=70, correct=True)),
            (row([1, 2, 3, 4], positions=20, correct=True), row([1, 9, 3, 4], positions=90, correct=False)),
            (row([5, 6, 7], positions=30, correct=False), row([5, 6, 7, 8], positions=110, correct=True)),
            (row([1, 1, 1, 1], positions=20, correct=None), row([2, 2], positions=50, correct=True)),
        ]
    )
    assert (own.n, own.n_identical, own.identical.value) == (4, 1, 0.25)
    assert (own.identical.low, own.identical.high) == pytest.approx((0.0456, 0.6994), abs=1e-4)  # Wilson, 1 of 4
    assert own.equal_tokens.value == pytest.approx((1 + 3 / 4 + 3 / 4 + 0) / 4)
    assert own.first_divergence == 1.0  # of the indexes 1, 3 and 0
    assert (own.positions.value, own.positions_uncached.value, own.positions_ratio.value) == (20, 80, 4)
    assert (own.correct.value, own.correct_uncached.value) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert (own.correct_difference.value, own.correct_difference.n) == (0.0, 3)


def test_each_side_counts_its_own_and_only_prompts_that_both_scored() -> None:
    base = row([1, 2])
    slow, fast = (
        replace(base, counters=replace(base.counters, nfe=nfe, accepted=(0,) * nfe, drafted=(0,) * nfe))
        for nfe in (9, 4)
    )
    wrong, unscored = replace(slow, correct=False), replace(slow, correct=None)
    own = agreement([(fast, wrong), (fast, unscored), (fast, slow)])
    assert (own.nfe.value, own.nfe_uncached.value) == (4, 9)
    assert (own.correct.n, own.correct_uncached.n, own.correct_difference.n) == (2, 2, 2)
    assert (own.correct.value, own.correct_uncached.value, own.correct_difference.value) == (1.0, 0.5, 0.5)


def test_what_lies_behind_the_first_stop_id_is_no_answer() -> None:
    own = agreement([(row([1, 2, 0, 7], kept=2), row([1, 2, 0, 9], kept=2))])
    assert (own.n_identical, own.equal_tokens.value, own.first_divergence) == (1, 1.0, None)
    longer = agreement([(row([1, 2, 0], kept=2), row([1, 2, 0], kept=3))])
    assert (longer.n_identical, longer.equal_tokens.value, longer.first_divergence) == (0, pytest.approx(2 / 3), 2.0)


def test_two_empty_answers_agree() -> None:
    assert equal_share([], []) == 1.0
    assert agreement([(row([]), row([]))]).n_identical == 1
    assert agreement([(row([]), row([1]))]).equal_tokens.value == 0.0


def test_an_interval_of_a_share_ends_at_one() -> None:
    pairs = [(row([1] * 9 + [last]), row([1] * 10)) for last in (1, 1, 2)]
    high = agreement(pairs).equal_tokens.high
    assert high is not None
    assert high <= 1.0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=5))
def test_laws_of_any_outputs(outputs: list[tuple[list[int], list[int]]]) -> None:
    own = agreement([(row(a), row(b)) for a, b in outputs])
    turned = agreement([(row(b), row(a)) for a, b in outputs])
    assert own.n_identical == sum(a == b for a, b in outputs)
    assert (own.first_divergence is None) == (own.n_identical == own.n)
    assert own.equal_tokens == turned.equal_tokens
    assert own.first_divergence == turned.first_divergence
    assert own.equal_tokens.value is not None
    assert own.identical.value is not None
    assert own.identical.value <= own.equal_tokens.value <= 1.0
    for a, b in outputs:
        one = agreement([(row(a), row(b))])
        assert (one.equal_tokens.value == 1.0) == (a == b)
        if one.first_divergence is not None:  # up to there everything is equal
            assert one.equal_tokens.value >= one.first_divergence / max(len(a), len(b)) - 1e-12
            assert a[: int(one.first_divergence)] == b[: int(one.first_divergence)]


def test_only_approximate_caches_are_measured_and_never_under_independent_noise() -> None:
    rows = {index: row([1, 2]) for index in range(3)}
    assert agreement_of(CELL.uncached(), rows, rows) is None
    noisy = replace(CELL, decode=replace(CELL.decode, temperature=1.0, noise="independent"))
    assert agreement_of(noisy, rows, rows) == NOT_MEASURED
    assert agreement_of(CELL, rows, {}) == NOT_MEASURED
    measured = agreement_of(CELL, rows, {2: row([1, 2]), 7: row([1, 2])})
    assert measured is not None
    assert measured.n == 1


def test_the_reference_is_one_for_all_caches_and_decides_no_claim() -> None:
    cells = cached(grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,), gammas=()), "dual", "prefix")
    made = sweep(cells, prompts=6, timed=2, uncached=4)
    results = aggregate_all(made.jobs, made.rows())
    (reference,) = [result for result in results if result.reference]
    assert (reference.cell.target.cache, reference.n, reference.agreement) == ("none", 4, None)
    assert {result.cell.uncached().cell_id for result in results} == {reference.cell_id}
    for result in results:
        if not result.reference:
            assert result.agreement is not None
            assert (result.agreement.n, result.agreement.n_identical) == (4, 2)  # prompts 0 and 3 were changed
            assert result.agreement.correct_difference.n == 4
            assert result.claim == "exact given the cache"
            assert result.claim_holds is (None if result.cell.is_baseline else True)
            assert result.identity.n_identical == result.identity.n_checked == 6
    by_hand = [draft_free(reference.cell, index) for index in range(4)]
    (free,) = [r for r in results if r.cell.is_baseline and r.cell.target.cache == "dual"]
    assert free.agreement is not None
    assert free.agreement.nfe.value == free.agreement.nfe_uncached.value == sum(r.counters.nfe for r in by_hand) / 4
    assert free.agreement.positions_uncached.value == sum(r.counters.positions for r in by_hand) / 4


def test_without_its_reference_everything_else_is_the_same() -> None:
    cells = cached(grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,), gammas=()), "dual")
    with_it, without = (sweep(cells, prompts=4, timed=2, uncached=n) for n in (100, 0))
    plain = {result.cell_id: result for result in aggregate_all(without.jobs, without.rows())}
    for result in aggregate_all(with_it.jobs, with_it.rows()):
        if not result.reference:
            assert replace(result, agreement=NOT_MEASURED) == plain[result.cell_id]


def test_a_shift_is_far_at_equal_index_and_near_in_edits() -> None:
    own = outputs_of([(row([1, 2, 3, 4]), row([2, 3, 4, 1])), (row([1, 2]), row([1, 2]))])
    assert own.edit_distance.value == pytest.approx((2 / 4 + 0) / 2)  # one dropped before, one added behind
    assert own.equal_tokens.value == pytest.approx((0 + 1) / 2)
    assert (own.n, own.n_identical, own.first_divergence) == (2, 1, 0.0)


def test_the_same_outputs_make_no_edit_and_no_interval_where_few_agree() -> None:
    own = outputs_of([(row([1, 2, 3]), row([1, 2, 3]))] * 4)
    assert (own.edit_distance.value, own.edit_distance.has_interval, own.identical.value) == (0.0, False, 1.0)


def test_an_agreement_has_the_outputs_of_its_pairs() -> None:
    pairs = [(row([1, 2, 3]), row([1, 3])), (row([4]), row([4]))]
    whole, common = agreement(pairs), outputs_of(pairs)
    assert all(getattr(whole, name) == getattr(common, name) for name in Outputs.__slots__)
    assert outputs_of([]) == NO_OUTPUTS


def test_drafted_cells_are_compared_with_their_draft_free_cell_and_no_other() -> None:
    made = sweep(set_cells(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,))[0]), prompts=6, timed=0)
    results, rows = aggregate_all(made.jobs, made.rows()), made.rows()
    standard, free, exact, *lossy = results
    assert standard.fidelity is standard.against_standard is standard.pace is free.fidelity is None
    assert exact.fidelity is not None
    assert exact.fidelity.n_identical == 6
    for result in lossy:
        mine, theirs = (rows[one.cell_id].generations for one in (result, free))
        same = sum(kept(mine[i]) == kept(theirs[i]) for i in mine)
        assert result.fidelity is not None
        assert (result.fidelity.n_identical, result.fidelity.n) == (same, 6)
    plain = rows[standard.cell_id].generations
    equal = sum(kept(rows[exact.cell_id].generations[i]) == kept(plain[i]) for i in plain)
    assert exact.against_standard is not None
    assert exact.against_standard.n_identical == equal


def test_under_independent_noise_outputs_differ_by_chance_and_nothing_is_compared() -> None:
    base = grid(tasks=("a",), budgets=(8,), temperatures=(1.0,), noises=("independent",))[0]
    made = sweep(set_cells(base), prompts=3, timed=0)
    for result in aggregate_all(made.jobs, made.rows()):
        assert result.fidelity is result.against_standard is None
