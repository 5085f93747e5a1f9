"""The mirror of a set model's training: the same run as an order model's, with what a set model is judged by."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.tracking_training import is_training, mirror_training, read_training
from tests.memory_store import Memory
from tests.toys import ToyTarget
from tests.traces import toy_cell, toy_trace, write_traces
from workers.models.set_model import embeddings_of
from workers.training.order_log import LOG_FILE, MODEL
from workers.training.sets import train_sets
from workers.training.sets_card import SetCard
from workers.training.sets_recipe import SetRecipe

RECIPE = SetRecipe(steps=4, batch=8, rise=2, evaluate_every=2, held_out=0.3, width=32, layers=1, max_depth=3)


@pytest.fixture
def trained(tmp_path: Path) -> SetCard:
    """A training directory in `tmp_path`, without its state."""
    target, cells = ToyTarget(vocab_size=24), [toy_cell(length=8, new=16, tau=tau) for tau in (0.7, 0.9)]
    traces = [toy_trace(target, cell, index, states=True) for index in range(3) for cell in cells]
    paths = write_traces(tmp_path / "traces", traces)
    embedded = embeddings_of(target)
    out, log = tmp_path / MODEL, tmp_path / LOG_FILE
    return train_sets(paths, RECIPE, embedded_VH=embedded, out_dir=out, log=log).card


def test_a_set_model_has_its_own_experiment_and_numbers(trained: SetCard, tmp_path: Path) -> None:
    assert is_training(tmp_path)
    store, training = Memory(), read_training(tmp_path)
    assert training.card == trained
    done = mirror_training(store, training)
    assert (done.written, done.finished) == (2, True)
    (run,) = store.active()
    assert run["status"] == "FINISHED"
    assert run["params"]["tau"] == "[0.7,0.9]"
    assert run["params"]["width"] == "32"
    assert run["tags"]["model_digest"] == trained.digest
    assert {step for name, step, _ in run["points"] if name == "held_out.accuracy.depth1"} == {2, 4}
    rows = {(row.depth, row.tau, row.task): row for row in trained.accuracy}
    total, own = rows[1, None, ""], rows[2, 0.9, ""]
    assert run["metrics"]["final.held_out.exact.depth1"] == total.model.exact.value
    assert run["metrics"]["final.held_out.exact.stale.depth1"] == total.stale.exact.value
    assert run["metrics"]["final.held_out.tau0.9.recall.depth2"] == own.model.recall.value
    before = repr(store)
    assert mirror_training(store, read_training(tmp_path)).written == 0
    assert repr(store) == before


def test_the_card_alone_is_enough_where_the_log_was_lost(trained: SetCard, tmp_path: Path) -> None:
    (tmp_path / LOG_FILE).unlink()
    training = read_training(tmp_path)
    assert training.curve_lost
    assert training.card == trained
    assert training.log.start.command == "spot train sets"
    done = mirror_training(Memory(), training)
    assert done.finished
    assert "the curve behind it is lost" in done.notes[-1]


def test_a_log_of_another_command_is_refused(trained: SetCard, tmp_path: Path) -> None:
    path = tmp_path / LOG_FILE
    path.write_text(path.read_text().replace('"command":"spot train sets"', '"command":"spot train fleet"'))
    with pytest.raises(
        ValueError, match=r"command is 'spot train fleet': allowed is spot train order \| spot train sets"
    ):
        read_training(tmp_path)
    assert replace(RECIPE, steps=4) == trained.recipe
