"""Where the time of a round goes, against hand-worked numbers."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeps.records import Counters, TimingRecord
from sweeps.rounds import PREDICTED, RoundSums, draft_free_rounds, of_sums, round_time
from tests.synthetic import draft_free, grid

CELL = grid()[0]


def generation(index, rounds, *, recomputes=0, positions=0):
    """A decode of `rounds` rounds."""
    counters = Counters(
        nfe=rounds + recomputes,
        prefill_forwards=1,
        prefill_positions=32,
        kv_passes=0,
        positions=positions,
        accepted=(1,) * rounds,
        drafted=(4,) * rounds,
        merged=0,
        drafter_calls=rounds,
        recomputes=recomputes,
    )
    return replace(draft_free(CELL, index), counters=counters)


def record(index, seconds, parts, baseline, *, forward, nfe=10, baseline_nfe=20):
    drafter, verification, walk = parts
    return TimingRecord(
        prompt_id=f"p{index}",
        prompt_index=index,
        tokens_kept=100,
        nfe=nfe,
        baseline_nfe=baseline_nfe,
        identical=True,
        variant_seconds=seconds,
        baseline_seconds=baseline,
        drafter_seconds=drafter,
        forward_seconds=verification,
        walk_seconds=walk,
        baseline_forward_seconds=forward,
    )


def test_parts_are_milliseconds_a_round_and_add_up() -> None:
    """Two repeats of 1 s and one of 3 s; 10 and 40 rounds: 4 s over 50 rounds are 80 ms a round."""
    timings = {
        0: record(0, (0.9, 1.1), (0.4, 1.2, 0.2), (2.0, 2.0), forward=3.0),
        1: record(1, (3.0,), (0.3, 2.1, 0.4), (5.0,), forward=4.0, nfe=40, baseline_nfe=50),
    }
    rows = {0: generation(0, 10, positions=1600), 1: generation(1, 40, positions=6400)}
    plain = {0: generation(0, 20, positions=640), 1: generation(1, 50, positions=1600)}
    time = round_time(timings, rows, plain)
    assert time.n == 2
    assert time.total.value == pytest.approx(80.0)
    # drafter 0.2 + 0.3 s, verification 0.6 + 2.1 s, walk 0.1 + 0.4 s, rest 0.1 + 0.2 s
    assert time.drafter.value == pytest.approx(10.0)
    assert time.forward.value == pytest.approx(54.0)
    assert time.walk.value == pytest.approx(10.0)
    assert time.rest.value == pytest.approx(6.0)
    shares = (time.drafter_share, time.forward_share, time.walk_share, time.rest_share)
    assert [share.value for share in shares] == pytest.approx([0.125, 0.675, 0.125, 0.075])
    assert time.draft_free.value == pytest.approx(1000 * 7 / 70)
    assert time.draft_free_forward.value == pytest.approx(1000 * 5.5 / 70)
    assert (time.positions.value, time.draft_free_positions.value) == (160.0, 32.0)
    # 54 ms over 5500/70 ms
    assert time.cost_ratio.value == pytest.approx(54 * 70 / 5500)
    # 7 s less 0.5 + 0.5 + 0.3 s are 5.7 s for 50 verifications: 114 ms each
    assert time.break_even.value == pytest.approx(114 * 70 / 5500)
    assert (time.cost_ratio.how, time.break_even.how) == ("measured", PREDICTED)
    assert time.break_even.low is None  # two prompts


def test_verdicts_made_again_are_no_rounds() -> None:
    timings = {0: record(0, (1.0,), (0.1, 0.8, 0.1), (2.0,), forward=1.5, nfe=12)}
    time = round_time(timings, {0: generation(0, 10, recomputes=2)}, {0: generation(0, 20)})
    assert time.total.value == pytest.approx(100.0)


def test_an_interval_needs_prompts_that_differ() -> None:
    def timed(share):
        return [sums_of(drafter=share(i), forward=0.7 - share(i)) for i in range(6)]

    varied = of_sums(timed(lambda i: 0.1 + 0.02 * i)).drafter_share
    assert varied.value == pytest.approx(0.15)
    assert varied.low < 0.15 < varied.high
    assert (varied.low, varied.high) == (pytest.approx(0.116, abs=0.01), pytest.approx(0.194, abs=0.01))
    assert of_sums(timed(lambda i: 0.1)).drafter_share.low is None


def test_an_interval_of_a_share_ends_at_one() -> None:
    prompts = [sums_of(drafter=0.01, forward=forward) for forward in (0.98, 0.7, 0.98)]
    share = of_sums(prompts).forward_share
    assert share.value == pytest.approx(2.66 / 3)
    assert share.low < share.value < share.high == 1.0


def test_rows_without_the_draft_free_forward_have_no_cost() -> None:
    timings = {i: record(i, (1.0,), (0.1, 0.8, 0.1), (2.0,), forward=None) for i in range(3)}
    rows, plain = ({i: generation(i, n) for i in range(3)} for n in (10, 20))
    time = round_time(timings, rows, plain)
    assert time.total.value == pytest.approx(100.0)
    assert time.draft_free.value == pytest.approx(100.0)
    for estimate in (time.draft_free_forward, time.cost_ratio, time.break_even):
        assert estimate.value is None


def test_where_draft_free_is_faster_than_the_drafter_alone_the_break_even_is_negative_and_has_no_interval() -> None:
    time = of_sums([sums_of(total=10.0 + i, drafter=9.0 + i, forward=0.5, draft_free=2.0) for i in range(4)])
    assert time.break_even.value < 0
    assert time.break_even.low is None
    assert time.break_even.high is None


def test_nothing_timed_or_not_decoded_is_undefined() -> None:
    timings = {0: record(0, (1.0,), (0.1, 0.8, 0.1), (2.0,), forward=1.0)}
    for time in (round_time({}, {}, {}), round_time(timings, {}, {0: generation(0, 20)})):
        assert (time.n, time.total.value, time.cost_ratio.value) == (0, None, None)


def test_draft_free_rounds_count_a_prompt_once_whatever_it_was_timed_beside() -> None:
    """Prompt 0: 2 s and 4 s, so 3 s; prompt 1: 5 s; 20 and 30 forwards. Forwards 1.5 s (mean of 1 and 2) and 4 s."""
    beside = [
        {0: record(0, (1.0, 1.0), (0.1, 0.8, 0.1), (2.0, 2.0), forward=2.0)},
        {
            0: record(0, (1.0,), (0.1, 0.8, 0.1), (4.0,), forward=2.0),
            1: record(1, (1.0,), (0.1, 0.8, 0.1), (5.0,), forward=4.0, baseline_nfe=30),
        },
    ]
    whole, forward = draft_free_rounds(beside)
    assert (whole.value, whole.n) == (pytest.approx(1000 * 8 / 50), 2)
    assert forward.value == pytest.approx(1000 * 5.5 / 50)
    assert draft_free_rounds([])[0].value is None
    old = {0: replace(beside[0][0], baseline_forward_seconds=None)}  # of before that was kept
    for some in ([old], [old, *beside]):
        assert draft_free_rounds(some)[1].value is None


SECONDS, COUNTS = st.floats(0.01, 5.0), st.integers(1, 60)


@given(st.lists(st.tuples(COUNTS, COUNTS, SECONDS, SECONDS, SECONDS, SECONDS), min_size=1, max_size=12))
def test_verification_is_cheaper_than_the_break_even_exactly_where_rounds_take_less_time(rows) -> None:
    prompts = [
        sums_of(rounds=a, plain=b, drafter=d, forward=f, total=d + f, draft_free=p + q, draft_free_forward=p)
        for a, b, d, f, p, q in rows
    ]
    saved = math.fsum(one.draft_free for one in prompts) - math.fsum(one.total for one in prompts)
    time = of_sums(prompts)
    if abs(saved) > 1e-6:
        assert (time.cost_ratio.value < time.break_even.value) == (saved > 0)


def sums_of(*, rounds=10, plain=20, total=1.0, drafter=0.1, forward=0.7, draft_free=2.0, draft_free_forward=1.5):
    return RoundSums(
        rounds=rounds,
        positions=rounds,
        total=total,
        drafter=drafter,
        forward=forward,
        walk=0.0,
        draft_free_rounds=plain,
        draft_free_positions=plain,
        draft_free=draft_free,
        draft_free_forward=draft_free_forward,
    )
