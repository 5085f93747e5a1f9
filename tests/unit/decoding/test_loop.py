"""The decoder against the naive one: outputs, orders and counts, over random targets, drafters and temperatures."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.spec import DecodeSpec, DrafterSpec
from tests.asked import prompted, seeds, specs
from tests.drafters import ready
from tests.toys import (
    KnowingDrafter,
    RandomDrafter,
    RandomOrderDrafter,
    ToyTarget,
    WrongDrafter,
    coarse_target,
    const_target,
    flat_target,
)
from workers.catalog import DRAFTERS
from workers.decoding.loop import decode
from workers.decoding.noise import TARGET_STREAM, gumbel, mixed
from workers.decoding.reference import choose, reference
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.decoding.tally import Generation
from workers.decoding.tree import DraftTree
from workers.drafters.base import Drafter
from workers.drafters.none import NoDrafter
from workers.drafters.ssd import SsdDrafter


@dataclass(frozen=True)
class Choice:
    """A drafter in the making: a kind of the table with its options, or one of the toys."""

    kind: str
    seed: int
    budget: int
    gamma: float
    hedge: float
    merge_states: bool

    def of(self, target: ToyTarget, prompt: list[int], spec: DecodeSpec, seed: int) -> Drafter:
        """The drafter, ready to decode `prompt`."""
        options: dict[str, Any] = {"gamma": self.gamma, "hedge": self.hedge, "merge_states": self.merge_states}
        match self.kind:
            case "random":
                return RandomDrafter(self.seed, self.budget)
            case "wrong":
                return WrongDrafter(target.never, self.budget)
            case "random order":
                return RandomOrderDrafter(self.seed, self.budget, **options)
        if DRAFTERS[self.kind].artifact == "draft_graph" and spec.block_length < 3:
            return NoDrafter()  # no graph is that small
        return ready(self.kind, target, prompt, spec, seed, budget=self.budget, **options)


KINDS = [kind for kind, entry in DRAFTERS.items() if "standard" in entry.commits]
choices = st.builds(
    Choice,
    kind=st.sampled_from([*KINDS, "random", "wrong", "random order"]),
    seed=st.integers(0, 10**6),
    budget=st.integers(1, 12),
    gamma=st.sampled_from([0.0, 0.05, 0.4]),
    hedge=st.sampled_from([0.0, 0.6, 1.0]),
    merge_states=st.booleans(),
)
prompts = st.lists(st.integers(0, 8), max_size=13)


@settings(max_examples=150, deadline=None)
@given(prompted(), specs(), seeds)
def test_draft_free_equals_the_naive_decoder_with_one_forward_a_token(
    asked: tuple[ToyTarget, list[int]], spec: DecodeSpec, seed: int
) -> None:
    target, prompt = asked
    free, naive = (
        decode(target, NoDrafter(), prompt, spec=spec, seed=seed),
        reference(target, prompt, spec=spec, seed=seed),
    )
    assert (free.output_ids, free.order) == (naive.output_ids, naive.order)
    assert free.counters.nfe == len(free.output_ids) == naive.forwards
    assert free.rounds == tuple(range(free.counters.nfe))
    assert set(free.counters.accepted) == set(free.counters.drafted) == {0}


def check_counts(target: ToyTarget, drafter: Drafter, drafted: Generation) -> None:
    """What holds of any run, whatever its noise."""
    counters = drafted.counters
    assert counters.nfe <= len(drafted.output_ids)
    assert counters.nfe + sum(counters.accepted) == len(drafted.output_ids)
    assert sorted(drafted.order) == list(range(len(drafted.output_ids)))
    assert max(counters.drafted) <= drafter.budget
    assert target.batches == [1 + drafts for drafts in counters.drafted]
    assert list(drafted.rounds) == [r for r, accepted in enumerate(counters.accepted) for _ in range(accepted + 1)]


@settings(max_examples=500, deadline=None)
@given(prompted(), choices, specs(), seeds)
def test_no_drafter_changes_the_output_or_needs_more_forwards(
    asked: tuple[ToyTarget, list[int]], choice: Choice, spec: DecodeSpec, seed: int
) -> None:
    target, prompt = asked
    naive = reference(target, prompt, spec=spec, seed=seed)
    drafter = choice.of(target, prompt, spec, seed)
    target.batches.clear()
    drafted = decode(target, drafter, prompt, spec=spec, seed=seed)
    assert (drafted.output_ids, drafted.order) == (naive.output_ids, naive.order)
    check_counts(target, drafter, drafted)


class Noting:
    """Passes a drafter's trees on and keeps them, by root."""

    def __init__(self, drafter: Drafter) -> None:
        self.drafter, self.budget = drafter, drafter.budget
        self.trees: dict[tuple[int, tuple[int, ...]], DraftTree] = {}

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        tree = self.trees[stale.start, root.tokens] = self.drafter.propose(root, known, stale)
        return tree


