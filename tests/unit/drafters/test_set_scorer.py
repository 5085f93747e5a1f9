"""The set model on a stale distribution: what it answers, and that training and drafting show it the same numbers."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from sweeps.spec import DecodeSpec
from tests.toys import ToyTarget
from tests.traces import toy_cell, toy_trace, write_traces
from workers.decoding.acceptance import Step
from workers.decoding.loop import decode
from workers.decoding.seen import Seen
from workers.decoding.stale import Stale
from workers.drafters.none import NoDrafter
from workers.drafters.set_scorer import ModelSetScorer
from workers.drafters.set_scores import SetNode, SetScores
from workers.models.set_facts import SetConfig
from workers.models.set_model import BoundSetModel, SetModel, bind, embeddings_of
from workers.replay.trace import Trace
from workers.training.sets_data import SetTrajectories
from workers.training.sets_step import answer

LENGTH, VOCAB = 8, 40
TARGET = ToyTarget(vocab_size=VOCAB, scale=3.0)


@pytest.fixture(scope="module")
def bound() -> BoundSetModel:
    torch.manual_seed(2)
    config = SetConfig(block_length=LENGTH, hidden=VOCAB, layers=2, width=32, feedforward=64, candidate_width=24)
    return bind(SetModel(config).eval(), TARGET)


def scored(bound: BoundSetModel, stale: Stale, *nodes: SetNode) -> SetScores:
    return ModelSetScorer(bound.model, bound.table_VE, stale)(nodes)


def trace_at(temperature: float, target: ToyTarget = TARGET) -> Trace:
    cell = toy_cell(temperature=temperature, length=LENGTH, new=13, tau=0.9)
    return toy_trace(target, cell, prompt="hellohey", states=True)


def node_at(trace: Trace, step: int, depth: int) -> SetNode:
    """The virtual state behind step `step` and `depth` drafted ones that came true."""
    stale, taken = trace.stale(step), trace.taken[step : step + depth + 1]
    state = stale.state
    for commits in taken:
        state = state.fill(*commits)
    return SetNode(state=state, known=tuple(commit.position for commit in taken[0]), path=taken[1:])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_training_and_drafting_show_the_model_the_same(
    bound: BoundSetModel, temperature: float, tmp_path: Path
) -> None:
    """Each example's answer equals what the scorer computes from the trace's own stale distribution."""
    traces = [
        toy_trace(
            TARGET,
            toy_cell(temperature=temperature, length=LENGTH, new=13, tau=0.9),
            index,
            prompt="abc" + "d" * index,
            states=True,
        )
        for index in range(3)
    ]
    data = SetTrajectories.read(write_traces(tmp_path, traces), held_out=0.3)
    first = compared = 0
    for trace in traces:
        chosen = [(s, d) for s in range(len(trace)) for d in range(data.choices_S[first + s])]
        batch = data.batch(np.array([first + s for s, _ in chosen]), np.array([d for _, d in chosen]))
        with torch.inference_mode():
            found = answer(bound.model, batch, embeddings_of(TARGET).float())
        for row, (step, depth) in enumerate(chosen):
            stale, node = trace.stale(step), node_at(trace, step, depth)
            scores = scored(bound, stale, node)
            open, here = list(stale.state.open), batch.open_BA[row, : len(stale.state.open)]
            wanted = torch.where(here, found.odds_BA[row, : len(open)].sigmoid().double(), 0.0)
            assert torch.allclose(scores.include_BL[0, open], wanted, atol=1e-5)
            label = trace.taken[step + depth + 1]
            assert [open[i] for i in np.flatnonzero(batch.member_BA[row])] == [commit.position for commit in label]
            assert [int(batch.tokens_BA[row, open.index(p)]) for p, _ in label] == [token for _, token in label]
            fresh = trace.stale(step + depth + 1)
            assert fresh.state == node.state
            for place, position in enumerate(open):
                known = dict(zip(fresh.ids_LK[position].tolist(), fresh.probs_LK[position].tolist(), strict=True))
                for candidate, probability in zip(
                    batch.ids_BAC[row, place].tolist(), batch.fresh_BAC[row, place].tolist(), strict=True
                ):
                    mine = known.get(candidate, 0.0) if position in fresh.state.open else 0.0
                    assert probability == pytest.approx(mine, abs=1e-6)
            compared += 1
        first += len(trace)
    assert compared > 30


def test_a_recorded_stale_distribution_is_the_decoders_own(bound: BoundSetModel) -> None:
    """Bit for bit, but for hidden states, which a trace keeps scaled and in half precision."""
    trace, live = trace_at(1.0), list[Stale]()
    cell = toy_cell(temperature=1.0, length=LENGTH, new=13, tau=0.9)

    def watch(seen: Seen) -> None:
        live.append(seen.fresh())

    from workers.decoding.noise import sample_seed

    seed = sample_seed(cell.seed, "p0")
    decode(TARGET, NoDrafter(), TARGET.encode("hellohey"), spec=cell.decode, seed=seed, watch=watch)
    assert len(live) == len(trace)
    for step, own in enumerate(live):
        kept = trace.stale(step)
        assert kept.limit == own.limit == pytest.approx(math.log(9))
        assert kept.noise_LK is not None
        assert own.noise_LK is not None
        assert torch.allclose(kept.noise_LK, own.noise_LK, atol=1e-6)
        if step + 1 < len(trace) and own.state.open == trace.steps[step].state.open:
            root = own.state.fill(*trace.taken[step])
            if root.full:
                continue
            node = SetNode(state=root, known=tuple(p for p, _ in trace.taken[step]), path=())
            ours, theirs = scored(bound, kept, node), scored(bound, own, node)
            assert torch.allclose(ours.include_BL, theirs.include_BL, atol=1e-3)


def test_nothing_is_said_of_positions_that_are_not_open(bound: BoundSetModel) -> None:
    trace = trace_at(0.0)
    node = node_at(trace, 0, 1)
    scores = scored(bound, trace.stale(0), node)
    closed = [i for i in range(LENGTH) if i not in node.state.open]
    assert scores.include_BL.dtype == torch.float64
    assert scores.include_BL[0, closed].tolist() == [0.0] * len(closed)
    assert scores.token_BL[0, closed].tolist() == [node.state.tokens[i] for i in closed]
    assert all(0 < value < 1 for value in scores.include_BL[0, list(node.state.open)].tolist())
    assert all(0 < value <= 1 for value in scores.sure_BL[0, list(node.state.open)].tolist())


def test_a_batch_of_nodes_equals_one_by_one(bound: BoundSetModel) -> None:
    trace = trace_at(0.0)
    nodes = [node_at(trace, 0, depth) for depth in range(3)]
    together = scored(bound, trace.stale(0), *nodes)
    for number, node in enumerate(nodes):
        alone = scored(bound, trace.stale(0), node)
        assert torch.allclose(alone.include_BL[0], together.include_BL[number], atol=1e-6)
        assert torch.equal(alone.token_BL[0], together.token_BL[number])
        assert torch.allclose(alone.sure_BL[0], together.sure_BL[number], atol=1e-6)


def test_drafted_steps_are_told_apart(bound: BoundSetModel) -> None:
    """The same state by one step or by two: another path, another answer."""
    trace = trace_at(0.0)
    node = node_at(trace, 0, 2)
    joined: Step = tuple(sorted(commit for step in node.path for commit in step))
    by_two, by_one = scored(bound, trace.stale(0), node, replace(node, path=(joined,))).include_BL
    assert not torch.allclose(by_two, by_one, atol=1e-6)


def candidate_scores(bound: BoundSetModel, stale: Stale, node: SetNode) -> tuple[ModelSetScorer, torch.Tensor]:
    """The scorer, and the candidates' log probabilities that it chooses tokens by."""
    scorer, seen = ModelSetScorer(bound.model, bound.table_VE, stale), list[torch.Tensor]()
    choose = scorer.tokens

    def listening(logp_BAC: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(logp_BAC)
        return choose(logp_BAC)

    scorer.tokens = listening  # type: ignore[method-assign]
    scorer([node])
    return scorer, seen[0][0]


@pytest.mark.parametrize("temperature", [0.0, 0.7, 2.0])
def test_tokens_are_the_likeliest_or_those_that_the_shared_noise_draws(
    bound: BoundSetModel, temperature: float
) -> None:
    trace = trace_at(temperature)
    stale, node = trace.stale(0), node_at(trace, 0, 1)
    _, logp_AC = candidate_scores(bound, stale, node)
    scores = scored(bound, stale, node)
    drawn_differently = 0
    for place, position in enumerate(stale.state.open):
        if position not in node.state.open:
            continue
        ids = stale.ids_LK[position, :16].tolist()
        values = logp_AC[place].tolist()
        if temperature:
            assert stale.noise_LK is not None
            noise = stale.noise_LK[position, :16].tolist()
            values = [value / temperature + own for value, own in zip(values, noise, strict=True)]
            first, second = sorted(values, reverse=True)[:2]
            sure = math.exp(first) / (math.exp(first) + math.exp(second))
        else:
            sure = math.exp(max(values))
        wanted = ids[values.index(max(values))]
        drawn_differently += wanted != ids[int(logp_AC[place].argmax())]
        assert int(scores.token_BL[0, position]) == wanted
        assert float(scores.sure_BL[0, position]) == pytest.approx(sure, abs=1e-6)
    assert (drawn_differently > 0) == (temperature > 1)


def test_with_independent_noise_the_drafter_draws_for_itself(bound: BoundSetModel) -> None:
    stale = trace_at(1.0).stale(0)
    node = node_at(trace_at(1.0), 0, 1)
    own = replace(stale, coupled=False, noise_LK=None, drawn_scores_L2=stale.logprobs_LK[:, :2])
    scores = scored(bound, own, node)
    open = list(node.state.open)
    assert scores.token_BL[0, open].tolist() == stale.drawn_ids_L2[open, 0].tolist()
    assert scores.sure_BL[0, open].tolist() == pytest.approx(stale.probs_LK[open, 0].tolist())


def test_a_vocabulary_smaller_than_the_candidates(tmp_path: Path) -> None:
    target = ToyTarget(vocab_size=9)
    torch.manual_seed(3)
    config = SetConfig(block_length=LENGTH, hidden=9, layers=1, width=32, feedforward=64, candidate_width=24)
    bound = bind(SetModel(config).eval(), target)
    for temperature in (0.0, 1.0):
        trace = trace_at(temperature, target)
        node = node_at(trace, 0, 1)
        scores = scored(bound, trace.stale(0), node)
        assert all(0 <= int(scores.token_BL[0, i]) < 8 for i in node.state.open)
        assert torch.isfinite(scores.sure_BL).all()


def test_a_distribution_without_hidden_states_cannot_be_read(bound: BoundSetModel) -> None:
    stale = replace(trace_at(0.0).stale(0), hidden_LH=None)
    with pytest.raises(AssertionError, match="hidden states"):
        ModelSetScorer(bound.model, bound.table_VE, stale)


def test_the_limit_of_the_threshold_is_what_tau_says() -> None:
    assert DecodeSpec(commit="threshold", tau=0.9).limit == pytest.approx(math.log(9))
