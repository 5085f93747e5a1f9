"""Bad input: exit code 2, one line on stderr that names the thing, before any work and before any file is written."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_checkpoints import edit_json, write_json

Spot = Callable[..., Any]

OVERRIDES = {
    "grid.temprature=0": "unknown key grid.temprature",
    "measure.promts=1": "did you mean prompts?",
    "grid.target=ran": "did you mean rand?",
    "grid.drafter=spott": "; did you mean spot?",
    "grid.task=tiny-arit": "did you mean tiny-arith?",
    "grid.budget=0": "grid.budget is 0: allowed is a whole number from 1 to 4096",
    "grid.budget=-1": "grid.budget is -1: allowed is a whole number from 1 to 4096",
    "grid.temperature=-0.5": "grid.temperature is -0.5: allowed is a finite number from 0",
    "grid.temperature=.nan": "grid.temperature is nan: allowed is a finite number",
    "grid.max_new_tokens=4096": "can never fit: rand has 2048 positions",
    "grid.target=./nothing-here": "no checkpoint in",
    "measure.prompts=2000000": "measure.prompts is 2000000: allowed is a whole number from 1 to 100000",
    "measure.prompts=0": "measure.prompts is 0: allowed is a whole number from 1 to 100000",
    "resources.cpus=1e-9": "resources.cpus is 1e-09: allowed is a number from 0.01",
    "resources.cpus=0": "resources.cpus is 0.0: allowed is a number from 0.01",
    "targets.rand.dtype=float16": "target rand: dtype is 'float16' on CPU workers: allowed is float64 | float32",
    "targets.rand.path=.": "config.json: missing file",
    "drafters.spot.checkpoint=nowhere": "neither a directory nor one of",
    "drafters.spot.checkpoint=.": "config.json is missing",
}


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize("override", OVERRIDES)
def test_one_line_before_any_work(
    spot: Spot, sweep: Path, command: str, override: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    ended = spot(command, sweep, override)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("spot: ")
    assert ended.err.count("\n") == 1
    assert OVERRIDES[override] in ended.err
    assert not (sweep.parent / "runs").exists()


@pytest.mark.parametrize("command", ["plan", "run"])
def test_syntax_error_has_file_line_and_column(spot: Spot, sweep: Path, command: str) -> None:
    sweep.write_text(sweep.read_text().replace("drafter: [ssd, spot, floor]", "drafter: [ssd, spot"))
    ended = spot(command, sweep)
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert f"{sweep}:6:9: not YAML" in ended.err


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ('{"question": "a", "answer": "#### 3"}\n{"question": "b"\n', "2"),
        ("", "rows.jsonl"),
    ],
)
def test_bad_row_of_a_task_is_named_by_its_line(spot: Spot, sweep: Path, rows: str, expected: str) -> None:
    (sweep.parent / "rows.jsonl").write_text(rows)
    ended = spot("plan", sweep, "grid.task=jsonl:rows.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert expected in ended.err
    assert ended.err.count("\n") == 1


def test_split_that_a_task_does_not_have(spot: Spot, sweep: Path) -> None:
    ended = spot("plan", sweep, "tasks.other={kind: humaneval, split: train}", "grid.task=other")
    assert ended.code == 2
    assert "task other: split: 'train' is not one of" in ended.err


def broken(folder: Path, models: Path) -> Path:
    """A copy of the checkpoint, to break."""
    return Path(shutil.copytree(models / "target", folder / "broken"))


@pytest.mark.parametrize("field", ["num_hidden_layers", "rms_norm_eps", "rope_theta", "max_position_embeddings"])
def test_config_that_lacks_a_needed_field(spot: Spot, sweep: Path, models: Path, field: str) -> None:
    edit_json(broken(sweep.parent, models) / "config.json", **{field: ...})
    ended = spot("plan", sweep, "targets.rand.path=broken")
    assert ended.code == 2
    assert f"config.json: {field} is missing" in ended.err
    assert ended.err.count("\n") == 1


def test_missing_and_cut_weights(spot: Spot, sweep: Path, models: Path) -> None:
    weights = broken(sweep.parent, models) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "truncated" in spot("plan", sweep, "targets.rand.path=broken").err
    weights.unlink()
    ended = spot("plan", sweep, "targets.rand.path=broken")
    assert ended.code == 2
    assert "missing weight file" in ended.err


def test_order_model_that_was_altered(spot: Spot, sweep: Path, models: Path) -> None:
    folder = Path(shutil.copytree(models / "order", sweep.parent / "altered"))
    edit_json(folder / "config.json", layers=2)
    ended = spot("plan", sweep, "drafters.spot.checkpoint=altered")
    assert ended.code == 2
    assert "digest is" in ended.err


@pytest.mark.parametrize("command", ["plan", "run"])
def test_directory_of_another_sweep(spot: Spot, sweep: Path, command: str) -> None:
    other = sweep.parent / "runs" / "small"
    assert spot("run", sweep, "name=other", "--out", other, "--pool", "inline", "measure.prompts=1").code == 0
    before = (other / "spec.json").read_bytes()
    ended = spot(command, sweep)
    assert ended.code == 2
    assert "runs/small belongs to sweep 'other', not 'small': choose another one" in ended.err
    assert ended.err.count("\n") == 1
    assert (other / "spec.json").read_bytes() == before


@pytest.mark.parametrize("command", ["plan", "run"])
def test_directory_with_other_things_in_it(spot: Spot, sweep: Path, command: str) -> None:
    write_json(sweep.parent / "thesis.json", {})
    ended = spot(command, sweep, "--out", sweep.parent)
    assert ended.code == 2
    assert "is no run directory but holds" in ended.err


def test_sweep_that_does_not_exist(spot: Spot, sweep: Path) -> None:
    ended = spot("plan", "quik")
    assert ended.code == 2
    assert "did you mean quick?" in ended.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["pln", "quick"], "No such command 'pln'."),
        (["plan"], "Missing argument 'SWEEP'."),
        (["plan", "quick", "--jsn"], "No such option '--jsn'."),
        (["run", "quick", "--pool", "slurm"], "'slurm' is not one of 'ray', 'inline'"),
        (["run", "quick", "--workers", "0"], "0 is not in the range x>=1"),
        (["list", "models"], "'models' is not one of"),
        (["report", "nowhere"], "no run directory nowhere, and no runs/nowhere"),
        (["export", "nowhere"], "no run directory nowhere"),
    ],
)
def test_command_line_itself(spot: Spot, sweep: Path, arguments: list[str], expected: str) -> None:
    ended = spot(*arguments)
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert expected in ended.err