@settings(max_examples=300, deadline=None)
@given(prompted(), choices, specs(noise="independent"), seeds)
def test_independent_noise_every_commit_is_decided_by_draws_made_for_it_alone(
    asked: tuple[ToyTarget, list[int]], choice: Choice, spec: DecodeSpec, seed: int
) -> None:
    """Each commit is the naive rule's for its state, with the noise of its forward and node, which decide no other."""
    target, prompt = asked
    noting = Noting(choice.of(target, prompt, spec, seed))
    target.batches.clear()
    states: list[tuple[int, BlockState, Commit]] = []
    drafted = decode(
        target,
        noting,
        prompt,
        spec=spec,
        seed=seed,
        watch=lambda seen: states.append((seen.start, seen.state, seen.verdict.commit)),
    )
    check_counts(target, noting, drafted)
    whole, keys, forward, tree = [*prompt, *drafted.output_ids], set(), -1, None
    for (start, state, commit), made_in in zip(states, drafted.rounds, strict=True):
        if made_in != forward:
            forward, tree = made_in, noting.trees.get((start, state.tokens))
        node = 0 if tree is None else [drafted.tokens for drafted in tree.states].index(state.tokens)
        logits_LV = target.logits(target.row(tuple(whole[:start]), state.tokens))
        choices = []
        for place in state.open:
            key = mixed(seed, TARGET_STREAM, forward, node)
            noise_V = gumbel(key, torch.tensor([start + place]), target.vocab_size)[0].tolist()
            token, confidence = choose(logits_LV[place].tolist(), noise_V if spec.temperature else None, spec)
            choices.append((-confidence, place, token))
        assert commit == min(choices)[1:]
        keys.add((forward, node))
    assert len(keys) == len(states)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["flat", "coarse", "const"]), st.integers(0, 99), choices, prompts, specs(), seeds)
def test_ties_break_alike_in_every_path(
    kind: str, number: int, choice: Choice, prompt: list[int], spec: DecodeSpec, seed: int
) -> None:
    target = {"flat": flat_target, "coarse": coarse_target}.get(kind, lambda seed: const_target(seed % 9))(seed=number)
    free = decode(target, NoDrafter(), prompt, spec=spec, seed=seed)
    drafted = decode(target, choice.of(target, prompt, spec, seed), prompt, spec=spec, seed=seed)
    assert (drafted.output_ids, drafted.order) == (free.output_ids, free.order)
    if kind != "coarse":  # sums of equal terms in another order: only this decoder's own ties are exact there
        assert free.output_ids == reference(target, prompt, spec=spec, seed=seed).output_ids


def test_flat_target_gives_the_lowest_token_from_left_to_right() -> None:
    spec = DecodeSpec(max_new_tokens=10, block_length=4)
    for drafter in (NoDrafter(), SsdDrafter(3), RandomDrafter(1)):
        free = decode(flat_target(), drafter, [5], spec=spec, seed=0)
        assert free.output_ids == (0,) * 10
        assert free.order == tuple(range(10))
    # Position ties have margin zero; the last open position of a block has no rival, but its tokens tie.
    assert set(free.margins) == {0.0}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_drafter_that_is_always_wrong_gets_nothing_accepted(temperature: float) -> None:
    target = ToyTarget(seed=4)
    spec = DecodeSpec(max_new_tokens=24, block_length=8, temperature=temperature)
    drafted = decode(target, WrongDrafter(target.never), [1, 2, 3], spec=spec, seed=1)
    free = decode(target, NoDrafter(), [1, 2, 3], spec=spec, seed=1)
    assert drafted.output_ids == free.output_ids
    assert set(drafted.counters.accepted) == {0}
    assert max(drafted.counters.drafted) == 4
    assert drafted.counters.nfe == 24


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_drafter_that_knows_the_future_gets_everything_accepted(temperature: float) -> None:
    """Blocks of 8 with D = 4: the first forward goes alone, then 1 + 4 commits a round: 1 + 5 + 2 = 8, three rounds."""
    target = ToyTarget(seed=4)
    spec = DecodeSpec(max_new_tokens=24, block_length=8, temperature=temperature)
    future: dict[int, list[Commit]] = {0: [], 8: [], 16: []}
    free = decode(
        target, NoDrafter(), [], spec=spec, seed=1, watch=lambda seen: future[seen.start].append(seen.verdict.commit)
    )
    knowing = decode(target, KnowingDrafter(list(future.values())), [], spec=spec, seed=1)
    assert knowing.output_ids == free.output_ids
    assert knowing.order == free.order
    assert knowing.counters.accepted == (0, 4, 1) * 3
    assert knowing.counters.drafted == (0, 4, 1) * 3


