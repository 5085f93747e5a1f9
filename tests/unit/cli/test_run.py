"""`spot run`: its exit codes, its report and its mirror; what it leaves alone. The pool is this process."""

import csv
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeps.results import decode_result, encode_result
from sweeps.store import RunDir

Spot = Callable[..., Any]
ROOT = Path(__file__).parents[3]
FEW = ("--pool", "inline", "measure.prompts=1", "measure.timed_prompts=0", "grid.budget=2", "grid.drafter=ssd")


@pytest.mark.slow
def test_all_is_well_then_nothing_is_missing(
    spot: Spot, sweep: Path, real_mirror: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = spot("run", sweep, *FEW)
    assert ended.code == 0
    assert "report: runs/small/report.html" in ended.out
    assert (sweep.parent / "runs/small/report.html").is_file()
    with sqlite3.connect(sweep.parent / "runs/small/mlflow.db") as mirror:
        assert mirror.execute("select count(*) from runs").fetchone() == (3,)  # the sweep and its two cells
    monkeypatch.setattr("orchestrator.pool_inline.InlinePool.start", None)  # nothing may be started
    again = spot("run", sweep, *FEW)
    assert again.code == 0
    assert "nothing was missing; report: runs/small/report.html" in again.out


@pytest.mark.slow
def test_mirror_alone_that_fails_is_code_3_and_sync_fills_it_later(spot: Spot, sweep: Path, real_mirror: None) -> None:
    ended = spot("run", sweep, *FEW, "--tracking-uri", "http://127.0.0.1:9")
    assert ended.code == 3
    assert "results are safe, `spot sync` tries again" in ended.err
    assert "report: " in ended.out
    again = spot("run", sweep, *FEW, "--tracking-uri", "http://127.0.0.1:9")
    assert again.code == 3  # the same command tries again
    assert "report: runs/small/report.html (up to date)" in again.out
    assert spot("sync", "runs/small").code == 3  # the run keeps its place
    assert spot("sync", "small", "--tracking-uri", "sqlite:///later.db").code == 0
    assert (sweep.parent / "runs/small/later.db").is_file()


def test_tracking_folder_is_refused_before_any_work(spot: Spot, sweep: Path) -> None:
    ended = spot("run", sweep, *FEW, "--tracking-uri", "./mlruns")
    assert (ended.code, ended.out) == (2, "")
    assert "plain folder, which MLflow no longer writes to" in ended.err
    assert ended.err.count("\n") == 1
    assert not (sweep.parent / "runs").exists()


def test_output_that_differs_is_code_1(spot: Spot, sweep: Path) -> None:
    assert spot("run", sweep, *FEW).code == 0
    run = RunDir(sweep.parent / "runs/small")
    paths = sorted(run.results.glob("*/*.json"))
    results = [decode_result(path.read_bytes()) for path in paths]
    (at,) = [
        i
        for i, result in enumerate(results)
        if result.generations[0].counters.drafter_calls == 0 and any(result.generations[0].counters.drafted)
    ]
    row = results[at].generations[0]
    changed = replace(row, output_ids=(row.output_ids[0] + 1, *row.output_ids[1:]), margins=(5.0,) * len(row.margins))
    others = [r for i, r in enumerate(results) if i != at]
    paths[at].write_bytes(encode_result(replace(results[at], generations=(changed,))))
    for path, result in zip([p for i, p in enumerate(paths) if i != at], others, strict=True):
        wide = replace(result.generations[0], margins=(5.0,) * len(result.generations[0].margins))
        path.write_bytes(encode_result(replace(result, generations=(wide,))))
    ended = spot("run", sweep, *FEW)
    assert ended.code == 1
    assert "1 of 1 prompts differ from draft-free decoding by more than rounding explains" in ended.err


def test_an_edited_sweep_with_nothing_to_run_has_its_own_page(spot: Spot, sweep: Path) -> None:
    more = (*FEW, "measure.prompts=3")
    assert spot("run", sweep, *more).code == 0
    fewer = spot("run", sweep, *FEW, "measure.prompts=2", "title=Fewer prompts")
    assert fewer.code == 0
    assert "nothing was missing" not in fewer.out
    run = RunDir(sweep.parent / "runs/small")
    assert "<title>Fewer prompts" in run.report.read_text()
    with (run.report_data / "cells.csv").open() as cells:
        assert [(row["n"], row["n_expected"]) for row in csv.DictReader(cells)] == [("2", "2")] * 2
    with (run.report_data / "prompts.csv").open() as prompts:
        assert len(list(csv.DictReader(prompts))) == 4
    assert len(list(run.results.glob("*/*.json"))) == 2 * 2  # chunks of two: what is stored stays


def test_workers_option_is_the_resource(spot: Spot, sweep: Path) -> None:
    assert spot("run", sweep, *FEW, "--workers", 1).code == 0
    assert '"workers": 1' in RunDir(sweep.parent / "runs/small").spec.read_text()


@pytest.mark.slow
def test_interrupt_is_130_and_the_same_command_goes_on(spot: Spot, sweep: Path) -> None:
    many = ("--pool", "inline", "measure.prompts=60", "measure.chunk=1", "grid.drafter=ssd", "grid.budget=2")
    program = [sys.executable, "-m", "orchestrator.cli", "run", sweep.name, *many]
    running = subprocess.Popen(
        program, cwd=sweep.parent, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True
    )
    run = RunDir(sweep.parent / "runs/small")
    deadline = time.monotonic() + 120
    while len(list(run.results.glob("*/*.json"))) < 3:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "the same command goes on" in errors
    kept = {path: path.stat().st_mtime_ns for path in run.results.glob("*/*.json")}
    assert spot("run", sweep, *many, "--accept-changes").code == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(list(run.results.glob("*/*-decode-*.json"))) == 2 * 60
