import pytest
import torch

from sweeps.spec import DrafterSpec
from tests.toys import ToyTarget
from tests.traces import toy_cell, toy_trace
from workers.decoding.expand import VirtualState
from workers.decoding.loop import decode
from workers.decoding.state import BlockState, Commit
from workers.drafters.none import NoDrafter
from workers.drafters.spot import OrderScorer, make
from workers.drafters.stale_view import depths_of
from workers.models.facts import OrderConfig
from workers.models.features import BEYOND, COMMITTED, OPEN
from workers.models.order_model import OrderModel, save_order_model

LENGTH = 8


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> str:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("order") / "model"
    save_order_model(OrderModel(OrderConfig(block_length=LENGTH)), path)
    return str(path)


def spot(checkpoint, **options):
    return make(DrafterSpec(name="spot", kind="spot", checkpoint=checkpoint, **options), block_length=LENGTH)


def test_fill_depths_tell_given_open_and_never_filled_positions():
    assert depths_of(BlockState((5, 9, 9, 9), (1, 2))).tolist() == [COMMITTED, OPEN, OPEN, BEYOND]
    assert depths_of(BlockState((9, 5, 7, 9), (0, 3))).tolist() == [OPEN, COMMITTED, COMMITTED, OPEN]


def test_scores_are_a_distribution_over_the_open_positions_of_each_virtual_state(checkpoint):
    trace = toy_trace(ToyTarget(vocab_size=40), toy_cell(length=LENGTH, new=9), prompt="abc")
    drafter = spot(checkpoint)
    stale, commit = trace.stale(0), trace.commits[0]
    root = stale.state.fill(commit)
    nodes = [VirtualState(root, commit.position)]
    for position in root.open[:2]:
        state = root.fill(Commit(position, 1))
        nodes.append(VirtualState(state, commit.position, (position,)))
    q_BL = OrderScorer(drafter.model, stale)(nodes)
    assert q_BL.shape == (3, LENGTH)
    assert q_BL.device.type == "cpu"
    for row, node in zip(q_BL.tolist(), nodes, strict=True):
        assert sum(row) == pytest.approx(1.0, abs=1e-5)
        assert {i for i, value in enumerate(row) if value > 0} == set(node.state.open)
    one = OrderScorer(drafter.model, stale)(nodes[2:])
    assert torch.allclose(one[0], q_BL[2], atol=1e-6)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("merge_states", [True, False])
def test_output_is_the_draft_free_one_and_the_tree_repeats(checkpoint, temperature, merge_states):
    target, spec = ToyTarget(vocab_size=40), toy_cell(temperature=temperature, length=LENGTH, new=21).decode
    ids = target.encode("some prompt")
    plain = decode(target, NoDrafter(), ids, spec=spec, seed=4)
    runs = [
        decode(target, spot(checkpoint, budget=6, merge_states=merge_states), ids, spec=spec, seed=4) for _ in range(2)
    ]
    assert runs[0].output_ids == plain.output_ids
    assert runs[0].order == plain.order
    assert runs[0].counters == runs[1].counters
    assert max(runs[0].counters.drafted) == 6
    assert runs[0].counters.nfe <= plain.counters.nfe


def test_a_mass_floor_drafts_less(checkpoint):
    target, spec = ToyTarget(vocab_size=40), toy_cell(length=LENGTH, new=16).decode
    ids = target.encode("some prompt")
    drafted = [
        sum(decode(target, spot(checkpoint, gamma=gamma), ids, spec=spec, seed=4).counters.drafted)
        for gamma in (0.0, 0.1, 0.9)
    ]
    assert drafted[0] > drafted[1] > drafted[2]


def test_a_model_for_another_block_length_is_refused(checkpoint):
    with pytest.raises(ValueError, match="block_length is 8: allowed is the decoder's 32"):
        make(DrafterSpec(name="spot", kind="spot", checkpoint=checkpoint), block_length=32)


def test_a_missing_model_is_refused():
    with pytest.raises(ValueError, match="checkpoint is ''"):
        make(DrafterSpec(name="spot", kind="spot"), block_length=32)