@pytest.mark.parametrize("prompt", [3, 4, 5, 11])
@pytest.mark.parametrize("budget", [1, 4, 10, 13])
def test_exactly_the_requested_number_of_tokens(prompt: int, budget: int) -> None:
    target = ToyTarget(seed=2)
    spec = DecodeSpec(max_new_tokens=budget, block_length=4)
    for drafter in (NoDrafter(), SsdDrafter(3), RandomDrafter(1)):
        out = decode(target, drafter, [7] * prompt, spec=spec, seed=0)
        assert len(out.output_ids) == out.tokens_kept == budget
        assert target.traits.mask_id not in out.output_ids
        assert sorted(out.order) == list(range(budget))
        assert out.finish_reason == "length"
        assert out.prompt_tokens == prompt


def test_positions_behind_the_end_stay_masks_that_the_target_sees() -> None:
    seen: list[tuple[int, ...]] = []

    class Watching(ToyTarget):
        def row(self, prefix: tuple[int, ...], block: tuple[int, ...]) -> torch.Tensor:
            seen.append(block)
            return super().row(prefix, block)

    target = Watching(seed=2)
    decode(target, SsdDrafter(3), [7] * 5, spec=DecodeSpec(max_new_tokens=5, block_length=4), seed=0)
    mask = target.traits.mask_id
    assert all(block[2:] == (mask, mask) for block in seen if block[0] != 7)
    assert {block[0] for block in seen if block[0] == 7} == {7}


def test_every_forward_count_has_its_place() -> None:
    """Prompt 5, blocks of 4, 10 new tokens: prefill 4; then 3 + 4 + 3 forwards, the second and third block's first
    forward carrying the block filled before."""
    counters = decode(
        ToyTarget(), NoDrafter(), [1] * 5, spec=DecodeSpec(max_new_tokens=10, block_length=4), seed=0
    ).counters
    assert (counters.prefill_forwards, counters.prefill_positions) == (1, 4)
    assert counters.kv_passes == 0
    assert counters.nfe == 10
    assert counters.positions == 10 * 4 + 2 * 4
    assert (
        decode(ToyTarget(), NoDrafter(), [1] * 3, spec=DecodeSpec(block_length=4), seed=0).counters.prefill_forwards
        == 0
    )


def test_an_empty_prompt_is_a_sequence_that_begins_with_masks() -> None:
    spec = DecodeSpec(max_new_tokens=6, block_length=4)
    empty = decode(ToyTarget(), NoDrafter(), [], spec=spec, seed=0)
    assert len(empty.output_ids) == 6
    assert empty.prompt_tokens == empty.counters.prefill_forwards == 0
    assert empty.output_ids == reference(ToyTarget(), [], spec=spec, seed=0).output_ids


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("drafter", [NoDrafter(), SsdDrafter(5), RandomDrafter(3)], ids=["none", "ssd", "random"])
def test_stops_after_the_block_of_the_first_stop_id_and_keeps_what_is_before_it(
    drafter: Drafter, temperature: float
) -> None:
    target = ToyTarget(seed=8, stops=(2,))
    spec = DecodeSpec(max_new_tokens=40, block_length=4, temperature=temperature)
    out = decode(target, drafter, [1], spec=spec, seed=0)
    first = out.output_ids.index(2)
    assert out.tokens_kept == first
    assert len(out.output_ids) == (1 + first) // 4 * 4 + 3  # to the end of its block; the prompt fills one position
    assert out.finish_reason == "stop"
    whole = decode(target, drafter, [1], spec=DecodeSpec(**{**as_dict(spec), "ignore_eos": True}), seed=0)
    assert len(whole.output_ids) == whole.tokens_kept == 40
    assert whole.finish_reason == "length"
    assert whole.output_ids[: len(out.output_ids)] == out.output_ids


def as_dict(spec: DecodeSpec) -> dict[str, object]:
    return {name: getattr(spec, name) for name in DecodeSpec.__slots__}


