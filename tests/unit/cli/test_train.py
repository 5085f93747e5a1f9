"""`spot train`: a target and an order model, small enough for a test, and that what comes out can be used."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workers.training.target_recipes import RECIPES, TINY_SDAR

Spot = Callable[..., Any]


def test_order_model_is_trained_and_drafts(spot: Spot, models: Path, tmp_path: Path) -> None:
    command = ["train", "order", "--target", models / "target", "--task", "tiny-arith", "--out", tmp_path / "order"]
    few = ["--prompts", 3, "--temperature", 0, "--max-new-tokens", 40, "--steps", 3, "--pool", "inline"]
    ended = spot(*command, *few)
    assert ended.code == 0, ended.err
    assert "model: trained on 3 trajectories" in ended.out
    assert "trajectories 3/3 (0 from before), failed 0" in ended.err
    again = spot(*command, *few)
    assert "trajectories 3/3 (3 from before), failed 0" in again.err
    drafts = ["--checkpoint", tmp_path / "order" / "model", "--max-new-tokens", 8, "--json", "the word"]
    assert spot("decode", "--target", models / "target", *drafts).code == 0


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
    command = ["train", "order", "--target", models / "target", "--task", "tiny-arith", "--out", tmp_path / "order"]
    ended = spot(*command, "--prompts", 3, option, 2, "--steps", 1, "--pool", "inline")
    assert (ended.code, ended.out) == (2, "")
    name = option.removeprefix("--").replace("-", "_")
    assert ended.err == (
        f"spot: train order: {name} is 2: allowed is a whole number from 3: "
        "with fewer open positions there is no order to learn\n"
    )
    assert not (tmp_path / "order").exists()


@pytest.mark.parametrize("inside", ["", "order", "model"])
def test_out_that_is_a_file_is_refused_before_decoding(spot: Spot, models: Path, tmp_path: Path, inside: str) -> None:
    out = tmp_path / "out"
    file = out / "model" if inside == "model" else out
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    asked = out / "order" if inside == "order" else out
    ended = spot("train", "order", "--target", models / "target", "--task", "tiny-arith", "--out", asked)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"spot: out is {str(asked)!r}: {file} is no directory: choose another --out\n"
    assert file.read_text() == "mine"


def test_other_steps_than_before_say_the_way_out(spot: Spot, models: Path, tmp_path: Path) -> None:
    command = ["train", "order", "--target", models / "target", "--task", "tiny-arith", "--out", tmp_path / "order"]
    few = ["--prompts", 3, "--temperature", 0, "--max-new-tokens", 40, "--pool", "inline"]
    assert spot(*command, *few, "--steps", 2).code == 0
    ended = spot(*command, *few, "--steps", 3)
    assert ended.code == 2
    assert (
        "belongs to another recipe (it differs in steps); delete it to start again, or choose another --out"
        in ended.err
    )
