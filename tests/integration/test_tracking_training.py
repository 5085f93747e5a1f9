"""The mirror of a training run against MLflow itself, and that a broken one never stands in training's way."""

import shutil
from dataclasses import replace

import pytest

from orchestrator.track_training import TrainingMirror
from orchestrator.tracking import sync
from orchestrator.tracking_uri import location
from tests.unit.training.test_order_resume import RECIPE, fill
from workers.training.order import train_order
from workers.training.order_card import read_card
from workers.training.order_log import read_log

pytestmark = pytest.mark.usefixtures("no_ambient_mlflow")


@pytest.fixture
def folder(tmp_path, empty_store):
    made = fill(tmp_path / "my training")
    shutil.copy(empty_store, made / "mlflow.db")
    return made


class Stopped(Exception):  # noqa: N818
    pass


def train(folder, *follow, steps=12):
    """Train in this process, with what follows each step."""

    def progress(step):
        for listener in follow:
            listener(step)

    return train_order(
        sorted((folder / "traces").glob("*.trace")),
        replace(RECIPE, steps=steps),
        out_dir=folder / "model",
        progress=progress,
        resume=folder / "state.pt",
        log=folder / "training.jsonl",
    ).card


def runs_of(folder):
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=location(folder, environ={}).uri)
    experiment = client.get_experiment_by_name("spot train order")
    return client, client.search_runs([experiment.experiment_id])


def test_curves_are_followed_through_an_interruption_and_no_point_is_there_twice(folder, monkeypatch, capsys):
    monkeypatch.setattr("workers.training.order.SAVE_EVERY", 4)

    def stop(progress):
        if progress.step == 7:  # step 6 is in the mirror, and the state is that of step 4
            raise Stopped

    with pytest.raises(Stopped):
        train(folder, TrainingMirror(folder).follow, stop)
    client, (run,) = runs_of(folder)
    assert run.info.status == "RUNNING"
    assert [point.step for point in client.get_metric_history(run.info.run_id, "loss")] == [3, 6]
    mirror = TrainingMirror(folder)
    card = train(folder, mirror.follow)
    capsys.readouterr()
    assert mirror.finish() == 0
    assert "(2 evaluations written, 2 there already)" in capsys.readouterr().out
    assert TrainingMirror(folder).finish() == 0
    assert "(0 evaluations written, 4 there already)" in capsys.readouterr().out
    assert sync(folder).status == "unchanged"
    client, (same,) = runs_of(folder)
    assert (same.info.run_id, same.info.status) == (run.info.run_id, "FINISHED")
    for name in ("loss", "held_out.loss", "held_out.accuracy.depth1"):
        points = {point.step: point.value for point in client.get_metric_history(run.info.run_id, name)}
        assert [point.step for point in client.get_metric_history(run.info.run_id, name)] == [3, 6, 9, 12]
        for row in read_log(folder / "training.jsonl").evaluations:
            assert (
                points[row.step]
                == {
                    "loss": row.loss,
                    "held_out.loss": row.losses["trained on"],
                    "held_out.accuracy.depth1": row.accuracy["trained on"][0].value,
                }[name]
            )
    assert same.data.metrics["final.held_out.toy.toy.T0.depth1"] == card.totals()[1].order_model.value
    assert same.data.params["seed"] == "5"
    assert same.data.tags["target.toy"] == "toy-0"
    assert same.data.tags["model_digest"] == card.digest
    (stored,) = [path for path in folder.rglob("card.json") if "artifacts" in path.parts]
    assert stored.read_bytes() == (folder / "model" / "card.json").read_bytes()


def test_a_broken_mirror_is_one_line_and_changes_no_weight(folder, empty_store, capsys):
    card = train(fill(folder.parent / "without"))
    (folder / "own.db").write_text("this is no database" * 100)
    mirror = TrainingMirror(folder, "sqlite:///own.db")
    assert train(folder, mirror.follow).digest == card.digest == read_card(folder / "model").digest
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "MLflow mirror incomplete" in said
    assert "spot sync" in said
    assert mirror.finish() == 3
    shutil.copy(empty_store, folder / "whole.db")
    assert sync(folder, "sqlite:///whole.db").written == 4