def test_a_stop_id_in_the_prompt_does_not_stop() -> None:
    target = ToyTarget(seed=8, stops=(2,), shape_logits=const_target(1).shape_logits)
    out = decode(target, NoDrafter(), [2, 2, 2], spec=DecodeSpec(max_new_tokens=9, block_length=4), seed=0)
    assert out.output_ids == (1,) * 9
    assert out.finish_reason == "length"


@pytest.mark.parametrize("length", [3, 4, 5, 9])
def test_one_prompt_gives_the_same_alone_and_after_any_other(length: int) -> None:
    """Prompts are decoded one by one and share nothing, so no finished row can be filled further and none is padded."""
    target = ToyTarget(seed=3, stops=(2,))
    spec = DecodeSpec(max_new_tokens=20, block_length=4)
    alone = decode(target, SsdDrafter(4), [1] * length, spec=spec, seed=0)
    for other in (3, 4, 5, 9):
        decode(target, SsdDrafter(4), [1] * other, spec=spec, seed=0)
        again = decode(target, SsdDrafter(4), [1] * length, spec=spec, seed=0)
        assert (again.output_ids, again.tokens_kept, again.finish_reason) == (
            alone.output_ids,
            alone.tokens_kept,
            alone.finish_reason,
        )


@pytest.mark.parametrize(("length", "budget"), [(1, 64), (63, 2), (64, 1), (65, 1), (100, 128)])
def test_a_prompt_that_cannot_fit_is_refused_with_its_numbers(length: int, budget: int) -> None:
    target = ToyTarget(max_positions=64)
    with pytest.raises(ValueError, match=rf"prompt of {length} tokens plus {budget} new"):
        decode(target, NoDrafter(), [1] * length, spec=DecodeSpec(max_new_tokens=budget, block_length=4), seed=0)


@pytest.mark.parametrize(("length", "budget"), [(0, 64), (1, 63), (32, 32), (63, 1)])
def test_a_prompt_that_just_fits_is_decoded_whole(length: int, budget: int) -> None:
    target = ToyTarget(max_positions=64)
    out = decode(target, NoDrafter(), [1] * length, spec=DecodeSpec(max_new_tokens=budget, block_length=4), seed=0)
    assert len(out.output_ids) == budget


def test_a_mask_token_in_the_prompt_is_refused() -> None:
    target = ToyTarget()
    with pytest.raises(ValueError, match=r"prompt: token 2 is the target's mask token \(10\)"):
        decode(target, NoDrafter(), [1, 2, 10], spec=DecodeSpec(), seed=0)


def test_one_mask_left_in_the_first_block() -> None:
    target = ToyTarget(seed=6)
    for drafter in (NoDrafter(), SsdDrafter(3)):
        out = decode(target, drafter, [1, 1, 1], spec=DecodeSpec(max_new_tokens=1, block_length=4), seed=0)
        assert out.order == (0,)
        assert out.counters.nfe == 1
        assert out.counters.drafted == (0,)


@pytest.mark.parametrize("noise", ["coupled", "independent"])
def test_samples_of_one_prompt_differ_and_each_repeats(noise: str) -> None:
    target = ToyTarget(seed=1)
    spec = DecodeSpec(max_new_tokens=16, block_length=4, temperature=1.0, noise=noise)  # type: ignore[arg-type]

    def sample(seed: int) -> tuple[int, ...]:
        return decode(target, SsdDrafter(3), [1, 2], spec=spec, seed=seed).output_ids

    forwards, backwards = [sample(seed) for seed in range(4)], [sample(seed) for seed in reversed(range(4))]
    assert forwards == backwards[::-1]
    assert len(set(forwards)) == 4


@settings(max_examples=60, deadline=None)
@given(prompted(), specs(noise="independent"), seeds)
def test_independent_noise_draft_free_equals_the_naive_decoder(
    asked: tuple[ToyTarget, list[int]], spec: DecodeSpec, seed: int
) -> None:
    target, prompt = asked
    free, naive = (
        decode(target, NoDrafter(), prompt, spec=spec, seed=seed),
        reference(target, prompt, spec=spec, seed=seed),
    )
    assert (free.output_ids, free.order) == (naive.output_ids, naive.order)


def test_a_drafter_spec_of_none_is_never_asked() -> None:
    class Refusing(NoDrafter):
        def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
            raise AssertionError("asked")

    assert DrafterSpec(name="none", kind="none", budget=0).budget == Refusing.budget == 0
    decode(ToyTarget(), Refusing(), [1], spec=DecodeSpec(max_new_tokens=6, block_length=4), seed=0)
