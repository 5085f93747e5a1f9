"""`spot study order`: the same run as `spot run`, only what is missing, and its numbers on the console."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweeps.results import decode_result
from sweeps.store import RunDir

Spot = Callable[..., Any]
FEW = ("--pool", "inline", "measure.prompts=1", "measure.timed_prompts=0", "grid.drafter=spot", "grid.budget=2")
LONG = ("grid.max_new_tokens=40",)  # two blocks, so that there is something to ask


def studied(run: RunDir) -> dict[str, list[int]]:
    """Prompts studied, by item file."""
    files = sorted(run.results.glob("*/*-study-*.json"))
    return {path.stem: [row.prompt_index for row in decode_result(path.read_bytes()).studies] for path in files}


def test_runs_reports_and_says_what_came_out(spot: Spot, sweep: Path) -> None:
    ended = spot("study", "order", sweep, *FEW, *LONG, "measure.studied_prompts=3")
    assert (ended.code, ended.err.count("Traceback")) == (0, 0)
    assert "report: runs/small/report.html" in ended.out
    run = RunDir(sweep.parent / "runs/small")
    assert sorted(studied(run).values()) == [[0, 1], [2]]  # chunks of two
    rows = [decode_result(path.read_bytes()).studies for path in run.results.glob("*/*-study-*.json")]
    asked = sum(sum(row.asked[0]) for rows_ in rows for row in rows_)
    right = sum(sum(row.by_model[0]) for rows_ in rows for row in rows_)
    line = next(line for line in ended.out.splitlines() if re.search(r"tiny-arith .* 1 .* 3 ", line))
    assert f" {asked} " in line
    assert f" {100 * right / asked:.1f} (" in line
    assert "What stale distributions foretell" in run.report.read_text()
    exported = spot("export", "small", "--study")
    table = list(csv.DictReader(exported.out.splitlines()))
    assert [row["asked"] for row in table if (row["look_ahead"], row["commit_index"]) == ("1", "")] == [str(asked)]


def test_a_second_time_nothing_runs_and_more_prompts_add_only_those(
    spot: Spot, sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("study", "order", sweep, *FEW, *LONG)
    assert spot(*command, "measure.studied_prompts=2").code == 0
    run = RunDir(sweep.parent / "runs/small")
    before = {path: path.stat().st_mtime_ns for path in run.results.glob("*/*.json")}
    with monkeypatch.context() as patched:
        patched.setattr("orchestrator.pool_inline.InlinePool.start", None)  # nothing may be started
        again = spot(*command, "measure.studied_prompts=2")
        assert again.code == 0
        assert "tiny-arith" in again.out
    more = spot("study", "order", sweep, *FEW, *LONG, "measure.studied_prompts=3", "grid.budget=4")  # another budget
    assert more.code == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert sorted(studied(run).values()) == [[0, 1], [2]]


def test_plan_shows_what_is_to_study(spot: Spot, sweep: Path) -> None:
    arguments = ("plan", sweep, "measure.studied_prompts=3", "grid.drafter=[ssd, spot, floor]")
    plan = json.loads(spot(*arguments, "--json").out)
    (row,) = [cell for cell in plan["cells"] if cell["study"]]
    shown = {
        name: row[name] for name in ("drafter", "task", "study", "stored", "prompts", "decode", "timing", "forwards")
    }
    assert shown == {
        "drafter": "order-study",
        "task": "tiny-arith",
        "study": 3,
        "stored": 0,
        "prompts": 3,
        "decode": 0,
        "timing": 0,
        "forwards": 3 * 8,
    }
    assert row["why"] == ["3 studied prompts not run yet"]
    text = spot(*arguments).out
    assert "3 prompts for each order model and draft-free cell" in text
    assert "7 cells (1 draft-free added) and 1 order study, 8 with something to do" in text


def test_what_cannot_be_studied_is_refused_in_one_line(spot: Spot, sweep: Path) -> None:
    ended = spot("study", "order", sweep, *FEW)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "spot: sweep small: measure.studied_prompts is 0: to study it add, for example, measure.studied_prompts=16\n"
    )
    ended = spot("study", "order", sweep, "measure.studied_prompts=2", "grid.drafter=ssd")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "no drafter that can run here has an order model" in ended.err
    note = spot("plan", sweep, "measure.studied_prompts=2", "grid.drafter=ssd").out
    assert "nothing is studied" in note
    ended = spot("study", "order", sweep, "measure.studied_prompts=-1")
    assert "measure.studied_prompts is -1: allowed is a whole number from 0" in ended.err
    assert not (sweep.parent / "runs").exists()


def test_the_packaged_sweep_is_the_default(spot: Spot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, tuple[str, ...]]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "orchestrator.commands.run.run.callback", lambda sweep, overrides, **_: ran.append((sweep, overrides)) or 2
    )
    monkeypatch.setattr("orchestrator.show_study.studies_in", lambda run: ())
    assert spot("study", "order", "measure.studied_prompts=1").code == 2  # the run's own exit code
    assert spot("study", "order", "order_study").code == 2
    assert ran == [("order_study", ("measure.studied_prompts=1",)), ("order_study", ())]
    plan = json.loads(spot("plan", "order_study", "--json").out)
    assert {(c["task"], c["temperature"]) for c in plan["cells"] if c["study"]} == {
        (task, temperature) for task in ("tiny-arith", "tiny-code") for temperature in (0.0, 1.0)
    }


def test_a_study_without_its_order_model_is_a_failed_row(spot: Spot, sweep: Path, models: Path) -> None:
    """A model that went away between plan and work fails its item; what was decoded stays."""
    import shutil

    copy = sweep.parent / "order"
    shutil.copytree(models / "order", copy)
    own = (f"drafters.spot.checkpoint={copy}", "measure.studied_prompts=2")
    assert spot("run", sweep, *FEW, f"drafters.spot.checkpoint={copy}").code == 0
    plan = (*FEW, *own)
    import orchestrator.driver as driver

    real = driver.run_plan

    def gone(*arguments: Any, **options: Any) -> Any:
        shutil.rmtree(copy)
        return real(*arguments, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(driver, "run_plan", gone)
        ended = spot("run", sweep, *plan)
    assert ended.code == 1
    assert "2 of the prompts asked for failed" in ended.err
    report = RunDir(sweep.parent / "runs/small").report.read_text()
    assert "2 prompts failed; no share counts them" in report
