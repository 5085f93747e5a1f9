import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.spec import DecodeSpec
from workers.decoding.noise import gumbel
from workers.decoding.rule import judge
from workers.decoding.stale import TOP_K, Stale, stale_of, top_ids
from workers.decoding.state import BlockState

MASK = 99


def stale_from(
    logits_RV: torch.Tensor, open: tuple[int, ...], length: int, spec: DecodeSpec, noise=None, own=None
) -> Stale:  # type: ignore[no-untyped-def]
    state = BlockState(tuple(MASK if i in open else 0 for i in range(length)), open)
    return stale_of(judge(logits_RV, noise, open, spec), state, (7,), start=0, spec=spec, own_noise_RV=own)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 60), st.integers(1, 40), st.booleans())
def test_top_ids_are_a_stable_sort_also_where_values_tie(
    seed: int, rows: int, vocab: int, k: int, coarse: bool
) -> None:
    logits_RV = torch.randn(rows, vocab, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    logits_RV = logits_RV.round() if coarse else logits_RV
    k = min(k, vocab)
    expected = [sorted(range(vocab), key=lambda v: (-row[v], v))[:k] for row in logits_RV.tolist()]
    assert top_ids(logits_RV, k).tolist() == expected


def test_statistics_of_a_row_worked_out_by_hand() -> None:
    p_V = [0.5, 0.25, 0.125, 0.125]
    stale = stale_from(torch.tensor([p_V]).log() + 3.0, (2,), 4, DecodeSpec())
    assert stale.ids_LK[2].tolist() == [0, 1, 2, 3]
    assert stale.probs_LK[2].tolist() == pytest.approx(p_V, abs=1e-6)
    assert stale.logprobs_LK[2].tolist() == pytest.approx([math.log(p) for p in p_V], abs=1e-6)
    assert stale.logodds_L[2].item() == pytest.approx(0.0, abs=1e-6)
    assert stale.entropy_L[2].item() == pytest.approx(1.75 * math.log(2), abs=1e-6)
    assert stale.outside_L[2].item() == pytest.approx(0.0, abs=1e-7)
    assert stale.drawn_ids_L2[2].tolist() == [0, 1]
    assert stale.drawn_scores_L2[2].tolist() == pytest.approx([math.log(0.5), math.log(0.25)], abs=1e-6)
    assert stale.fill_order == (7,)


def test_rows_that_are_not_open_hold_nothing() -> None:
    stale = stale_from(torch.randn(2, 50), (1, 3), 5, DecodeSpec())
    for closed in (0, 2, 4):
        assert stale.logodds_L[closed] == -math.inf
        for table in (stale.ids_LK, stale.probs_LK, stale.logprobs_LK, stale.drawn_ids_L2, stale.drawn_scores_L2):
            assert not table[closed].any()
    assert stale.ids_LK.shape == (5, TOP_K)


def test_mass_outside_the_top_k() -> None:
    stale = stale_from(torch.zeros(1, 64), (0,), 1, DecodeSpec())
    assert stale.outside_L.item() == pytest.approx(0.5)
    assert stale.ids_LK[0].tolist() == list(range(32))


def test_impossible_tokens_carry_no_probability_and_no_entropy() -> None:
    logits_RV = torch.tensor([[0.0, -math.inf, 0.0]])
    stale = stale_from(logits_RV, (0,), 1, DecodeSpec())
    assert stale.ids_LK[0].tolist() == [0, 2, 1]
    assert stale.probs_LK[0].tolist() == pytest.approx([0.5, 0.5, 0.0])
    assert stale.entropy_L.item() == pytest.approx(math.log(2))


def test_coupled_draws_are_those_of_the_target_with_the_same_noise() -> None:
    spec = DecodeSpec(temperature=0.7)
    logits_RV = torch.randn(3, 20, dtype=torch.float64)
    noise_RV = gumbel(4, torch.arange(3), 20)
    stale = stale_from(logits_RV, (0, 1, 2), 3, spec, noise_RV)
    scores_RV = logits_RV.log_softmax(-1) / 0.7 + noise_RV
    best = scores_RV.sort(-1, descending=True)
    assert torch.equal(stale.drawn_ids_L2, best.indices[:, :2])
    assert torch.allclose(stale.drawn_scores_L2, best.values[:, :2], atol=1e-12)
    assert stale.coupled


def test_the_shared_noise_of_the_top_tokens_leads_to_the_targets_draw() -> None:
    """Log p / T plus what is kept of the noise has its maximum at the drawn token; what cannot be had has no noise."""
    logits_RV = torch.randn(4, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    logits_RV[:, [3, 11]] = -torch.inf
    stale = stale_from(logits_RV, (0, 1, 2, 3), 4, DecodeSpec(temperature=1.5), gumbel(7, torch.arange(4), 12))
    assert stale.noise_LK is not None
    assert torch.equal(stale.noise_LK == 0, (stale.ids_LK == 3) | (stale.ids_LK == 11))
    scores_LK = stale.logprobs_LK / 1.5 + stale.noise_LK
    assert torch.equal(stale.ids_LK.gather(-1, scores_LK.argmax(-1, keepdim=True))[:, 0], stale.drawn_ids_L2[:, 0])


def test_independent_draws_are_the_drafters_own_with_tempered_probabilities() -> None:
    spec = DecodeSpec(temperature=0.7, noise="independent")
    logits_RV = torch.randn(3, 20, dtype=torch.float64)
    own_RV = gumbel(5, torch.arange(3), 20)
    stale = stale_from(logits_RV, (0, 1, 2), 3, spec, gumbel(4, torch.arange(3), 20), own_RV)
    drawn_R = (logits_RV / 0.7 + own_RV).argmax(-1)
    assert torch.equal(stale.drawn_ids_L2[:, 0], drawn_R)
    expected_R = (logits_RV / 0.7).softmax(-1).gather(-1, drawn_R[:, None])[:, 0]
    assert torch.allclose(stale.drawn_scores_L2[:, 0].exp(), expected_R, atol=1e-12)
    assert not stale.coupled


def test_confidence_follows_the_rule_that_orders_positions() -> None:
    logits_RV = torch.tensor([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]], dtype=torch.float64)
    noise_RV = torch.tensor([[0.0, 9.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)  # draws the unlikely token 1
    top1 = stale_from(logits_RV, (0, 1), 2, DecodeSpec(temperature=1.0), noise_RV)
    sampled = stale_from(logits_RV, (0, 1), 2, DecodeSpec(temperature=1.0, confidence="sampled"), noise_RV)
    assert top1.logodds_L[0].item() == pytest.approx(3 - math.log(2))
    assert sampled.logodds_L[0].item() == pytest.approx(-math.log(math.exp(3) + 1))
