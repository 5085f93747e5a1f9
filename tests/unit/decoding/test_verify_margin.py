"""`verify_margin`: the draft-free output bit for bit, although a batch of several states rounds otherwise.

The toy target moves every logit by up to `rounding` when it forwards several copies. A log-odds then moves by at most
twice that and a gap of two of them by four times; token scores are logits over T. So 4 * rounding / min(1, T) will do.
"""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.spec import DecodeSpec
from tests.toys import KnowingDrafter, RandomDrafter, ToyTarget, WrongDrafter, hashed, normal
from workers.decoding.loop import decode
from workers.decoding.reference import reference
from workers.decoding.rule import judge
from workers.decoding.state import Commit
from workers.decoding.verification import Verification
from workers.drafters.base import Drafter
from workers.drafters.none import NoDrafter
from workers.drafters.ssd import SsdDrafter

ROUNDING = 0.05
CASES = [(0.0, "top1"), *((T, confidence) for T in (0.5, 1.0, 2.0) for confidence in ("top1", "sampled"))]
PROMPTS: Sequence[list[int]] = ([], [1, 2, 3], [4] * 8, [5, 1, 7, 2, 2])


def rule(temperature: float, confidence: str) -> DecodeSpec:
    return DecodeSpec(max_new_tokens=22, block_length=8, temperature=temperature, confidence=confidence)  # type: ignore[arg-type]


def enough(temperature: float) -> float:
    return 4 * ROUNDING / min(1.0, temperature or 1.0)


def differing(spec: DecodeSpec, verify_margin: float, drafter: Drafter) -> int:
    count = 0
    for seed in range(20):
        target, prompt = ToyTarget(seed=seed, drift=0.1, rounding=ROUNDING), PROMPTS[seed % len(PROMPTS)]
        free = decode(target, NoDrafter(), prompt, spec=spec, seed=seed)
        out = decode(target, drafter, prompt, spec=spec, seed=seed, verification=Verification(margin=verify_margin))
        count += (out.output_ids, out.order) != (free.output_ids, free.order)
    return count


@pytest.mark.parametrize(("temperature", "confidence"), CASES)
def test_rounding_changes_outputs_and_a_margin_that_covers_it_changes_none(temperature: float, confidence: str) -> None:
    spec = rule(temperature, confidence)
    assert differing(spec, 0.0, SsdDrafter(6)) > 0, "nothing was rounded: the next line shows nothing"
    assert differing(spec, enough(temperature), SsdDrafter(6)) == 0


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(CASES),
    st.sampled_from([RandomDrafter(1, 8), RandomDrafter(2, 3), SsdDrafter(5), WrongDrafter(9, 4)]),
    st.lists(st.integers(0, 8), max_size=11),
)
def test_no_drafter_no_rule_and_no_prompt_gets_past_a_margin_that_is_enough(
    seed: int, case: tuple[float, str], drafter: Drafter, prompt: list[int]
) -> None:
    target, spec = ToyTarget(seed=seed, drift=0.2, rounding=ROUNDING), rule(*case)
    naive = reference(target, prompt, spec=spec, seed=seed)
    out = decode(target, drafter, prompt, spec=spec, seed=seed, verification=Verification(margin=enough(case[0])))
    assert (out.output_ids, out.order) == (naive.output_ids, naive.order)
    counters = out.counters
    assert counters.rounds + sum(counters.accepted) == len(out.output_ids)
    assert counters.recomputes <= sum(drafts > 0 for drafts in counters.drafted)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(CASES), st.sampled_from([0.01, 0.5, 1e9]), st.integers(1, 8))
def test_without_rounding_a_margin_changes_no_output(
    seed: int, case: tuple[float, str], margin: float, budget: int
) -> None:
    target, spec = ToyTarget(seed=seed, drift=0.2), rule(*case)
    naive = reference(target, [3, 1], spec=spec, seed=seed)
    out = decode(
        target, RandomDrafter(seed, budget), [3, 1], spec=spec, seed=seed, verification=Verification(margin=margin)
    )
    assert (out.output_ids, out.order) == (naive.output_ids, naive.order)


