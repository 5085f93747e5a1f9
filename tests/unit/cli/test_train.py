"""`spot train`: a target and an order model, small enough for a test, and that what comes out can be used."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from orchestrator.train import OrderRequest
from sweeps.lock import RunLock
from sweeps.store import RunDir
from tests.tiny_checkpoints import on_target, write_checkpoint
from workers.training.order_card import read_card
from workers.training.target_recipes import RECIPES, TINY_SDAR

Spot = Callable[..., Any]


def test_order_model_is_trained_and_drafts(spot: Spot, models: Path, tmp_path: Path) -> None:
    command = ["train", "order", *on_target(models), "--task", "tiny-arith", "--out", tmp_path / "order"]
    few = ["--prompts", 3, "--temperature", 0, "--max-new-tokens", 40, "--steps", 3, "--pool", "inline"]
    ended = spot(*command, *few)
    assert ended.code == 0, ended.err
    assert "model: trained on 3 trajectories" in ended.out
    assert "trajectories 3/3 (0 from before), failed 0" in ended.err
    again = spot(*command, *few)
    assert "trajectories 3/3 (3 from before), failed 0" in again.err
    drafts = ["--checkpoint", tmp_path / "order" / "model", "--max-new-tokens", 8, "--json", "the word"]
    assert spot("decode", *on_target(models), *drafts).code == 0


def test_target_is_trained_and_decodes(spot: Spot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    speck = replace(
        TINY_SDAR,
        name="speck",
        tasks=("tiny-arith",),
        examples_per_task=64,
        hidden=32,
        layers=1,
        heads=2,
        kv_heads=1,
        head_dim=16,
        mlp=32,
        warm_start=1,
        steps=2,
        batch=4,
    )
    monkeypatch.setitem(RECIPES, "speck", speck)
    ended = spot("train", "target", "speck", "--out", tmp_path / "speck", "--held-out", 1)
    assert ended.code == 0, ended.err
    assert "tiny-arith: 0.0% of 1 held-out prompts correct" in ended.out
    decode = [
        "decode",
        "--target",
        tmp_path / "speck" / "model",
        "--block-length",
        32,
        "--drafter",
        "ssd",
        "--max-new-tokens",
        4,
        "--json",
        "x",
    ]
    assert spot(*decode).code == 0


def test_names_that_do_not_exist(spot: Spot) -> None:
    ended = spot("train", "target", "tiny-sdarr")
    assert ended.code == 2
    assert "unknown target recipe 'tiny-sdarr': allowed are tiny-sdar" in ended.err
    assert "did you mean tiny-sdar" in ended.err
    ended = spot("train", "order", "--target", "tiny-sdarr", "--task", "tiny-arith")
    assert ended.code == 2
    assert "did you mean tiny-sdar?" in ended.err


@pytest.mark.parametrize("option", ["--max-new-tokens", "--block-length"])
def test_trajectories_without_a_choice_are_refused_before_decoding(
    spot: Spot, models: Path, tmp_path: Path, option: str
) -> None:
    command = ["train", "order", *on_target(models), "--task", "tiny-arith", "--out", tmp_path / "order"]
    ended = spot(*command, "--prompts", 3, option, 2, "--steps", 1, "--pool", "inline")
    assert (ended.code, ended.out) == (2, "")
    name = option.removeprefix("--").replace("-", "_")
    assert ended.err.startswith(f"spot: train order: {name} is 2: allowed is a whole number from 3 to ")
    assert ended.err.endswith(": with fewer open positions there is no order to learn\n")
    assert not (tmp_path / "order").exists()


@pytest.mark.parametrize("inside", ["", "order", "model"])
def test_out_that_is_a_file_is_refused_before_decoding(spot: Spot, models: Path, tmp_path: Path, inside: str) -> None:
    out = tmp_path / "out"
    file = out / "model" if inside == "model" else out
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    asked = out / "order" if inside == "order" else out
    ended = spot("train", "order", *on_target(models), "--task", "tiny-arith", "--out", asked)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"spot: out is {str(asked)!r}: {file} is no directory: choose another --out\n"
    assert file.read_text() == "mine"


def test_other_steps_than_before_say_the_way_out(
    spot: Spot, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["train", "order", *on_target(models), "--task", "tiny-arith", "--out", tmp_path / "order"]
    few = ["--prompts", 3, "--temperature", 0, "--max-new-tokens", 40, "--pool", "inline"]
    assert spot(*command, *few, "--steps", 2).code == 0
    ended = spot(*command, *few, "--steps", 3)
    assert ended.code == 2
    state = tmp_path / "order" / "state.pt"
    way_out = f"choose another --out, or delete {state} to train again (trajectories are kept)"
    assert ended.err == (
        f"spot: out is {str(tmp_path / 'order')!r}: it was made with --steps 2 (here --steps 3): {way_out}\n"
    )
    state.unlink()
    more = ["--prompts", 4, *few[2:], "--steps", 3]
    with monkeypatch.context() as broken:
        broken.setattr("workers.training.order.Trajectories.read", ended_here)
        assert spot(*command, *more).code == 2
    assert json.loads((tmp_path / "order" / "request.json").read_text())["options"]["--steps"] == 3
    for path in (tmp_path / "order" / "traces").rglob("000003.trace"):
        path.unlink()
    ended = spot(*command, *more)
    assert ended.code == 0, ended.err
    assert "trajectories 3/4 (3 from before)" in ended.err
    assert (read_card(tmp_path / "order" / "model").recipe.steps, spot(*command, *more).code) == (3, 0)


def ended_here(*_: object, **__: object) -> None:
    raise ValueError("ended here")


def few(models: Path, out: Path, *more: object) -> list[object]:
    """A training that takes a second."""
    small = ["--prompts", 3, "--temperature", 0, "--max-new-tokens", 40, "--steps", 2, "--pool", "inline"]
    return ["train", "order", *on_target(models), "--task", "tiny-arith", "--out", out, *small, *more]


def test_out_of_domain_accuracy_is_shown_and_changes_nothing(spot: Spot, models: Path, tmp_path: Path) -> None:
    assert spot(*few(models, tmp_path / "alone")).code == 0
    ended = spot(*few(models, tmp_path / "out", "--test-task", "tiny-code", "--test-prompts", 2))
    assert ended.code == 0, ended.err
    assert "trajectories 5/5 (0 from before), failed 0" in ended.err
    assert "out of domain, on a sample: loss" in ended.err
    judging = [line for line in ended.err.splitlines() if line.startswith("judging")]
    assert judging == ["judging 1/2: tiny-arith T = 0 of target", "judging 2/2: tiny-code T = 0 of target"]
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["out", "of", "domain", "tiny-code", "0"] in [line[:5] for line in lines]
    assert ["trained", "on", "tiny-arith", "0"] in [line[:4] for line in lines]
    card = read_card(tmp_path / "out" / "model")
    assert [(s.role, s.task, s.prompts, s.judged) for s in card.sources] == [
        ("trained on", "tiny-arith", 3, 1),
        ("out of domain", "tiny-code", 2, 2),
    ]
    assert card.digest == read_card(tmp_path / "alone" / "model").digest


def test_several_targets_make_one_model(spot: Spot, models: Path, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "other", config={"max_position_embeddings": 512}, weights=doubled)
    ended = spot(*few(models, tmp_path / "out", "--target", tmp_path / "other"))
    assert ended.code == 0, ended.err
    assert "model: trained on 6 trajectories" in ended.out
    assert set(read_card(tmp_path / "out" / "model").targets) == {"target", "other"}
    judged = spot(*few(models, tmp_path / "judged", "--test-target", tmp_path / "other", "--test-prompts", 2))
    assert judged.code == 0, judged.err
    roles = {(s.role, s.target) for s in read_card(tmp_path / "judged" / "model").sources}
    assert roles == {("trained on", "target"), ("out of domain", "other")}


def doubled(tensors: dict[str, Any]) -> None:
    """Other weights."""
    for tensor in tensors.values():
        tensor *= 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--test-task", "tiny-cod"], "unknown task 'tiny-cod': allowed are .*; did you mean tiny-code[?]"),
        (["--test-target", "tiny-sdarr"], "unknown target 'tiny-sdarr': .*; did you mean tiny-sdar"),
        (
            ["--test-task", "tiny-arith"],
            r"^spot: --test-task tiny-arith: it is trained on too \(--task\): give it as one of the two$",
        ),
        (
            ["--test-target", "MODEL"],
            r"^spot: --test-target .*/target: it is trained on too \(--target\): give it as one of the two$",
        ),
        (["--task", "tiny-arith"], "tasks is .*each once"),
        (["--target", "SAME"], "targets .*target and .*other are the same weights"),
        (["--task", "humaneval"], "task humaneval: split: 'train' is not one of test"),
        (["--test-task", "humaneval", "--test-prompts", "165"], "test_prompts is 165: .* up to the 164 of humaneval"),
        (["--test-prompts", "0"], "test_prompts is 0: allowed is a whole number from 1"),
        (["--steps", "0"], "order recipe: steps is 0"),
        (["--tracking-uri", "somewhere"], "is a plain folder"),
    ],
)
def test_what_cannot_be_is_one_line_before_any_work(
    spot: Spot, models: Path, tmp_path: Path, more: list[str], message: str
) -> None:
    write_checkpoint(tmp_path / "other", config={"max_position_embeddings": 2048})
    names = {"SAME": str(tmp_path / "other"), "MODEL": str(models / "target")}
    ended = spot(
        *few(
            models,
            tmp_path / "out",
            *(names.get(m, m) for m in more),
        )
    )
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert re.search(message, ended.err), ended.err
    assert not (tmp_path / "out").exists()


def test_a_damaged_state_is_bad_input_and_no_defect(spot: Spot, models: Path, tmp_path: Path) -> None:
    assert spot(*few(models, tmp_path)).code == 0
    state = tmp_path / "state.pt"
    content = torch.load(state, weights_only=True)
    content["trainee"].popitem()
    torch.save(content, state)
    ended = spot(*few(models, tmp_path))
    assert (ended.code, ended.out) == (2, "")
    assert f"spot: training state {state}: damaged (" in ended.err
    assert "delete it to start again" in ended.err
    state.unlink()
    assert spot(*few(models, tmp_path)).code == 0


def test_a_directory_in_use_or_of_a_sweep_is_refused(spot: Spot, models: Path, tmp_path: Path) -> None:
    with RunLock(RunDir(tmp_path)):
        ended = spot(*few(models, tmp_path))
        assert ended.code == 2
        assert "is in use by process" in ended.err
    (tmp_path / "spec.json").write_text("{}")
    ended = spot(*few(models, tmp_path))
    assert ended.code == 2
    assert "a sweep's run directory: choose another --out" in ended.err


def test_a_folder_of_neither_a_run_nor_a_training_cannot_be_synced(spot: Spot, tmp_path: Path) -> None:
    ended = spot("sync", tmp_path)
    assert (ended.code, ended.err) == (2, f"spot: {tmp_path} is no run directory: spec.json is missing\n")


def test_another_request_in_the_same_directory_is_refused_before_any_work(
    spot: Spot, models: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert spot(*few(models, out)).code == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def refused(message: str, *more: object) -> None:
        ended = spot(*few(models, out, *more))
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert f"out is {str(out)!r}: it was made with {message}: choose another --out, or delete {out}" in ended.err

    arith = "--task tiny-arith"
    refused(f"{arith} (here {arith} --task tiny-code)", "--task", "tiny-code")
    refused("--temperature 0 (here --temperature 0 --temperature 0.5)", "--temperature", 0.5)
    refused("--prompts 3 --seed 0 (here --prompts 4 --seed 1)", "--prompts", 4, "--seed", 1)
    refused("--prompts 3 (here --prompts 4)", "--prompts", 4)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    ended = spot("train", "spiffy", *on_target(models), "--task", "tiny-arith", "--out", out)
    assert (ended.code, ended.out) == (2, "")
    assert f"out is {str(out)!r}: it was made by spot train order: choose another --out" in ended.err
    digest = read_card(out / "model").digest
    assert spot(*few(models, out, "--test-task", "tiny-code", "--test-prompts", 2)).code == 0  # changes no weight
    assert read_card(out / "model").digest == digest


def test_the_same_request_written_otherwise_goes_on_and_other_weights_do_not(
    spot: Spot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(tmp_path / "target", config={"max_position_embeddings": 512})
    assert spot(*few(tmp_path, tmp_path / "out")).code == 0
    monkeypatch.chdir(tmp_path)
    command = ["train", "order", "--target", "./target", *few(tmp_path, tmp_path / "out")[4:]]
    ended = spot(*command)
    assert ended.code == 0, ended.err
    assert "trajectories 3/3 (3 from before)" in ended.err
    write_checkpoint(tmp_path / "target", config={"max_position_embeddings": 512}, weights=doubled)
    ended = spot(*command)
    assert (ended.code, ended.out) == (2, "")
    assert re.search(r"/target was \w{12} when it was made, and is \w{12} now: choose another --out", ended.err)


def test_a_directory_from_before_there_were_requests_goes_on(spot: Spot, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert spot(*few(models, out)).code == 0
    request = (out / "request.json").read_bytes()
    (out / "request.json").unlink()
    ended = spot(*few(models, out, "--task", "tiny-code"))
    assert (ended.code, (out / "request.json").exists()) == (2, False)
    assert "belongs to other traces" in ended.err
    assert spot(*few(models, out)).code == 0
    assert (out / "request.json").read_bytes() == request
    (out / "request.json").write_text("{")
    ended = spot(*few(models, out))
    assert ended.code == 2
    assert f"{out / 'request.json'} cannot be read" in ended.err


@pytest.mark.parametrize(
    ("prompts", "asked", "judged"),
    [(300, None, 50), (20, None, 4), (60, None, 10), (3, None, 3), (20, 7, 7), (1000, None, 50)],
)
def test_test_prompts_are_no_more_than_a_share_of_the_prompts(prompts: int, asked: int | None, judged: int) -> None:
    request = OrderRequest(targets=("t",), tasks=("a",), prompts=prompts, test_prompts=asked)
    assert request.judged_prompts == judged


def test_test_prompts_are_explained(spot: Spot) -> None:
    text = " ".join(spot("train", "order", "--help").out.split())
    assert "default: a sixth of --prompts, from 4 to 50" in text


def test_a_model_worse_than_the_stale_confidence_is_told_so(spot: Spot, models: Path, tmp_path: Path) -> None:
    ended = spot(*few(models, tmp_path))
    card = read_card(tmp_path / "model")
    worse = [d for d, row in card.totals().items() if row.order_model.hits < row.stale_confidence.hits]
    expected = [f"worse than the stale confidence at depth {', '.join(map(str, worse))} (trained on)"] if worse else []
    assert [line for line in ended.out.splitlines() if line.startswith("worse")] == expected


def test_the_directory_of_a_training_is_no_checkpoint_and_says_where_it_is(
    spot: Spot, sweep: Path, models: Path, tmp_path: Path
) -> None:
    out, graph = tmp_path / "out", tmp_path / "spiffy"
    assert spot(*few(models, out)).code == 0
    few_spiffy = ["--prompts", 3, "--temperature", 0, "--max-new-tokens", 40, "--pool", "inline"]
    target = [*on_target(models), "--task", "tiny-arith"]
    assert spot("train", "spiffy", *target, "--out", graph, *few_spiffy).code == 0

    def refused(checkpoint: Path, kind: str, message: str) -> None:
        drafter = f"drafters.mine={{kind: {kind}, checkpoint: {checkpoint}}}"
        ended = spot("plan", sweep, "grid.drafter=mine", drafter)
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert ended.err.endswith(f"{checkpoint}: {message}\n"), ended.err

    refused(out, "spot", f"config.json is missing: did you mean {out / 'model'}?")
    refused(graph, "spiffy", f"graph.json is missing: did you mean {graph / 'graph'}?")
    refused(out / "model", "spiffy", "graph.json is missing: this is an order model")
    refused(graph / "graph", "spot", "config.json is missing: this is a draft graph")
    refused(out, "spiffy", "graph.json is missing: this is where an order model was made")
    refused(graph, "spot", "config.json is missing: this is where a draft graph was made")
    refused(models / "target", "spiffy", "graph.json is missing: this is a target's checkpoint")
    refused(models / "target", "spot", "this is a target's checkpoint")
    refused(models, "spiffy", "graph.json is missing")
