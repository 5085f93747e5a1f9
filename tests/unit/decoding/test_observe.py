"""Watching how tokens are drawn: it changes nothing, and its numbers are those of plain loops over distributions."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from sweeps.records import Drawn
from sweeps.spec import DecodeSpec
from tests.toys import RandomDrafter, ToyTarget
from workers.decoding import observe
from workers.decoding.loop import decode
from workers.decoding.observe import Observer
from workers.decoding.seen import Seen
from workers.drafters.none import NoDrafter
from workers.drafters.ssd import SsdDrafter

PROMPT = [1, 2, 3]
MODES = [(0.0, "coupled"), (0.7, "coupled"), (2.0, "coupled"), (0.7, "independent"), (2.0, "independent")]
DRAFTERS = {"none": NoDrafter(), "ssd": SsdDrafter(4), "random": RandomDrafter(seed=3)}


def watched(drafter: Any, spec: DecodeSpec, seed: int = 5, **target: Any) -> tuple[Any, Drawn, list[Seen]]:
    """A generation, what the observer says of it, and every commit as the decoder showed it."""
    seen: list[Seen] = []
    observer = Observer(spec)

    def both(one: Seen) -> None:
        seen.append(replace(one, recall=(lambda stale: lambda: stale)(one.stale)) if one.recall else one)
        observer(one)

    toy = ToyTarget(**{"seed": 2, "drift": 0.4, **target})
    return decode(toy, drafter, PROMPT, spec=spec, seed=seed, watch=both), observer.drawn(), seen


@pytest.mark.parametrize("confidence", ["top1", "sampled"])
@pytest.mark.parametrize(("temperature", "noise"), MODES)
@pytest.mark.parametrize("name", DRAFTERS)
def test_watching_changes_no_token_and_no_count(name: str, temperature: float, noise: Any, confidence: Any) -> None:
    spec = DecodeSpec(max_new_tokens=21, block_length=8, temperature=temperature, noise=noise, confidence=confidence)
    alone = decode(ToyTarget(seed=2, drift=0.4), DRAFTERS[name], PROMPT, spec=spec, seed=5)
    observer = Observer(spec)
    both = decode(ToyTarget(seed=2, drift=0.4), DRAFTERS[name], PROMPT, spec=spec, seed=5, watch=observer)
    for field in ("output_ids", "order", "rounds", "margins", "counters", "tokens_kept", "finish_reason"):
        assert getattr(alone, field) == getattr(both, field)
    assert len(observer.drawn().argmax) == 21


def tempered(logits: Sequence[float], temperature: float) -> list[float]:
    """softmax(logits / T) in plain loops."""
    top = max(logits)
    weights = [math.exp((logit - top) / temperature) for logit in logits]
    return [weight / math.fsum(weights) for weight in weights]


@pytest.mark.parametrize(("temperature", "noise"), MODES)
@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("at_once", [1, 5, 32])
def test_the_numbers_are_those_of_plain_loops(
    monkeypatch: pytest.MonkeyPatch, name: str, temperature: float, noise: Any, at_once: int
) -> None:
    monkeypatch.setattr(observe, "AT_ONCE", at_once)
    spec = DecodeSpec(max_new_tokens=21, block_length=8, temperature=temperature, noise=noise)
    _, drawn, seen = watched(DRAFTERS[name], spec)
    assert len(drawn.argmax) == len(drawn.agreed) == len(drawn.distances) == len(seen) == 21
    for one, argmax, agreed, distance in zip(seen, drawn.argmax, drawn.agreed, drawn.distances, strict=True):
        position, token = one.verdict.commit
        fresh = one.verdict.logits_RV[one.verdict.open.index(position)].tolist()
        assert argmax == str(int(fresh.index(max(fresh)) == token))
        if one.known is None:
            assert (agreed, distance) == ("-", None)
            continue
        assert one.stale is not None
        assert agreed == str(int(one.stale.drawn_ids_L2[position, 0] == token))
        stale = one.known.logits_RV[one.known.open.index(position)].tolist()
        if temperature == 0:
            expected = float(stale.index(max(stale)) != fresh.index(max(fresh)))
            assert agreed == "10"[int(expected)]
        else:
            pairs = zip(tempered(stale, temperature), tempered(fresh, temperature), strict=True)
            expected = 1.0 - math.fsum(min(p, q) for p, q in pairs)  # the other form of total variation
        assert distance == pytest.approx(expected, abs=1e-6)
    firsts = [index for index, letter in enumerate(drawn.agreed) if letter == "-"]
    assert firsts == [0, 5, 13]  # blocks of 8 behind a prompt of 3


def test_greedy_draws_are_all_the_argmax_and_hot_ones_are_not() -> None:
    _, cold, _ = watched(NoDrafter(), DecodeSpec(max_new_tokens=24, block_length=8))
    _, hot, _ = watched(NoDrafter(), DecodeSpec(max_new_tokens=24, block_length=8, temperature=5.0))
    assert cold.argmax == "1" * 24
    assert hot.argmax.count("1") < 16


def pooled(noise: Any, name: str) -> tuple[list[int], list[float], list[float]]:
    """Agreement, bound and expected agreement of independent draws, commit by commit, over many seeds."""
    spec = DecodeSpec(max_new_tokens=24, block_length=8, temperature=1.3, noise=noise)
    agreed: list[int] = []
    bound: list[float] = []
    products: list[float] = []
    for seed in range(60):
        _, drawn, seen = watched(DRAFTERS[name], spec, seed=1000 + seed)
        for one, letter, distance in zip(seen, drawn.agreed, drawn.distances, strict=True):
            if distance is None or one.known is None:
                continue
            position = one.verdict.commit.position
            rows = [v.logits_RV[v.open.index(position)].tolist() for v in (one.known, one.verdict)]
            p, q = (tempered(row, spec.temperature) for row in rows)
            agreed.append(int(letter))
            bound.append((1 - distance) / (1 + distance))
            products.append(math.fsum(a * b for a, b in zip(p, q, strict=True)))
    return agreed, bound, products


def error_of_mean(values: Sequence[float]) -> float:
    """Standard error of a mean of values."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values)) / len(values)


