"""The order study killed midway: the same command goes on, studies only what is missing, and ends as if undisturbed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from sweeps.results import load_results
from sweeps.store import RunDir
from sweeps.study import StudyRecord
from tests.tiny_checkpoints import write_checkpoint
from workers.models.facts import OrderConfig
from workers.models.order_model import OrderModel, save_order_model

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PROMPTS = 5
SWEEP = """\
name: small
grid: {target: rand, task: tiny-arith, drafter: spot, budget: 2, temperature: [0, 1], max_new_tokens: 40}
targets:
  rand: {path: TARGET, block_length: 32}
drafters:
  spot: {checkpoint: ORDER}
measure: {prompts: 1, timed_prompts: 0, studied_prompts: PROMPTS, chunk: 1}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random target, an untrained order model, and a sweep over both."""
    folder = tmp_path_factory.mktemp("study")
    write_checkpoint(folder / "target", config={"max_position_embeddings": 2048})
    torch.manual_seed(0)
    config = OrderConfig(block_length=32, layers=1, width=16, heads=2, feedforward=16)
    save_order_model(OrderModel(config), folder / "order")
    text = SWEEP.replace("TARGET", str(folder / "target")).replace("ORDER", str(folder / "order"))
    (folder / "small.yaml").write_text(text.replace("PROMPTS", str(PROMPTS)))
    return folder


def start(folder: Path, out: str) -> "subprocess.Popen[str]":
    program = [
        sys.executable,
        "-m",
        "orchestrator.cli",
        "study",
        "order",
        "small.yaml",
        "--pool",
        "inline",
        "--out",
        out,
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        program, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def stored(run: RunDir) -> dict[str, tuple[StudyRecord, ...]]:
    loaded = load_results(run)
    assert not loaded.problems
    return {result.item_id: result.studies for result in loaded.results if result.kind == "study"}


def test_a_killed_study_goes_on_where_it_was(folder: Path) -> None:
    run = RunDir(folder / "killed")
    process = start(folder, "killed")
    deadline = time.monotonic() + 240
    while len(list(run.results.glob("*/*-study-*.json"))) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = {path: path.stat().st_mtime_ns for path in run.results.glob("*/*-study-*.json")}
    assert 3 <= len(kept) < 2 * PROMPTS
    again = start(folder, "killed")
    out, errors = again.communicate(timeout=400)
    assert again.returncode == 0, errors
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert "report: killed/report.html" in out
    undisturbed = start(folder, "undisturbed")
    assert undisturbed.communicate(timeout=400) is not None
    assert undisturbed.returncode == 0
    whole = stored(RunDir(folder / "undisturbed"))
    assert stored(run) == whole
    assert len(whole) == 2 * PROMPTS
