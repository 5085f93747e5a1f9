"""The set drafter on real architectures: float64, random weights, against the naive decoder; what it is bound to."""

import gc
from dataclasses import replace
from functools import cache
from itertools import product

import pytest
import torch

from sweeps.spec import DecodeSpec, DrafterSpec
from tests.drafters import artifact, ready, width_of
from tests.tiny_checkpoints import write_checkpoint
from tests.toys import ToyTarget, greedy_stale, normal
from workers.decoding.loop import decode
from workers.decoding.reference import reference
from workers.decoding.state import Commit
from workers.decoding.verification import Verification
from workers.drafters.base import TargetReader
from workers.drafters.spot_sets import BOUND, SetDrafter, make
from workers.targets.load import NativeTarget, load_target

SWITCHES = ({}, {"cross_block": True}, {"cross_block": True, "refresh": True})


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    @cache
    def load(family: str) -> NativeTarget:
        return load_target(
            write_checkpoint(tmp_path_factory.mktemp(family), family=family, tied=False), dtype="float64"
        )

    return load


@pytest.mark.parametrize("family", ["sdar", "llada2"])
def test_output_equals_the_naive_decoder_with_and_without_the_next_block(loaded, family: str) -> None:  # type: ignore[no-untyped-def]
    """Confidences of random weights are low, and so is tau: several positions a step, and blocks that fill early."""
    target, accepted, crossed = loaded(family), 0, 0
    for temperature, (prompt, new, length), tau in product([0.0, 1.0], [(3, 14, 4), (8, 9, 8)], [0.006, 0.008]):
        rule = {"temperature": temperature, "commit": "threshold", "tau": tau, "ignore_eos": True}
        spec = DecodeSpec(max_new_tokens=new, block_length=length, **rule)
        ids = [10 + 7 * i % 200 for i in range(prompt)]
        naive = reference(target, ids, spec=spec, seed=3)
        drafter = ready("spot-sets", target, ids, spec, 3, budget=8)
        for switch in SWITCHES:
            drafted = decode(target, drafter, ids, spec=spec, seed=3, verification=Verification(**switch))
            assert (drafted.output_ids, drafted.order, drafted.steps) == (naive.output_ids, naive.order, naive.steps)
            assert drafted.counters.nfe + sum(drafted.counters.accepted) == naive.forwards
            accepted += sum(drafted.counters.accepted)
            pairs = {(turn, (prompt + at) // length) for turn, at in zip(drafted.rounds, drafted.order, strict=True)}
            both = len(pairs) - len(dict(pairs))  # rounds with steps in two blocks
            assert switch or not both
            crossed += both
    assert accepted > crossed > 0


def reader(target: ToyTarget, budget: int = 4, **options: object) -> TargetReader:
    made = artifact("set_model", 8, "threshold", width_of(target))
    spec = DrafterSpec(name="s", kind="spot-sets", budget=budget, checkpoint=made, **options)  # type: ignore[arg-type]
    return make(spec, block_length=8)


def test_drafters_of_one_model_and_target_share_what_was_made_of_its_embeddings_as_long_as_one_of_them_lives() -> None:
    target, other = ToyTarget(seed=1, vocab_size=20), ToyTarget(seed=2, vocab_size=20)
    gc.collect()
    before = len(BOUND)
    first, second = (reader(target, budget).reading(target) for budget in (4, 8))
    third = reader(other).reading(other)
    assert isinstance(first, SetDrafter)
    assert isinstance(second, SetDrafter)
    assert isinstance(third, SetDrafter)
    assert first.bound is second.bound
    assert first.bound is not third.bound
    assert not torch.equal(first.bound.table_VE, third.bound.table_VE)
    assert (first.budget, second.budget) == (4, 8)
    del first, second, third
    gc.collect()
    assert len(BOUND) == before


def test_a_target_of_another_width_is_refused_with_the_way_out() -> None:
    wide, narrow = ToyTarget(vocab_size=30), ToyTarget(vocab_size=20)
    with pytest.raises(ValueError, match=r"reads vectors of width 30, the target's are 20 wide.*--calibrate-from"):
        reader(wide).reading(narrow)


def test_a_model_that_was_replaced_since_the_cell_was_made_is_refused_at_every_binding() -> None:
    target = ToyTarget(vocab_size=20)
    own = reader(target).reading(target)
    assert isinstance(own, SetDrafter)
    digest = own.bound.model.config.digest
    assert reader(target, digest=digest).reading(target)
    with pytest.raises(ValueError, match=rf"its set model has digest {digest}, the cell says feed"):
        reader(target, digest="feed").reading(target)


def test_a_mass_floor_leaves_drafts_out_and_a_budget_bounds_them() -> None:
    target, spec = ToyTarget(seed=1, vocab_size=40, drift=0.1), DecodeSpec(max_new_tokens=16, block_length=8)
    spec = replace(spec, commit="threshold", tau=0.5)
    drafted = {}
    for gamma, budget in product((0.0, 0.05), (3, 12)):
        drafter = ready("spot-sets", target, [1], spec, 0, budget=budget, gamma=gamma)
        counters = decode(target, drafter, [1], spec=spec, seed=0).counters
        assert max(counters.drafted) <= budget
        drafted[gamma, budget] = sum(counters.drafted)
    assert drafted[0.05, 12] < drafted[0.0, 12]
    assert drafted[0.0, 3] < drafted[0.0, 12]


def test_it_asks_for_the_hidden_states_that_a_recorded_distribution_is_without() -> None:
    """So it cannot be replayed from a trace: what it would read there is not recorded."""
    target = ToyTarget(seed=1, vocab_size=20)
    stale = greedy_stale(normal(3, 8, 20).softmax(-1), mask=19)[0]
    drafter = reader(target).reading(target)
    root = stale.state.fill(Commit(0, 1))
    with pytest.raises(ValueError, match="hidden states"):
        drafter.propose(root, (0,), stale)
