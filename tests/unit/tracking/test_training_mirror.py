"""What a sync writes of a training run, over a store in memory: every evaluation once, at its step."""

from dataclasses import replace

import pytest
import torch

from orchestrator.tracking_training import Training, is_training, mirror_training, read_training, result_digest
from tests.memory_store import Memory
from workers.training.order_card import DepthAccuracy, OrderCard, Share, Source, write_card
from workers.training.order_log import LOG_FILE, Evaluation, TrainingLog, TrainingStart
from workers.training.order_recipe import OrderRecipe

RECIPE = OrderRecipe(steps=30, evaluate_every=10, max_depth=2)
SOURCES = (
    Source(role="trained on", target="t", target_digest="d1", task="code", temperature=0.0, prompts=9, judged=1),
    Source(role="out of domain", target="t", target_digest="d1", task="arith", temperature=0.0, prompts=3, judged=3),
)
START = TrainingStart(
    recipe=RECIPE,
    data_digest="a",
    test_digest="b",
    block_length=8,
    sources=SOURCES,
    threads=1,
    torch_version="2",
)


def evaluation(step, loss=1.0, seconds=0.0):
    accuracy = {"trained on": (Share.of(8, 10), Share.of(0, 0)), "out of domain": (Share.of(1, 10), Share.of(3, 10))}
    losses = {"trained on": loss / 2, "out of domain": loss * 2}
    return Evaluation(
        step=step, loss=loss, rate=0.1, seconds=seconds, time=1000.0 + step, losses=losses, accuracy=accuracy
    )


CARD = OrderCard(
    digest="m",
    block_length=8,
    torch_version="2",
    parameters=1,
    recipe=RECIPE,
    seconds=1.0,
    threads=1,
    data_digest="a",
    test_digest="b",
    traces=9,
    steps_recorded=90,
    prompts=9,
    held_out_prompts=1,
    sources=SOURCES,
    held_out_loss=0.5,
    accuracy=(
        DepthAccuracy(depth=1, order_model=Share.of(3, 4), stale_confidence=Share.of(1, 4)),
        DepthAccuracy(
            role="out of domain",
            target="t",
            task="arith",
            temperature=0.0,
            depth=2,
            order_model=Share.of(1, 2),
            stale_confidence=Share.of(0, 0),
        ),
    ),
)


def training(tmp_path, steps=(10, 20, 30), card=CARD, **start):
    log = TrainingLog(start=replace(START, **start), evaluations=tuple(map(evaluation, steps)))
    return Training(folder=tmp_path, log=log, card=card)


def test_every_evaluation_is_a_point_at_its_step(tmp_path):
    store = Memory()
    done = mirror_training(store, training(tmp_path))
    assert (done.written, done.unchanged, done.finished, done.trouble) == (3, 0, True, "")
    (run,) = store.active()
    assert [point for point in run["points"] if point[0] == "held_out.loss"] == [
        ("held_out.loss", 10, 0.5),
        ("held_out.loss", 20, 0.5),
        ("held_out.loss", 30, 0.5),
    ]
    assert run["metrics"]["held_out.accuracy.depth1"] == 0.8
    assert "held_out.accuracy.depth2" not in run["metrics"]  # nothing to judge there
    assert run["metrics"]["out_of_domain.accuracy.depth2"] == 0.3
    assert run["metrics"]["final.held_out.depth1"] == 0.75
    assert run["metrics"]["final.held_out.stale_confidence.depth1"] == 0.25
    assert run["metrics"]["final.out_of_domain.t.arith.T0.depth2"] == 0.5
    assert run["params"]["target"] == '["t"]'
    assert run["params"]["task"] == '["code"]'
    assert run["params"]["test_task"] == '["arith"]'
    assert run["params"]["steps"] == "30"
    assert run["tags"]["target.t"] == "d1"
    assert run["tags"]["model_digest"] == "m"
    assert run["files"] == ["README.md", "card.json"]
    assert run["status"] == "FINISHED"


def test_a_second_sync_changes_nothing(tmp_path):
    store = Memory()
    mirror_training(store, training(tmp_path))
    before = repr(store)
    done = mirror_training(store, training(tmp_path))
    assert (done.written, done.unchanged) == (0, 3)
    assert repr(store) == before


def test_a_running_training_is_added_to_and_each_step_is_there_once(tmp_path):
    store = Memory()
    assert not mirror_training(store, training(tmp_path, steps=(10,), card=None)).finished
    (run,) = store.active()
    assert run["status"] == "RUNNING"
    resumed = training(tmp_path)
    # the step made again after a kill has other times and the same numbers
    again = (evaluation(10, seconds=99.0), *resumed.log.evaluations[1:])
    mirror_training(store, replace(resumed, log=replace(resumed.log, evaluations=again)))
    assert len(store.all) == 1
    points = [(name, step) for name, step, _ in run["points"]]
    assert len(set(points)) == len(points)
    assert {step for name, step in points if name == "loss"} == {10, 20, 30}
    assert run["status"] == "FINISHED"