@pytest.mark.parametrize("name", ["none", "ssd"])
def test_with_shared_noise_the_stale_draw_is_kept_at_least_as_often_as_the_paper_bounds(name: str) -> None:
    agreed, bound, products = pooled("coupled", name)
    assert len(agreed) == 60 * 20  # 24 commits in four blocks, one of each without a stale distribution
    mean, floor = math.fsum(agreed) / len(agreed), math.fsum(bound) / len(bound)
    gaps = [a - b for a, b in zip(agreed, bound, strict=True)]
    assert mean >= floor - 3 * error_of_mean(gaps)
    assert mean > math.fsum(products) / len(products) + 0.1  # far more often than draws of one's own would agree


@pytest.mark.parametrize("name", ["none", "ssd"])
def test_with_noise_of_its_own_the_draft_agrees_as_often_as_two_independent_draws(name: str) -> None:
    agreed, _, products = pooled("independent", name)
    gaps = [a - p for a, p in zip(agreed, products, strict=True)]
    assert abs(math.fsum(gaps) / len(gaps)) < 4 * error_of_mean(gaps)


@pytest.mark.parametrize(
    "bad",
    [
        {"argmax": "1"},
        {"agreed": "1x"},
        {"argmax": "1-"},
        {"agreed": "--"},
        {"agreed": "11"},
        {"distances": (None, 0.5, 0.5)},
    ],
)
def test_records_that_contradict_themselves_are_refused(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"argmax": "10", "agreed": "-1", "distances": (None, 0.25)}
    Drawn(**good)
    with pytest.raises(ValueError, match="drawn: "):
        Drawn(**{**good, **bad})
