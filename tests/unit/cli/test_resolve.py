"""From names to digests: what changes an identity, what does not, and hub ids from the local cache alone."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.resolve import resolve_target
from sweeps.spec import TargetSpec
from tests.tiny_checkpoints import edit_json
from workers.loading import Loaded

Spot = Callable[..., Any]
ROOT = Path(__file__).parents[3]


def ids(spot: Spot, sweep: Path, *overrides: str) -> list[str]:
    """The cell ids of a plan."""
    return [cell["cell_id"] for cell in json.loads(spot("plan", sweep, "--json", *overrides).out)["cells"]]


def test_the_same_checkpoint_elsewhere_is_the_same_work(spot: Spot, sweep: Path, models: Path) -> None:
    before = ids(spot, sweep)
    shutil.copytree(models / "target", sweep.parent / "my copy #1 %20")
    assert ids(spot, sweep, 'targets.rand.path="my copy #1 %20"') == before
    assert ids(spot, sweep, 'grid.target="./my copy #1 %20"') == before


@pytest.mark.parametrize(
    "file", ["config.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"]
)
def test_an_edited_file_of_the_checkpoint_is_other_work(spot: Spot, sweep: Path, models: Path, file: str) -> None:
    before = ids(spot, sweep)
    folder = Path(shutil.copytree(models / "target", sweep.parent / "edited"))
    if file.endswith(".json"):
        edit_json(folder / file, note="another one")
    else:
        (folder / file).write_text("{{ messages[0].content }}!")
    assert not set(ids(spot, sweep, "targets.rand.path=edited")) & set(before)


def test_a_worker_refuses_a_checkpoint_whose_settings_are_not_those_of_the_cell(models: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(models / "target", tmp_path / "edited"))
    resolved, _ = resolve_target(TargetSpec(name="x", path=str(folder)))
    Loaded("cpu").get_target(resolved)
    edit_json(folder / "tokenizer_config.json", note="another one")
    with pytest.raises(ValueError, match="target x: config, tokenizer and template have digest"):
        Loaded("cpu").get_target(resolved)


def test_hub_id_is_found_in_the_local_cache_at_its_commit(sweep: Path, models: Path, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    cached = tmp_path / "hub-home" / "hub" / "models--org--tiny"
    shutil.copytree(models / "target", cached / "snapshots" / commit)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit)
    environment = {**os.environ, "HF_HOME": str(tmp_path / "hub-home"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "orchestrator.cli", "plan", sweep.name, "grid.target=org/tiny", "--json"]
    ended = subprocess.run(command, cwd=sweep.parent, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    (target,) = json.loads(ended.stdout)["spec"]["targets"]
    local, _ = resolve_target(TargetSpec(name="x", path=str(models / "target")))
    assert (target["path"], target["revision"]) == ("org/tiny", commit)
    assert (target["digest"], target["settings_digest"]) == (local.digest, local.settings_digest)


def test_order_model_of_the_table_is_not_used_for_other_weights_of_the_same_name(spot: Spot, sweep: Path) -> None:
    text = sweep.read_text().replace("rand:", "tiny-sdar:").replace("target: rand", "target: tiny-sdar")
    sweep.write_text(text.replace("spot: {checkpoint", "other: {kind: spot, checkpoint"))
    ended = spot("plan", sweep)
    assert ended.code == 0, ended.err
    assert "no order model is known for tiny-sdar" in ended.out
