"""The log of a training: whole lines, a row a step, whatever happened in between."""

from dataclasses import replace

import pytest

from workers.training.order_card import Share, Source
from workers.training.order_log import Evaluation, TrainingLog, TrainingStart, opened, read_log
from workers.training.order_recipe import OrderRecipe

SOURCE = Source(role="trained on", target="t", target_digest="d", task="a", temperature=0.5, prompts=4, judged=1)
START = TrainingStart(
    recipe=OrderRecipe(),
    data_digest="a",
    test_digest="",
    block_length=8,
    sources=(SOURCE,),
    threads=2,
    torch_version="2",
    tracking_uri="sqlite:///x.db",
)


def row(step, loss=1.0):
    return Evaluation(
        step=step,
        loss=loss,
        rate=0.1,
        seconds=1.0,
        time=2.0,
        losses={"trained on": loss, "out of domain": None},
        accuracy={"trained on": (Share.of(1, 2), Share.of(0, 0)), "out of domain": ()},
    )


@pytest.fixture
def path(tmp_path):
    TrainingLog(start=START, evaluations=(row(100), row(200), row(300))).write(tmp_path / "training.jsonl")
    return tmp_path / "training.jsonl"


def test_a_log_is_a_line_a_row_and_comes_back(path):
    assert path.read_text().count("\n") == 4
    assert read_log(path) == TrainingLog(start=START, evaluations=(row(100), row(200), row(300)))
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_going_on_from_an_older_state_makes_no_row_twice(path):
    log = opened(path, START, done=200)
    assert [r.step for r in log.evaluations] == [100, 200]
    assert [r.loss for r in log.plus(row(300, 0.5)).plus(row(400)).evaluations] == [1.0, 1.0, 0.5, 1.0]
    assert [r.step for r in log.plus(row(200, 9.0)).evaluations] == [100, 200]  # the newest of a step


def test_other_prompts_to_judge_and_another_place_are_the_same_training(path):
    other = replace(START, test_digest="b", tracking_uri="")
    log = opened(path, other, done=300)
    assert len(log.evaluations) == 3
    assert log.start.tracking_uri == "sqlite:///x.db"  # until another one is named
    assert opened(path, replace(START, tracking_uri="sqlite:///y.db"), done=300).start.tracking_uri == "sqlite:///y.db"


@pytest.mark.parametrize(
    "other",
    [{"data_digest": "b"}, {"recipe": OrderRecipe(steps=5)}, {"threads": 1}, {"torch_version": "3"}],
)
def test_another_training_begins_its_own_log(path, other):
    assert opened(path, replace(START, **other), done=300).evaluations == ()


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"no json\n", b'{"a":'])
def test_a_log_that_cannot_be_read_is_named(path, damage):
    path.write_bytes(damage)
    with pytest.raises(ValueError, match=r"training\.jsonl cannot be read \((?!not enough).*: delete it, and the same"):
        read_log(path)
    path.unlink()
    with pytest.raises(ValueError, match="is no training directory"):
        read_log(path)
