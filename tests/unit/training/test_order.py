import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.toys import ToyTarget
from tests.traces import OrderedTarget, toy_cell, toy_trace, write_traces
from workers.models.order_model import load_order_model
from workers.replay.trace import Trace
from workers.training import order
from workers.training.fitting import FitProgress
from workers.training.order import train_order
from workers.training.order_accuracy import judged_examples
from workers.training.order_data import Trajectories
from workers.training.order_recipe import OrderRecipe
from workers.training.update import rate_at

LENGTH = 8
HOPS = (2, 5, 0, 7, 3, 6, 1, 4)
TINY = OrderRecipe(steps=6, batch=8, rise=2, evaluate_every=3, held_out=0.3)


class Hopping(OrderedTarget):
    """Fills a block in a fixed order that no stale distribution shows."""

    @staticmethod
    def next_position(filled, length):
        return next(position for position in HOPS if position not in filled)


@pytest.fixture(scope="module")
def hopping(tmp_path_factory):
    target, cell = Hopping(vocab_size=11), toy_cell(length=LENGTH, new=16)
    traces = [toy_trace(target, cell, index, prompt=f"{index:08d}") for index in range(20)]
    return write_traces(tmp_path_factory.mktemp("hopping"), traces)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Two temperatures, blocks that open with prompt tokens, a last block that is not filled to its end."""
    traces = [
        toy_trace(
            ToyTarget(vocab_size=40), toy_cell(temperature=t, length=LENGTH, new=13), index, prompt="abc" + "d" * index
        )
        for index in range(4)
        for t in (0.0, 1.0)
    ]
    return write_traces(tmp_path_factory.mktemp("mixed"), traces)


@pytest.mark.slow
def test_a_hidden_order_is_learnt_where_stale_confidence_says_nothing(hopping, tmp_path):
    recipe = OrderRecipe(steps=120, batch=64, rise=10, evaluate_every=120, max_depth=6, held_out=0.2)
    seen: list[FitProgress] = []
    trained = train_order(hopping, recipe, out_dir=tmp_path / "model", progress=seen.append)
    total = {row.depth: row for row in trained.accuracy if row.task == ""}
    for depth in range(1, 6):
        open_positions = LENGTH - depth
        assert total[depth].order_model.value > 0.98
        assert total[depth].stale_confidence.value < 1 / open_positions + 0.35  # chance, on 8 blocks
    assert total[1].order_model.n == 4 * 2 * 6  # 4 prompts of 2 blocks; the last two of 8 steps leave no choice
    assert total[6].order_model.n == 4 * 2
    assert seen[-1].evaluation.accuracy["trained on"][0].value > 0.98
    assert seen[-1].loss < seen[0].loss / 10


def test_examples_are_read_as_the_drafter_will_ask_them(mixed):
    """Each example's input equals what OrderScorer computes from the trace's own Stale, position by position."""
    from workers.decoding.expand import VirtualState
    from workers.drafters.spot import OrderScorer
    from workers.models.facts import OrderConfig
    from workers.models.order_model import OrderModel
    from workers.replay.trace import decode_trace

    torch.manual_seed(0)
    model = OrderModel(OrderConfig(block_length=LENGTH)).eval()
    data = Trajectories.read(mixed, held_out=0.3)
    first = 0
    for path in sorted(mixed):
        trace = decode_trace(path.read_bytes())
        steps = np.arange(len(trace))
        chosen = [(s, d) for s in steps for d in range(data.choices_S[first + s])]
        batch = data.batch(np.array([first + s for s, _ in chosen]), np.array([d for _, d in chosen]))
        with torch.inference_mode():
            hidden = model.encode(model.embed_stale(batch.features_BAF), batch.columns_BAC, batch.seen_BA)
            logq = model.log_order(hidden, batch.open_BA)
        for row, (step, depth) in enumerate(chosen):
            stale, commits = trace.stale(step), trace.commits[step : step + depth + 2]
            state = stale.state
            for commit in commits[:-1]:
                state = state.fill(commit)
            path_positions = tuple(commit.position for commit in commits[1:-1])
            expected = OrderScorer(model, stale)([VirtualState(state, commits[0].position, path_positions)])[0]
            width = len(stale.state.open)
            assert torch.allclose(logq[row, :width].exp(), expected[list(stale.state.open)], atol=1e-6)
            assert stale.state.open[int(batch.label_B[row])] == commits[-1].position
            best = max(state.open, key=lambda i: (float(stale.logodds_L[i]), -i))
            assert stale.state.open[int(batch.stale_best_B[row])] == best
            fresh = trace.stale(step + depth + 1)
            assert fresh.state == state
            wanted = [float(fresh.logodds_L[i]) if i in state.open else 0.0 for i in stale.state.open]
            assert batch.fresh_BA[row, :width].tolist() == pytest.approx(wanted)
        first += len(trace)
    assert first == len(data.rows_S)


def test_only_states_with_a_choice_are_examples(mixed):
    data = Trajectories.read(mixed, held_out=0.3)
    steps, depths = judged_examples(data, "trained on", max_depth=99)
    batch = data.batch(steps, depths)
    assert (batch.open_BA.sum(-1) >= 2).all()
    assert batch.open_BA.gather(-1, batch.label_B[:, None]).all()
    deepest = {step: int(depths[steps == step].max()) for step in set(steps.tolist())}
    final = data.batch(np.array(list(deepest)), np.array(list(deepest.values())))
    assert (final.open_BA.sum(-1) == 2).all()  # and none that has one is left out


def test_a_prompt_is_on_one_side_at_every_temperature(mixed):
    data = Trajectories.read(mixed, held_out=0.3)
    assert (data.prompts, data.held_out_prompts) == (4, 2)
    assert [(source.task, source.temperature) for source in data.sources] == [("toy", 0.0), ("toy", 1.0)]
    assert [(source.prompts, source.judged) for source in data.sources] == [(4, 2), (4, 2)]
    assert (data.judged_S ^ data.learnt_S).all()
    sides = data.judged_S.reshape(4, 2, 13)  # prompt, temperature, step
    assert sides.all((1, 2)).sum() == 2
    assert (~sides).all((1, 2)).sum() == 2


def test_the_same_seed_gives_the_same_weights_and_another_does_not(mixed, tmp_path):
    digests = [
        train_order(mixed, replace(TINY, seed=seed), out_dir=tmp_path / str(number)).digest
        for number, seed in enumerate((0, 0, 1))
    ]
    assert digests[0] == digests[1] != digests[2]


class Interrupted(Exception):  # noqa: N818
    pass


def test_going_on_gives_the_weights_of_an_uninterrupted_run(mixed, tmp_path, monkeypatch):
    monkeypatch.setattr(order, "SAVE_EVERY", 2)
    whole = train_order(mixed, TINY, out_dir=tmp_path / "whole").digest

    def stop(progress: FitProgress) -> None:
        if progress.step == 5:  # step 4 is the last one saved
            raise Interrupted

    state = tmp_path / "state.pt"
    with pytest.raises(Interrupted):
        train_order(mixed, TINY, out_dir=tmp_path / "parts", progress=stop, resume=state)
    seen: list[int] = []
    resumed = train_order(mixed, TINY, out_dir=tmp_path / "parts", progress=lambda p: seen.append(p.step), resume=state)
    assert seen == [5, 6]
    assert resumed.digest == whole
    again = train_order(mixed, TINY, out_dir=tmp_path / "parts", progress=lambda p: seen.append(p.step), resume=state)
    assert seen == [5, 6]
    assert again.digest == whole


def test_a_state_file_of_another_run_is_refused(mixed, hopping, tmp_path):
    state = tmp_path / "state.pt"
    train_order(mixed, TINY, out_dir=tmp_path / "a", resume=state)
    with pytest.raises(ValueError, match=r"another recipe .it differs in steps"):
        train_order(mixed, replace(TINY, steps=9), out_dir=tmp_path / "b", resume=state)
    with pytest.raises(ValueError, match="other traces"):
        train_order(hopping, TINY, out_dir=tmp_path / "b", resume=state)


def test_the_card_says_what_was_measured(mixed, tmp_path):
    trained = train_order(mixed, TINY, out_dir=tmp_path / "model")
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    assert card["digest"] == trained.digest == json.loads((tmp_path / "model" / "config.json").read_text())["digest"]
    assert card["recipe"]["steps"] == 6
    assert (card["traces"], card["prompts"], card["held_out_prompts"], card["steps_recorded"]) == (8, 4, 2, 104)
    assert {source["target_digest"] for source in card["sources"]} == {"toy-0"}
    rows = {(row["task"], row["temperature"], row["depth"]): row for row in card["accuracy"]}
    for depth in range(1, 11):
        parts = [rows["toy", t, depth] for t in (0.0, 1.0)]
        for who in ("order_model", "stale_confidence"):
            assert rows["", None, depth][who]["hits"] == sum(part[who]["hits"] for part in parts)
            assert rows["", None, depth][who]["n"] == sum(part[who]["n"] for part in parts)
    readme = (tmp_path / "model" / "README.md").read_text()
    assert "#### toy at T = 1" in readme
    first = rows["toy", 0.0, 1]
    assert first["prompts"] == 2
    assert f"| 1 | {first['order_model']['n']} | 2 | {first['order_model']['value']:.1%} (" in readme
    assert "at most 8,192 commits, drawn by a fixed seed" in readme
    assert load_order_model(tmp_path / "model", block_length=LENGTH)


def test_unusable_traces_are_refused(mixed, hopping, tmp_path):
    with pytest.raises(ValueError, match="none given"):
        Trajectories.read([], held_out=0.1)
    with pytest.raises(ValueError, match="at least 2 are needed"):
        Trajectories.read(mixed[:2], held_out=0.1)
    other = toy_trace(ToyTarget(vocab_size=40), toy_cell(length=LENGTH // 2), 9)
    foreign = write_traces(tmp_path / "foreign", [other])
    with pytest.raises(ValueError, match="block length 4: the others have 8"):
        Trajectories.read([*mixed, *foreign], held_out=0.3)
    with pytest.raises(ValueError, match="block length 4: the others have 8"):
        Trajectories.read(mixed, held_out=0.3, test_paths=foreign)
    broken = tmp_path / "broken.trace"
    broken.write_bytes(mixed[0].read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"broken\.trace: trace: .*truncated"):
        Trajectories.read([*mixed, broken], held_out=0.3)


def test_a_trace_that_ends_within_a_block_is_refused(tmp_path):
    trace = toy_trace(ToyTarget(vocab_size=40), toy_cell(length=LENGTH, new=8))
    kept = trace.rows[-2]
    arrays = {
        name: array[:-1] if name in ("positions", "tokens", "margins") else array[:kept]
        for name, array in trace.arrays.items()
    }
    path = write_traces(tmp_path, [Trace.of(trace.header, arrays)])[0]
    with pytest.raises(ValueError, match="ends within a block"):
        Trajectories.read([path], held_out=0.1)


def test_a_trace_of_another_commit_rule_is_refused(tmp_path):
    path = write_traces(tmp_path, [toy_trace(ToyTarget(vocab_size=40), toy_cell(length=LENGTH, new=8, tau=0.5))])[0]
    with pytest.raises(ValueError, match=r"commit rule is threshold 0\.5: allowed for an order model is standard"):
        Trajectories.read([path], held_out=0.1)


def test_the_learning_rate_rises_then_falls_to_zero():
    recipe = OrderRecipe(steps=100, rise=10, rate=1.0)
    rates = [rate_at(recipe, step) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * (i + 1) for i in range(10)])
    assert rates[55] == pytest.approx(0.5)
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert 0 < rates[-1] < 0.001


@pytest.mark.parametrize(
    ("field", "value"),
    [("steps", 0), ("batch", -1), ("rate", 0.0), ("rate", float("nan")), ("held_out", 1.0), ("held_out", 0.0)],
)
def test_bad_recipes_name_the_field(field, value):
    with pytest.raises(ValueError, match=f"order recipe: {field} is"):
        OrderRecipe(**{field: value})


def test_batches_hold_the_whole_virtual_prefix(hopping):
    data = Trajectories.read(hopping, held_out=0.2)
    batch = data.batch(np.array([1, 1, 1]), np.array([0, 2, 4]))
    # step 1 of the first block: HOPS[0] was committed before, HOPS[1] is the known commit
    masked = sorted(set(range(LENGTH)) - {HOPS[0]})
    for row, depth in enumerate((0, 2, 4)):
        still = sorted(HOPS[2 + depth :])
        assert [masked[i] for i in np.flatnonzero(batch.open_BA[row])] == still
        assert masked[int(batch.label_B[row])] == HOPS[2 + depth]