def test_where_every_verdict_is_doubtful_each_round_takes_two_forwards_and_gets_nothing_accepted() -> None:
    """Blocks of 4, 8 tokens: a first root alone, then two roots with drafts, each judged again, then the last alone."""
    target = ToyTarget(seed=4)
    spec = DecodeSpec(max_new_tokens=8, block_length=4)
    free = decode(target, NoDrafter(), [], spec=spec, seed=0)
    target.batches.clear()
    out = decode(target, SsdDrafter(2), [], spec=spec, seed=0, verification=Verification(margin=1e9))
    assert out.output_ids == free.output_ids
    assert target.batches == [1, 3, 1, 2, 1, 1] * 2
    counters = out.counters
    assert (counters.nfe, counters.recomputes, counters.rounds) == (12, 4, 8)
    assert counters.accepted == (0,) * 8
    assert counters.drafted == (0, 2, 1, 0) * 2
    assert counters.positions == 4 * sum(target.batches) + 4  # and the filled block, once
    assert out.rounds == tuple(range(8))


def test_a_walk_that_ends_in_doubt_keeps_what_came_before_and_drafts_from_the_second_verdict() -> None:
    """The future is known, so only doubt ends a walk: after the states whose margin passes, and the doubtful one."""
    target, spec = ToyTarget(seed=4), DecodeSpec(max_new_tokens=8, block_length=8)
    future: list[Commit] = []
    free = decode(target, NoDrafter(), [], spec=spec, seed=0, watch=lambda seen: future.append(seen.verdict.commit))
    margin = sorted(free.margins[1:])[0] * 1.0001  # one state is doubtful, and it is not the first
    doubtful = free.margins.index(min(free.margins[1:]))
    out = decode(
        target, KnowingDrafter([future], budget=6), [], spec=spec, seed=0, verification=Verification(margin=margin)
    )
    assert out.order == free.order
    assert out.counters.recomputes == 1
    assert out.counters.accepted[:2] == (0, doubtful - 1)
    assert out.counters.rounds == 3 - (doubtful == 7)


@pytest.mark.parametrize(("temperature", "confidence"), CASES)
def test_a_margin_is_the_distance_to_the_nearest_other_commit(temperature: float, confidence: str) -> None:
    """Logits moved by less than margin / 4 (times T below 1) commit the same; some moved by more do not."""
    spec, changed = rule(temperature, confidence), 0
    for seed in range(400):
        logits_RV = 2 * normal(hashed(seed), 5, 7)
        noise_RV = None if temperature == 0 else normal(hashed(seed, "noise"), 5, 7)
        verdict = judge(logits_RV, noise_RV, (0, 1, 2, 3, 4), spec)
        for scale in (0.999, 8.0):
            size = scale * verdict.margin / 4 * min(1.0, temperature or 1.0)
            moved_RV = logits_RV + size * normal(hashed(seed, scale), 5, 7).sign()
            commit = judge(moved_RV, noise_RV, (0, 1, 2, 3, 4), spec).commit
            assert commit == verdict.commit or scale > 1
            changed += commit != verdict.commit
    assert changed > 20, "nothing moved: the bound shows nothing"


def test_a_sampled_token_that_nearly_changes_elsewhere_counts_towards_the_margin() -> None:
    """Position 1 all but draws its likely token, which would make it the most confident: 0.01 from that commit."""
    spec = rule(1.0, "sampled")
    logits_RV = torch.tensor([[2.0, 0.0, 0.0], [4.0, 0.0, 0.0]], dtype=torch.float64)
    noise_RV = torch.tensor([[5.0, 0.0, 0.0], [0.0, 4.01, 0.0]], dtype=torch.float64)
    verdict = judge(logits_RV, noise_RV, (0, 1), spec)
    assert verdict.commit == Commit(0, 0)
    assert verdict.margin == pytest.approx(0.01)
    assert judge(logits_RV, noise_RV, (0, 1), rule(1.0, "top1")).commit == Commit(1, 1)