@pytest.mark.parametrize("changed", ["numbers", "fewer", "judged on", "card"])
def test_what_is_no_longer_so_is_written_anew(tmp_path, changed):
    store = Memory()
    mirror_training(store, training(tmp_path))
    other = {
        "numbers": lambda: replace(
            training(tmp_path),
            log=TrainingLog(start=START, evaluations=(evaluation(10, loss=7.0), evaluation(20), evaluation(30))),
        ),
        "fewer": lambda: training(tmp_path, steps=(10,), card=None),
        "judged on": lambda: training(tmp_path, sources=SOURCES[:1]),
        "card": lambda: training(tmp_path, card=replace(CARD, held_out_loss=0.4)),
    }[changed]()
    mirror_training(store, other)
    (run,) = store.active()
    assert len(store.all) == 2
    assert len([1 for name, _, _ in run["points"] if name == "loss"]) == len(other.log.evaluations)


def test_another_training_in_the_same_directory_is_another_run(tmp_path):
    store = Memory()
    mirror_training(store, training(tmp_path))
    mirror_training(store, training(tmp_path, data_digest="other"))
    assert len(store.active()) == 2


def test_a_store_that_dies_is_filled_later(tmp_path):
    store = Memory(broken="log")
    with pytest.raises(ConnectionError):
        mirror_training(store, training(tmp_path))
    store.broken = ""
    mirror_training(store, training(tmp_path))
    (run,) = store.active()
    assert run["params"]["steps"] == "30"
    assert {step for name, step, _ in run["points"] if name == "loss"} == {10, 20, 30}


def test_a_card_that_cannot_be_attached_is_said_and_tried_again(tmp_path):
    store = Memory(broken="attach")
    assert "the card could not be attached: read-only" in mirror_training(store, training(tmp_path)).trouble
    store.broken = ""
    assert mirror_training(store, training(tmp_path)).trouble == ""
    (run,) = store.active()
    assert run["files"] == ["README.md", "card.json"]
    assert run["status"] == "FINISHED"


def test_a_card_counts_once_its_own_training_is_done(tmp_path):
    assert not is_training(tmp_path)
    log = TrainingLog(start=START, evaluations=(evaluation(10),))
    write_card(tmp_path / "model", CARD)
    for steps, start, whole in (((10,), START, False), ((10, 30), START, True)):
        replace(log, start=start, evaluations=tuple(map(evaluation, steps))).write(tmp_path / LOG_FILE)
        assert (read_training(tmp_path).card is not None) is whole
    replace(log, start=replace(START, data_digest="other"), evaluations=(evaluation(30),)).write(tmp_path / LOG_FILE)
    assert read_training(tmp_path).card is None
    assert is_training(tmp_path)


def state_of(folder, step):
    torch.save({"step": step}, folder / "state.pt")


def lost(tmp_path, steps, state=30):
    """A training directory whose log ends early (None: it is gone), with a card and a state after `state` steps."""
    write_card(tmp_path / "model", CARD)
    state_of(tmp_path, state)
    (tmp_path / LOG_FILE).unlink(missing_ok=True)
    if steps is not None:
        TrainingLog(start=START, evaluations=tuple(map(evaluation, steps))).write(tmp_path / LOG_FILE)
    assert is_training(tmp_path)
    return read_training(tmp_path)


@pytest.mark.parametrize("steps", [None, (), (10,), (10, 20)])
def test_a_finished_training_whose_log_was_lost_is_finished_from_its_card(tmp_path, steps):
    store = Memory()
    found = lost(tmp_path, steps)
    assert found.curve_lost
    done = mirror_training(store, found)
    assert done.finished
    last = steps[-1] if steps else 0
    assert done.notes == (f"training.jsonl ends at step {last} of 30: the curve behind it is lost there",)
    (run,) = store.active()
    assert run["status"] == "FINISHED"
    assert run["metrics"]["final.held_out.depth1"] == 0.75
    assert run["params"]["steps"] == "30"
    before = repr(store)
    mirror_training(store, lost(tmp_path, steps))
    assert repr(store) == before


@pytest.mark.parametrize("steps", [None, (), (10,)])
@pytest.mark.parametrize("card", [CARD, None, replace(CARD, held_out_loss=0.7)])
def test_what_the_log_lost_stays_in_the_mirror(tmp_path, steps, card):
    store = Memory()
    mirror_training(store, training(tmp_path, card=card))
    done = mirror_training(store, lost(tmp_path, steps))
    (run,) = store.all.values()
    assert not run["deleted"]
    assert (done.written, done.unchanged, done.finished) == (0, 3, True)
    assert {step for name, step, _ in run["points"] if name == "loss"} == {10, 20, 30}
    assert run["status"] == "FINISHED"
    assert run["tags"]["result_digest"] == result_digest(CARD)


@pytest.mark.parametrize("steps", [None, (), (10,)])
def test_a_card_of_before_does_not_finish_a_training_that_begins_again(tmp_path, steps):
    assert lost(tmp_path, steps, state=10).card is None
    (tmp_path / "state.pt").write_bytes(b"torn")
    assert read_training(tmp_path).card is None
