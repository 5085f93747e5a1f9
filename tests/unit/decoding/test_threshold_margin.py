"""The margin of a step of the threshold rule: what it means, and that doubtful steps are made again alone."""

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.spec import DecodeSpec
from tests.toys import ToyTarget, hashed, normal
from workers.decoding.loop import decode
from workers.decoding.rule import judge
from workers.decoding.verification import Verification
from workers.drafters.none import NoDrafter
from workers.drafters.ssd import SsdDrafter


def spec_of(temperature: float, confidence: str, tau: float) -> DecodeSpec:
    return DecodeSpec(temperature=temperature, confidence=confidence, commit="threshold", tau=tau)  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 10**9),
    st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    st.sampled_from(["top1", "sampled"]),
    st.sampled_from([0.2, 0.5, 0.7, 0.9, 0.99]),
    st.sampled_from([1.0, 2.0, 4.0]),
    st.integers(1, 5),
)
def test_logits_moved_by_less_than_a_quarter_of_the_margin_make_the_same_step(
    seed: int, temperature: float, confidence: str, tau: float, scale: float, positions: int
) -> None:
    """Times T below 1, as scores and tempered log-odds move by 1/T as much as logits do."""
    spec, open = spec_of(temperature, confidence, tau), tuple(range(positions))
    logits_RV = scale * normal(hashed(seed), positions, 7)
    noise_RV = None if temperature == 0 else normal(hashed(seed, "noise"), positions, 7)
    verdict = judge(logits_RV, noise_RV, open, spec)
    size = 0.999 * min(verdict.margin, 1e6) / 4 * min(1.0, temperature or 1.0)
    for other in range(6):
        moved_RV = logits_RV + size * normal(hashed(seed, other), positions, 7).sign()
        assert judge(moved_RV, noise_RV, open, spec).step == verdict.step


@pytest.mark.parametrize("confidence", ["top1", "sampled"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_margin_is_no_smaller_than_it_must_be(temperature: float, confidence: str) -> None:
    """Moves of a few margins make other steps often: a margin of nearly nothing would pass the test above."""
    spec, changed, tried = spec_of(temperature, confidence, 0.6), 0, 0
    for seed in range(60):
        logits_RV = 2 * normal(hashed(seed), 4, 7)
        noise_RV = None if temperature == 0 else normal(hashed(seed, "noise"), 4, 7)
        verdict = judge(logits_RV, noise_RV, (0, 1, 2, 3), spec)
        for other in range(8):
            moved_RV = logits_RV + 1.5 * verdict.margin * normal(hashed(seed, other), 4, 7).sign()
            changed += judge(moved_RV, noise_RV, (0, 1, 2, 3), spec).step != verdict.step
            tried += 1
    assert changed > tried / 4


def logits_at(odds: Sequence[float]) -> list[list[float]]:
    """Rows of two tokens with these log-odds of the first."""
    return [[value, 0.0] for value in odds]


@pytest.mark.parametrize(
    ("odds", "filled", "margin"),
    [
        ([3.0, 2.5, 0.5], (0, 1), 0.5),  # tau at 2: the second is the nearest to it
        ([3.0, 2.5, 1.8], (0, 1), 0.2),  # the third would join
        ([2.1, 0.5, 0.2], (0,), 1.5),  # falling under tau changes nothing, as it is the most confident one all the same
        ([1.9, 1.6, 0.2], (0,), 0.3),  # nothing passes: the gap to the second
        ([9.0, 1.9, 0.2], (0,), 0.1),  # the second would join
        ([1.0], (0,), 1.0),  # alone: only its token can change
    ],
)
def test_margins_worked_out_by_hand(odds: list[float], filled: tuple[int, ...], margin: float) -> None:
    tau = 1 / (1 + math.exp(-2.0))
    logits_RV = torch.tensor(logits_at(odds), dtype=torch.float64)
    verdict = judge(logits_RV, None, tuple(range(len(odds))), spec_of(0.0, "top1", tau))
    assert tuple(commit.position for commit in verdict.step) == filled
    assert verdict.margin == pytest.approx(margin)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_doubtful_verdicts_are_made_again_and_rounding_then_changes_nothing(temperature: float) -> None:
    """Rounding in batches of several copies flips steps; a margin that covers it brings the draft-free run back."""
    spec = DecodeSpec(max_new_tokens=40, block_length=10, temperature=temperature, commit="threshold", tau=0.7)
    broken = again = 0
    for seed in range(12):
        target = ToyTarget(seed=seed, rounding=0.05)
        free = decode(target, NoDrafter(), [], spec=spec, seed=seed)
        plain = decode(target, SsdDrafter(6), [], spec=spec, seed=seed)
        safe = decode(target, SsdDrafter(6), [], spec=spec, seed=seed, verification=Verification(margin=0.2))
        broken += (plain.order, plain.steps) != (free.order, free.steps)
        again += safe.counters.recomputes
        assert (safe.output_ids, safe.order, safe.steps) == (free.output_ids, free.order, free.steps)
        assert safe.counters.rounds <= free.counters.nfe
    assert broken > 1
    assert again > 10
