"""`spot train sets`, small enough for a test: a model, the same one again, and one calibrated for another target."""

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from orchestrator.train_sets import SetsRequest, recipe_of, sets_cells, settled
from tests.tiny_checkpoints import on_target
from workers.models.set_facts import TARGET_WEIGHTS, inspect_set_model
from workers.models.set_model import load_set_model
from workers.training.fitting import FitProgress
from workers.training.order_log import read_log
from workers.training.sets_card import read_card

Spot = Callable[..., Any]


def few(models: Path, out: Path, *more: object) -> list[object]:
    """A training that takes seconds."""
    small = ["--prompts", 4, "--temperature", 0, "--tau", 0.7, "--tau", 0.9, "--max-new-tokens", 40, "--pool", "inline"]
    return ["train", "sets", *on_target(models), "--task", "tiny-arith", "--out", out, *small, *more]


NEW = ("--steps", 2, "--width", 32, "--layers", 1)


def test_a_set_model_is_trained_once(spot: Spot, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "sets"
    ended = spot(*few(models, out, *NEW))
    assert ended.code == 0, ended.err
    assert "trajectories 4/4 (0 from before), failed 0" in ended.err
    assert "held out, on a sample: loss" in ended.err
    assert f"{out / 'model'}: trained on 4 trajectories (accuracies in its README.md)" in ended.out
    card = read_card(out / "model")
    assert (card.width, card.layers, card.recipe.steps, card.base) == (32, 1, 2, "")
    assert [(source.tau, source.prompts) for source in card.sources] == [(0.7, 2), (0.9, 2)]  # prompts 0 2, and 1 3
    lines = [line.split() for line in ended.out.splitlines()]
    total = card.totals()[1]
    assert ["all", "all", "all", f"{100 * total.model.exact.value:.1f}"] in [line[:4] for line in lines]
    log = read_log(out / "training.jsonl")
    assert (log.start.command, log.start.recipe, log.start.sources) == ("spot train sets", card.recipe, card.sources)
    assert [row.step for row in log.evaluations] == [2]
    assert log.evaluations[-1].accuracy["trained on"][0] == total.model.exact  # few enough to be judged whole
    weights = (out / "model" / "model.safetensors").read_bytes()
    again = spot(*few(models, out, *NEW))
    assert "trajectories 4/4 (4 from before), failed 0" in again.err
    assert "step" not in again.err
    assert (again.code, (out / "model" / "model.safetensors").read_bytes()) == (0, weights)


def test_going_on_after_a_kill_gives_the_same_weights(
    spot: Spot, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert spot(*few(models, whole, *NEW)).code == 0
    with monkeypatch.context() as broken:
        broken.setattr("workers.training.sets.stored", ended_here)
        assert spot(*few(models, parts, *NEW)).code == 2
    next((parts / "traces").rglob("000003.trace")).unlink()
    ended = spot(*few(models, parts, *NEW))
    assert ended.code == 0, ended.err
    assert "trajectories 4/4 (3 from before), failed 0" in ended.err
    assert inspect_set_model(parts / "model").digest == inspect_set_model(whole / "model").digest


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also in what a shell started in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("noun", ["sets", "order"])
def test_an_interruption_keeps_what_was_trained_and_says_so(
    spot: Spot, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noun: str
) -> None:
    """Long before a state would be saved by itself; Ctrl-C comes as the third of six steps is reported."""

    def command(out: Path, steps: int = 6) -> list[object]:
        small = [word for word in NEW[2:] if noun == "sets"]
        whole = few(models, out, *small, "--steps", steps)
        tau = [] if noun == "sets" else ["--tau", 0.7, "--tau", 0.9]
        return ["train", noun, *(word for at, word in enumerate(whole) if at > 1 and word not in tau)]

    seen: list[int] = []

    def press(_: object, progress: FitProgress) -> None:
        seen.append(progress.step)
        if progress.step == 3:
            signal.raise_signal(signal.SIGINT)

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert spot(*command(whole)).code == 0
    monkeypatch.setattr("orchestrator.show_training.TrainingScreen.model", press)
    ended = spot(*command(parts))
    kept = f"3 of 6 steps are kept in {parts / 'state.pt'}: the same command goes on from there"
    assert (ended.code, ended.err.splitlines()[-1]) == (130, f"spot: interrupted: {kept}")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert "it was made with --steps 6 (here --steps 7)" in spot(*command(parts, 7)).err
    assert spot(*command(parts)).code == 0
    assert seen == [1, 2, 3, 4, 5, 6]
    weights = [(out / "model" / "model.safetensors").read_bytes() for out in (whole, parts)]
    assert weights[0] == weights[1]


def test_steps_are_settled_once_training_has_begun(
    spot: Spot, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the first step, and interrupted before there is anything but trajectories."""
    out = tmp_path / "sets"
    with monkeypatch.context() as broken:
        broken.setattr("workers.training.sets.SetTrajectories.read", interrupted_here)
        ended = spot(*few(models, out, *NEW))
    kept = f"what was recorded and trained so far is kept in {out}: the same command goes on from there"
    assert (ended.code, ended.err.splitlines()[-1]) == (130, f"spot: interrupted: {kept}")
    more = [*NEW[2:], "--steps", 3]
    with monkeypatch.context() as broken:
        broken.setattr("workers.training.fitting.update", ended_here)
        assert spot(*few(models, out, *more)).code == 2
    assert "it was made with --steps 3 (here --steps 2)" in spot(*few(models, out, *NEW)).err
    assert spot(*few(models, out, *more)).code == 0
    assert read_card(out / "model").recipe.steps == 3


def interrupted_here(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def ended_here(*_: object, **__: object) -> None:
    raise ValueError("ended here")


def test_calibrating_for_another_target_keeps_every_other_weight(
    spot: Spot, models: Path, sweep: Path, tmp_path: Path
) -> None:
    assert spot(*few(models, tmp_path / "base", *NEW)).code == 0
    command = ["train", "sets", "--target", "tiny-sdar", "--task", "tiny-arith", "--prompts", 4, "--temperature", 0]
    command += ["--max-new-tokens", 40, "--pool", "inline", "--steps", 2]
    base = tmp_path / "base" / "model"
    ended = spot(*command, "--calibrate-from", base, "--out", tmp_path / "new")
    assert ended.code == 0, ended.err
    assert "model: calibrated on 4 trajectories" in ended.out
    before, after = (load_set_model(path, block_length=32).state_dict() for path in (base, tmp_path / "new" / "model"))
    changed = {name for name, tensor in before.items() if not torch.equal(after[name], tensor)}
    assert changed == {*TARGET_WEIGHTS}
    assert after["hidden.weight"].shape == (32, 192)
    names = [made.target for made in inspect_set_model(tmp_path / "new" / "model").made_on]
    assert names == ["tiny-sdar"]
    checkpoint = f"drafters={{sets: {{kind: spot-sets, checkpoint: {tmp_path / 'new' / 'model'}}}}}"
    axes = ["grid.target=[tiny-llada2,tiny-sdar]", "grid.drafter=[none,sets]", "grid.commit=threshold", "grid.budget=4"]
    planned = spot("plan", sweep, checkpoint, *axes, "--json")
    assert planned.code == 0, planned.err
    plan = json.loads(planned.out)
    drafted = {cell["target"]: cell for cell in plan["cells"] if cell["drafter"] == "sets"}
    assert sorted(drafted) == ["tiny-llada2", "tiny-sdar"]
    assert [note for note in plan["notes"] if "was made on" in note] == [
        "drafter sets on tiny-llada2: its set model was made on tiny-sdar"
    ]
    other = spot(*command, "--calibrate-from", base, "--width", 64, "--out", tmp_path / "c")
    assert (other.code, other.out) == (2, "")
    assert "width is 64: allowed is that of the model it is calibrated from" in other.err


def test_another_request_is_refused_in_the_same_directory(spot: Spot, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "sets"
    assert spot(*few(models, out, *NEW)).code == 0
    ended = spot(*few(models, out, "--steps", 2, "--width", 64, "--layers", 1))
    assert ended.code == 2
    assert "it was made with --width 32 (here --width 64)" in ended.err
    ended = spot(*few(models, out, "--steps", 3, "--width", 32, "--layers", 1))
    assert "it was made with --steps 2 (here --steps 3): choose another --out, or delete" in ended.err
    assert json.loads((out / "request.json").read_text())["command"] == "spot train sets"
    order = ["train", "order", *on_target(models), "--task", "tiny-arith", "--out", out, "--prompts", 3]
    assert "it was made by spot train sets" in spot(*order, "--pool", "inline").err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--prompts", 1], "prompts is 1: allowed is a whole number from 2 to .*: one for each of 2 rules"),
        (["--tau", 1.0], "tau is 1.0: allowed is a number above 0 and below 1"),
        (["--tau", 0.7], "taus is .*allowed is one or more, each once"),
        (["--max-new-tokens", 2], "max_new_tokens is 2: allowed is a whole number from 3"),
        (["--width", 33], "width is 33: allowed is a multiple of 32"),
        (["--layers", 0], "layers is 0: allowed is 1 to 64"),
        (["--steps", 0], "set recipe: steps is 0"),
        (["--calibrate-from", "sets-tiny-sda"], "set model: checkpoint 'sets-tiny-sda' is neither.*sets-tiny-sdar"),
        (["--calibrate-from", "sets-tiny-sdar", "--block-length", 16], "block_length is 16: allowed is the 32 of the"),
        (["--task", "humaneval"], "task humaneval: split: 'train' is not one of test"),
    ],
)
def test_bad_input_is_one_line_before_any_work(
    spot: Spot, models: Path, tmp_path: Path, more: list[object], message: str
) -> None:
    ended = spot(*few(models, tmp_path / "out", *more))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert re.search(message, ended.err), ended.err
    assert not (tmp_path / "out" / "traces").exists()


def test_every_prompt_is_decoded_by_one_rule_and_more_prompts_move_none() -> None:
    request = settled(SetsRequest(target="tiny-sdar", tasks=("tiny-arith",), prompts=20))
    dealt = sets_cells(request)
    assert len(dealt) == 8
    assert sorted(index for prompts in dealt.values() for index in prompts) == list(range(20))
    more = sets_cells(SetsRequest(target="tiny-sdar", tasks=("tiny-arith",), prompts=50, block_length=32))
    for cell, prompts in dealt.items():
        assert set(prompts) < set(more[cell])
    assert {(cell.decode.tau, cell.decode.temperature) for cell in dealt} == {
        (tau, heat) for tau in (0.7, 0.8, 0.9, 0.95) for heat in (0.0, 1.0)
    }


def test_the_recipe_is_the_published_size_unless_it_is_stated() -> None:
    request = settled(SetsRequest(target="tiny-sdar", tasks=("tiny-arith",)))
    assert (recipe_of(request, None).width, recipe_of(request, None).layers) == (256, 4)
    small = settled(SetsRequest(target="tiny-sdar", tasks=("tiny-arith",), width=64))
    assert (recipe_of(small, 7).width, recipe_of(small, 7).layers, recipe_of(small, 7).steps) == (64, 4, 7)
