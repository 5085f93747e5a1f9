"""Oracles on the command line: they decode, plan, run and export, and everywhere say that they are a bound."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_checkpoints import on_target

Spot = Callable[..., Any]
FEW = ("grid.drafter=[ssd,oracle_position,oracle_token,oracle_joint]", "grid.budget=2", "measure.prompts=2")


def test_decode_tells_the_oracle_the_future_first_and_says_so(spot: Spot, models: Path) -> None:
    command = ["decode", *on_target(models), "--drafter", "oracle_joint", "--budget", 3]
    command += ["--max-new-tokens", 40, "--temperature", 1, "the word"]  # behind 5 prompt tokens: blocks of 27 and 13
    row = json.loads(spot(*command, "--json").out)
    assert row["bound"] is True
    assert row["counters"]["nfe"] == 1 + 7 + 1 + 3  # 26 / 4 and 12 / 4, rounded up
    free = json.loads(spot(*command[:6], "none", *command[9:], "--json").out)
    assert free["bound"] is False
    assert (row["output_ids"], row["order"]) == (free["output_ids"], free["order"])
    shown = spot(*command)
    assert shown.code == 0
    assert "a bound, no method" in shown.out
    assert "a bound" not in spot("decode", *on_target(models), "--drafter", "ssd", "the word").out


def test_independent_noise_is_refused_with_the_reason(spot: Spot, models: Path) -> None:
    command = ["decode", *on_target(models), "--drafter", "oracle_token", "x"]
    ended = spot(*command, "--temperature", 1, "--noise", "independent")
    assert (ended.code, ended.out) == (2, "")
    assert "knows one future: with independent noise the target draws another" in ended.err
    assert spot(*command, "--noise", "independent", "--max-new-tokens", 4).code == 0  # at T = 0 nothing is drawn


def test_plan_and_list_mark_bounds(spot: Spot, sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    cells = json.loads(spot("plan", sweep, *FEW, "--json").out)["cells"]
    assert {cell["drafter"]: cell["bound"] for cell in cells} == {
        "none": False,
        "ssd": False,
        "oracle_position": True,
        "oracle_token": True,
        "oracle_joint": True,
    }
    shown = spot("plan", sweep, *FEW).out
    assert shown.count("(bound)") == 3
    assert "oracle_joint (bound)" in shown
    listed = spot("list", "drafters").out.splitlines()
    assert [line.split()[0] for line in listed if "a bound, no method" in line] == [
        "oracle_position",
        "oracle_token",
        "oracle_joint",
    ]


@pytest.mark.slow
def test_a_run_is_checked_timed_reported_and_exported(spot: Spot, sweep: Path) -> None:
    assert spot("run", sweep, "--pool", "inline", *FEW).code == 0
    rows = list(csv.DictReader(spot("export", "small").out.splitlines()))
    by_name = {row["drafter"]: row for row in rows}
    assert {name: row["bound"] for name, row in by_name.items()} == {
        "none": "False",
        "ssd": "False",
        "oracle_position": "True",
        "oracle_token": "True",
        "oracle_joint": "True",
    }
    joint = by_name["oracle_joint"]
    assert (joint["n_identical"], joint["n_compared"], joint["claim_holds"], joint["n_timed"]) == (
        "2",
        "2",
        "True",
        "1",
    )
    assert float(joint["nfe"]) == min(float(row["nfe"]) for row in rows)
    page = (sweep.parent / "runs/small/report.html").read_text()
    assert 'id="oracles"' in page
    assert "oracle_joint (bound)" in page
    prompts = list(csv.DictReader(spot("export", "small", "--prompts").out.splitlines()))
    assert {row["bound"] for row in prompts if row["drafter"].startswith("oracle")} == {"True"}


def test_the_packaged_sweep_asks_for_every_bound_beside_the_drafters(
    spot: Spot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(spot("plan", "oracles", "measure.prompts=3", "--json").out)["cells"]
    drafted = {(cell["drafter"], cell["budget"]) for cell in cells if cell["drafter"] != "none"}
    names = ("ssd", "spot", "oracle_position", "oracle_token", "oracle_joint")
    assert drafted == {(name, budget) for name in names for budget in (4, 8, 20)}
    assert {(cell["task"], cell["temperature"]) for cell in cells} == {
        (task, temperature) for task in ("tiny-arith", "tiny-code") for temperature in (0.0, 1.0)
    }
    assert len(cells) == 4 * (1 + len(drafted))
    assert {cell["prompts"] for cell in cells} == {3}
