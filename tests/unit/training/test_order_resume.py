"""The same seed gives the same weights, whatever killed the process in between; what is finished is left alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toys import ToyTarget
from tests.traces import toy_cell, toy_trace, write_traces
from workers.training.order import train_order
from workers.training.order_log import read_log
from workers.training.order_recipe import OrderRecipe

ROOT = Path(__file__).parents[3]
RECIPE = OrderRecipe(seed=5, steps=12, batch=8, rise=2, evaluate_every=3, held_out=0.3, max_depth=4)
PROGRAM = """
import os, signal, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from tests.unit.training.test_order_resume import RECIPE, train
from workers.training import order

order.SAVE_EVERY = 4

def life(folder, kill_at):
    '''Train in a process of its own, killed after a step; how it ended.'''
    child = os.fork()
    if child == 0:
        train(folder, lambda p: os.kill(os.getpid(), signal.SIGKILL) if p.step == kill_at else None)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

whole, killed = Path(sys.argv[1]), Path(sys.argv[2])
print(life(whole, 0), [life(killed, step) for step in (3, 7, 11)], (killed / "model").exists(), life(killed, 0))
"""


def train(folder, progress=None):
    """Train in this process, from whatever is in `folder`."""
    return train_order(
        sorted((folder / "traces").glob("*.trace")),
        RECIPE,
        out_dir=folder / "model",
        progress=progress,
        resume=folder / "state.pt",
        log=folder / "training.jsonl",
    )


def fill(folder):
    """Traces below a folder."""
    cell = toy_cell(length=8, new=16)
    traces = [toy_trace(ToyTarget(vocab_size=40), cell, index, prompt=f"{index:08d}") for index in range(5)]
    write_traces(folder / "traces", traces)
    return folder


def without_times(folder):
    """The rows of the log."""
    rows = map(json.loads, (folder / "training.jsonl").read_text().splitlines())
    return [{name: value for name, value in row.items() if name not in ("time", "seconds")} for row in rows]


@pytest.mark.slow
def test_a_killed_training_goes_on_to_the_weights_of_an_uninterrupted_one(tmp_path):
    """Killed before the first state, between states, and after rows of the log that no state knows."""
    whole, killed = fill(tmp_path / "whole"), fill(tmp_path / "killed")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, str(whole), str(killed)]
    ended = subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=300, capture_output=True, text=True)
    assert ended.stdout == "0 [-9, -9, -9] False 0\n", ended.stderr
    for name in ("model.safetensors", "config.json"):
        assert (killed / "model" / name).read_bytes() == (whole / "model" / name).read_bytes()
    assert without_times(killed) == without_times(whole)
    assert [row.step for row in read_log(killed / "training.jsonl").evaluations] == [3, 6, 9, 12]


def test_a_finished_training_is_left_as_it_is(tmp_path):
    first = train(fill(tmp_path))
    model = tmp_path / "model"
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in model.iterdir()}
    assert train(tmp_path).card == first.card
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in model.iterdir()} == before
    (model / "card.json").unlink()  # but what is missing of it is made again, from the state
    (model / "model.safetensors").write_bytes(b"damaged")
    assert train(tmp_path).card == first.card
    assert {path: path.read_bytes() for path in before} == {path: data for path, (data, _) in before.items()}
