"""Broken text, devices and state files: exit code 2 and one line, whatever the file is made of."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tiny_checkpoints import on_target
from workers.training.target_recipes import RECIPES, TINY_SDAR

Spot = Callable[..., Any]


def _refused(ended: Any, *words: str) -> None:
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("spot: ")
    assert ended.err.count("\n") == 1
    for word in words:
        assert word in ended.err


@pytest.mark.parametrize("device", ["foo", "cuda:99", "meta", "cuda:x"])
def test_device_that_is_not_there(spot: Spot, models: Path, device: str) -> None:
    ended = spot("decode", *on_target(models), "--drafter", "none", "--device", device, "x")
    _refused(ended, f"device is {device!r}: allowed on this machine is cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_cuda_on_a_machine_without(spot: Spot, models: Path) -> None:
    ended = spot("decode", *on_target(models), "--drafter", "none", "--device", "cuda", "x")
    _refused(ended, "device is 'cuda': allowed on this machine is cpu")


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b'{"ids": [3]}\n' + b"[" * 100_000, ":2: not JSON"), (b'{"ids": [3]}\n\xff\n', ": not UTF-8 text")],
)
def test_ids_file(spot: Spot, models: Path, tmp_path: Path, content: bytes, expected: str) -> None:
    file = tmp_path / "ids.jsonl"
    file.write_bytes(content)
    ended = spot("decode", *on_target(models), "--drafter", "none", "--ids-file", file)
    _refused(ended, f"{file}{expected}")


def test_stdin_that_is_not_utf8(spot: Spot, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9"), errors="surrogateescape"))
    _refused(
        spot("decode", *on_target(models), "--drafter", "none", "-"),
        "TEXT on stdin is not UTF-8",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: a\ngrid: &a {target: *a}\n", ":2: grid.target is an alias of what it stands in"),
        ("grid: &a [*a]\n", ":1: grid[0] is an alias of what it stands in"),
        ("grid: " + "[" * 5000, ": nested too deeply"),
        (f"grid: {{target: rand, task: tiny-arith, temperature: {'9' * 400}}}\n", "allowed is a finite number"),
    ],
)
def test_sweep_file(spot: Spot, tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(text)
    _refused(spot("plan", file), str(file), expected)


def test_an_alias_of_something_else_is_fine(spot: Spot, sweep: Path) -> None:
    sweep.write_text(sweep.read_text().replace("budget: [2, 4]", "budget: &b [2, 4]\n  seed: *b"))
    assert spot("plan", sweep).code == 0


@pytest.mark.parametrize("junk", ["junk", "other"])
def test_state_of_a_target_training(spot: Spot, tmp_path: Path, junk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"examples_per_task": 64, "hidden": 32, "layers": 1, "heads": 2, "kv_heads": 1, "head_dim": 16, "mlp": 32}
    monkeypatch.setitem(RECIPES, "speck", replace(TINY_SDAR, name="speck", tasks=("tiny-arith",), **small))
    state = tmp_path / "out" / "state.pt"
    state.parent.mkdir()
    if junk == "junk":
        state.write_bytes(b"junk")
    else:
        torch.save({"a": 1}, state)
    ended = spot("train", "target", "speck", "--out", tmp_path / "out")
    _refused(ended, f"training state {state}: unreadable", "delete it to start again")
