"""Throughput from timing records, against hand-worked numbers."""

import math

import pytest

from sweeps.records import TimingRecord
from sweeps.timings import NO_TIMING, draft_free_seconds, draft_free_throughput, pooled_cv, throughput
from tests.synthetic import draft_free, grid

CELL = grid()[0]


def record(index, variant, baseline, *, tokens=100, identical=True):
    return TimingRecord(
        prompt_id=f"p{index}",
        prompt_index=index,
        tokens_kept=tokens,
        nfe=10,
        baseline_nfe=20,
        identical=identical,
        variant_seconds=variant,
        baseline_seconds=baseline,
        drafter_seconds=0.1 * sum(variant),
        forward_seconds=0.8 * sum(variant),
        walk_seconds=0.05 * sum(variant),
    )


def test_rates_are_tokens_over_summed_medians():
    timings = {0: record(0, (1.0, 9.0, 1.2), (2.0, 2.2, 2.4)), 1: record(1, (3.0, 2.8, 3.2), (6.0, 6.6, 6.0))}
    result = throughput(timings, {})
    assert result.tokens_per_s.value == pytest.approx(200 / (1.2 + 3.0))
    assert result.tokens_per_s_draft_free.value == pytest.approx(200 / (2.2 + 6.0))
    assert result.ratio.value == pytest.approx(8.2 / 4.2)
    assert (result.ratio.n, result.repeats) == (2, 3)
    assert (result.drafter_share, result.forward_share) == (pytest.approx(0.1), pytest.approx(0.8))


def test_a_variant_twice_as_fast_everywhere_has_ratio_two_and_no_doubt_about_it():
    timings = {i: record(i, (1.0 + i,) * 3, (2.0 + 2 * i,) * 3) for i in range(30)}
    ratio = throughput(timings, {}).ratio
    assert (ratio.value, ratio.low, ratio.high) == (2.0, pytest.approx(2.0), pytest.approx(2.0))


def test_where_outputs_differ_each_side_counts_its_own_tokens():
    plain = draft_free(CELL, 0)
    timings = {0: record(0, (1.0,) * 3, (2.0,) * 3, tokens=50, identical=False)}
    ratio = throughput(timings, {0: plain}).ratio
    assert ratio.value == pytest.approx((50 / 1.0) / (plain.tokens_kept / 2.0))


def test_a_differing_prompt_without_draft_free_tokens_is_left_out():
    timings = {0: record(0, (1.0,) * 3, (9.0,) * 3, identical=False), 1: record(1, (1.0,) * 3, (3.0,) * 3)}
    result = throughput(timings, {})
    assert (result.ratio.n, result.ratio.value) == (1, 3.0)
    assert result.ratio.low is None


def test_nothing_timed_is_undefined_everywhere():
    assert throughput({}, {}) == NO_TIMING
    assert NO_TIMING.ratio.value is None


def test_gates_name_what_failed():
    few = throughput({i: record(i, (1.0, 1.0), (2.0, 2.0)) for i in range(2)}, {})
    assert few.doubts == ("2 repeats, fewer than 3", "2 prompts, fewer than 3")
    noisy = throughput({i: record(i, (1.0, 2.0, 3.0), (2.0, 2.0, 2.0)) for i in range(3)}, {})
    assert noisy.doubts == ("variant repeats vary by 50%, more than 10%",)
    good = throughput({i: record(i, (1.0, 1.01, 0.99), (2.0, 2.0, 2.0)) for i in range(3)}, {})
    assert good.doubts == ()


def test_pooled_cv_is_the_root_mean_square_of_each_prompts():
    # (1, 3): sd sqrt(2), mean 2; (10, 10): sd 0
    assert pooled_cv([(1.0, 3.0), (10.0, 10.0)]) == pytest.approx(math.sqrt((0.5 + 0.0) / 2))
    assert pooled_cv([(1.0,), (2.0,)]) is None


def test_noise_of_repeats_widens_the_interval():
    calm = {i: record(i, (1.0, 1.0, 1.0), (2.0, 2.0, 2.0)) for i in range(30)}
    noisy = {i: record(i, (0.8, 1.0, 1.2), (1.7, 2.0, 2.3)) for i in range(30)}
    quiet, loud = throughput(calm, {}).ratio, throughput(noisy, {}).ratio
    assert quiet.high - quiet.low < 1e-12
    assert loud.high - loud.low > 0.04
    assert loud.value == quiet.value == 2.0


def test_draft_free_rate_pools_what_was_measured_beside_the_variants():
    plain = {i: draft_free(CELL, i) for i in range(2)}
    beside = [{0: record(0, (1.0,), (2.0,)), 1: record(1, (1.0,), (4.0,))}, {0: record(0, (1.0,), (3.0,))}]
    result = draft_free_throughput(draft_free_seconds(beside), plain)
    tokens = plain[0].tokens_kept + plain[1].tokens_kept
    assert result.tokens_per_s.value == pytest.approx(tokens / (2.5 + 4.0))
    assert result.ratio.value is None
