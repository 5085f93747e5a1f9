import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.spec import DecodeSpec
from workers.decoding.noise import gumbel
from workers.decoding.reference import choose
from workers.decoding.rule import draw, judge, log_odds

GREEDY = DecodeSpec()
INF = math.inf


def logits_of(*probabilities: list[float]) -> torch.Tensor:
    return torch.tensor(probabilities, dtype=torch.float64).log()


def test_most_confident_position_and_its_best_token() -> None:
    logits_RV = logits_of([0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1])
    verdict = judge(logits_RV, None, (2, 5, 9), GREEDY)
    assert verdict.commit == (5, 2)
    positions = math.log(0.7 / 0.3) - math.log(0.6 / 0.4)
    assert verdict.margin == pytest.approx(min(positions, math.log(0.7 / 0.2)))


def test_margin_is_the_lesser_gap_of_position_and_token() -> None:
    logits_RV = logits_of([0.51, 0.48, 0.01], [0.34, 0.33, 0.33])
    assert judge(logits_RV, None, (0, 1), GREEDY).margin == pytest.approx(math.log(0.51 / 0.48))


def test_ties_go_to_the_lowest_position_then_the_lowest_token_and_have_margin_zero() -> None:
    verdict = judge(torch.zeros(4, 7), None, (1, 2, 3, 6), GREEDY)
    assert verdict.commit == (1, 0)
    assert verdict.margin == 0.0
    logits_RV = torch.tensor([[0.0, 1.0, 1.0], [0.0, 2.0, 2.0], [2.0, 0.0, 2.0]])
    assert judge(logits_RV, None, (0, 1, 2), GREEDY).commit == (1, 1)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.integers(2, 700), st.integers(0, 10**6))
def test_equal_rows_tie_exactly_whatever_the_shape(rows: int, vocab: int, seed: int) -> None:
    row_V = torch.randn(vocab, generator=torch.Generator().manual_seed(seed))
    confidence_R = draw(row_V.double().repeat(rows, 1), None, GREEDY).confidence_R
    assert len(set(confidence_R.tolist())) == 1


def test_log_odds_do_not_saturate_where_the_probability_rounds_to_one() -> None:
    logits_RV = torch.tensor([[60.0, 0.0, 0.0], [61.0, 0.0, 0.0], [59.0, 0.0, 0.0]], dtype=torch.float64)
    assert (logits_RV.softmax(-1)[:, 0] == 1.0).all()
    assert judge(logits_RV, None, (0, 1, 2), GREEDY).commit.position == 1
    odds_R = log_odds(logits_RV, torch.zeros(3, dtype=torch.int64))
    assert odds_R.tolist() == pytest.approx([60 - math.log(2), 61 - math.log(2), 59 - math.log(2)])


def test_log_odds_order_float32_logits_that_a_float32_softmax_ties() -> None:
    logits_RV = torch.tensor([[20.0, 1.0, 0.0], [20.0, 0.5, 0.0]], dtype=torch.float32)
    assert logits_RV.softmax(-1)[0, 0] == logits_RV.softmax(-1)[1, 0]
    assert judge(logits_RV, None, (3, 4), GREEDY).commit.position == 4


def test_a_token_without_rival_has_an_infinite_margin() -> None:
    logits_RV = torch.tensor([[-INF, 2.0, -INF]], dtype=torch.float64)
    verdict = judge(logits_RV, None, (3,), GREEDY)
    assert verdict.commit == (3, 1)
    assert verdict.margin == INF


def test_impossible_tokens_are_never_drawn_however_lucky() -> None:
    logits_RV = torch.zeros(3, 5, dtype=torch.float64)
    logits_RV[:, 4] = -INF
    noise_RV = torch.zeros(3, 5, dtype=torch.float64)
    noise_RV[:, 4] = 36.7
    assert judge(logits_RV, noise_RV, (0, 1, 2), DecodeSpec(temperature=2.0)).commit.token == 0


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.3, 0.7, 1.5]),
    st.sampled_from(["top1", "sampled"]),
    st.integers(1, 6),
    st.integers(2, 9),
)
def test_agrees_with_the_naive_rule(seed: int, temperature: float, confidence: str, rows: int, vocab: int) -> None:
    spec = DecodeSpec(temperature=temperature, confidence=confidence)  # type: ignore[arg-type]
    logits_RV = 3 * torch.randn(rows, vocab, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    noise_RV = gumbel(seed, torch.arange(rows), vocab) if temperature else None
    noises = noise_RV.tolist() if noise_RV is not None else [None] * rows
    naive = [choose(row, noise, spec) for row, noise in zip(logits_RV.tolist(), noises, strict=True)]
    best = max(range(rows), key=lambda row: naive[row][1])
    verdict = judge(logits_RV, noise_RV, tuple(range(rows)), spec)
    assert verdict.commit == (best, naive[best][0])
    assert verdict.draws.confidence_R.tolist() == pytest.approx([odds for _, odds in naive], abs=1e-9)


@pytest.mark.parametrize(
    "row",
    [[math.nan, 0.0, 0.0], [0.0, math.nan, 1.0], [INF, INF, 0.0], [INF, 0.0, 0.0], [-INF, -INF, -INF]],
)
def test_logits_that_decide_nothing_are_refused(row: list[float]) -> None:
    with pytest.raises(ValueError, match="target: logits are NaN, infinite or without a candidate"):
        judge(torch.tensor([[0.0, 1.0, 2.0], row]), None, (0, 1), GREEDY)


def test_a_temperature_too_small_to_divide_by_is_refused_with_its_value() -> None:
    with pytest.raises(ValueError, match="temperature 1e-308"):
        judge(torch.tensor([[9.0, 30.0]]), torch.zeros(1, 2), (0,), DecodeSpec(temperature=1e-308))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_logits_are_sampled_in_double(dtype: torch.dtype) -> None:
    """20,000 draws from half-precision logits: an impossible token never comes, and counts follow the softmax."""
    logits_V = torch.tensor([65500.0, 65500.0, 65499.0, 0.0, -INF]).to(dtype)
    spec = DecodeSpec(temperature=1.0)
    counts = torch.zeros(5, dtype=torch.float64)
    for block in range(20):
        draws = draw(logits_V.double().repeat(1000, 1), gumbel(block, torch.arange(1000), 5), spec)
        counts += draws.token_R.bincount(minlength=5)
    expected = logits_V.double().softmax(-1) * 20_000
    assert counts[3] == counts[4] == 0
    assert float(((counts - expected)[:3] ** 2 / expected[:3].clamp(min=1)).sum()) < 13.8  # one in 1,000


def test_greedy_equals_sampling_where_one_token_is_possible() -> None:
    logits_RV = torch.full((6, 9), -INF)
    logits_RV[:, 4] = torch.arange(6.0)
    for seed in range(50):
        sampled = judge(logits_RV, gumbel(seed, torch.arange(6), 9), tuple(range(6)), DecodeSpec(temperature=1.0))
        assert sampled.commit == judge(logits_RV, None, tuple(range(6)), GREEDY).commit
