"""`spot plan`: cells, what is stored, what is to do and why; and that it starts nothing and imports nothing heavy."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Spot = Callable[..., Any]
CELLS = [("none", 0), ("ssd", 2), ("ssd", 4), ("spot", 2), ("spot", 4), ("floor", 2), ("floor", 4)]

NOTHING_HEAVY = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "ray", "mlflow", "transformers", "pandas", "altair"):
            raise AssertionError(f"{name} is imported")

sys.meta_path.insert(0, Refuse())
from orchestrator.cli import main
main(sys.argv[1:])
"""


def planned(spot: Spot, sweep: Path, *arguments: str) -> dict[str, Any]:
    """The plan as JSON."""
    ended = spot("plan", sweep, "--json", *arguments)
    assert (ended.code, ended.err) == (0, "")
    plan: dict[str, Any] = json.loads(ended.out)
    return plan


@pytest.fixture
def stored(spot: Spot, sweep: Path) -> Path:
    """The run directory after the sweep was run with 2 of its 4 prompts."""
    assert spot("run", sweep, "--pool", "inline", "measure.prompts=2").code == 0
    return sweep.parent / "runs" / "small"


@pytest.mark.parametrize(
    "arguments", [["plan", "small.yaml"], ["plan", "small.yaml", "--json"], ["list", "targets"], ["list", "sweeps"]]
)
def test_nothing_heavy_is_imported(sweep: Path, arguments: list[str]) -> None:
    program = [sys.executable, "-c", NOTHING_HEAVY, *arguments]
    root = Path(__file__).parents[3]
    ended = subprocess.run(program, capture_output=True, text=True, cwd=sweep.parent, env={"PYTHONPATH": str(root)})
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout


def test_before_any_run(spot: Spot, sweep: Path) -> None:
    plan = planned(spot, sweep)
    cells = plan["cells"]
    assert [(cell["drafter"], cell["budget"]) for cell in cells] == CELLS
    assert [cell["added_baseline"] for cell in cells] == [True] + [False] * 6
    assert {(cell["stored"], cell["decode"], cell["failed"]) for cell in cells} == {(0, 4, 0)}
    assert [cell["timing"] for cell in cells] == [0] + [1] * 6  # a baseline is timed beside its variants
    assert cells[0]["why"] == ["4 prompts not run yet"]
    assert cells[0]["forwards"] == 4 * 8
    # 4 prompts of 8 tokens; one of them timed on both sides, once and once to warm up
    assert {cell["forwards"] for cell in cells[1:]} == {4 * 8 + 2 * 2 * 8}
    assert {cell["forwards_from"] for cell in cells} == {"upper bound"}
    assert plan["forwards"] == sum(cell["forwards"] for cell in cells)
    assert plan["items"] == 7 * 2 + 6  # chunks of 2 prompts; one timing item a variant
    assert plan["spec"]["targets"][0]["digest"]
    assert not (sweep.parent / "runs").exists()


def test_what_is_stored_is_not_to_do_and_estimates_forwards(spot: Spot, sweep: Path, stored: Path) -> None:
    rows = [json.loads(path.read_bytes())["result"] for path in (stored / "results").glob("*/*-decode-*.json")]
    nfe: dict[str, list[int]] = {}
    for row in rows:
        nfe.setdefault(row["cell_id"], []).extend(one["counters"]["nfe"] for one in row["generations"])
    plan = planned(spot, sweep)
    for cell in plan["cells"]:
        assert (cell["stored"], cell["decode"], cell["timing"]) == (2, 2, 0)
        assert cell["why"] == ["2 of 4 prompts are missing"]
        assert cell["forwards_from"] == "stored prompts"
        assert cell["forwards"] == round(2 * sum(nfe[cell["cell_id"]]) / len(nfe[cell["cell_id"]]))
    assert "changed since the last start: spec measure.prompts: 2 -> 4" in plan["notes"]
    assert planned(spot, sweep, "measure.prompts=2")["items"] == 0


def test_nothing_to_do_says_so_and_run_is_a_no_op(spot: Spot, sweep: Path, stored: Path) -> None:
    assert "nothing to do" in spot("plan", sweep, "measure.prompts=2").out
    before = {path: path.stat().st_mtime_ns for path in (stored / "results").rglob("*.json")}
    assert spot("run", sweep, "--pool", "inline", "measure.prompts=2").code == 0
    assert {path: path.stat().st_mtime_ns for path in (stored / "results").rglob("*.json")} == before


def test_more_repeats_and_damaged_files_are_reasons(spot: Spot, sweep: Path, stored: Path) -> None:
    damaged = next((stored / "results").glob("*/*-decode-*.json"))
    damaged.write_bytes(damaged.read_bytes()[:-10])
    plan = planned(spot, sweep, "measure.prompts=2", "measure.repeats=2")
    by_id = {cell["cell_id"]: cell for cell in plan["cells"]}
    cell = by_id.pop(damaged.parent.name)
    assert "1 damaged or foreign result file: set aside and run again" in cell["why"]
    assert cell["decode"] == 2
    others = [cell for cell in by_id.values() if cell["budget"]]
    assert {tuple(cell["why"]) for cell in others} == {("1 timed prompts have fewer than 2 repeats",)}
    assert damaged.exists()  # a plan changes nothing


def test_changed_code_is_named_with_what_a_run_would_need(spot: Spot, sweep: Path, stored: Path) -> None:
    record = json.loads((stored / "provenance.json").read_bytes())
    record["starts"][-1]["sources"]["workers/runner.py"] = "0" * 16
    record["starts"][-1]["code_digest"] = "0" * 20
    (stored / "provenance.json").write_text(json.dumps(record))
    (note,) = [note for note in planned(spot, sweep, "measure.prompts=2")["notes"] if "--accept-changes" in note]
    assert "code digest: 000000000000 -> " in note
    assert "code changed: workers/runner.py" in note
    ended = spot("run", sweep, "--pool", "inline", "measure.prompts=2")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "pass --accept-changes" in ended.err


def test_a_task_with_fewer_prompts_than_asked_for_means_all_of_them(spot: Spot, sweep: Path) -> None:
    rows = [{"question": f"what is {n}?", "answer": f"#### {n}"} for n in range(3)]
    (sweep.parent / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = planned(spot, sweep, "grid.task=[tiny-arith, 'jsonl:rows.jsonl']", "measure.prompts=5")
    wanted = {cell["task"]: cell["prompts"] for cell in plan["cells"]}
    assert wanted == {"tiny-arith": 5, "jsonl:rows.jsonl": 3}
    assert plan["notes"] == ["jsonl:rows.jsonl has 3 prompts, all of which are wanted"]


def test_failed_prompts_are_counted_and_asked_again_only_on_request(spot: Spot, sweep: Path) -> None:
    long = "grid.max_new_tokens=2000"  # some prompts do not fit 2048 positions with it, and no prompt is cut
    arguments = (long, "grid.drafter=none", "measure.prompts=1", "measure.timed_prompts=0")
    ended = spot("run", sweep, "--pool", "inline", *arguments)
    assert ended.code == 1
    assert "1 of the prompts asked for failed" in ended.err
    (cell,) = planned(spot, sweep, *arguments)["cells"]
    assert (cell["failed"], cell["stored"], cell["decode"], cell["why"]) == (1, 0, 0, [])
    assert "--retry-failed" in spot("plan", sweep, *arguments).out
    (cell,) = planned(spot, sweep, "--retry-failed", *arguments)["cells"]
    assert (cell["failed"], cell["decode"], cell["why"]) == (1, 1, ["1 of 1 prompts failed before"])


def test_tables_show_resolved_axes_reasons_and_what_is_not_run(spot: Spot, sweep: Path) -> None:
    ended = spot("plan", sweep, "grid.temperature=1e-3", "grid.gamma=[0,0.5]", "exclude={drafter: ssd, budget: 2}")
    assert ended.code == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert "temperature 0.001" in lines
    assert "prompts 4 a cell, 1 timed 1 time, 2 a work item" in lines
    assert any(line.endswith("ssd has no masses to hold against a floor: it runs once, without") for line in lines)
    assert any("drafter ssd, budget 2" in line and "exclude[0]" in line for line in lines)
    assert any("none (added)" in line and "4 prompts not run yet" not in line for line in lines)


def test_reasons_are_a_column_only_where_they_differ(spot: Spot, sweep: Path, stored: Path) -> None:
    once = "none of these cells has anything stored: every prompt counted here is not run yet"
    assert once in spot("plan", sweep, "grid.seed=1", "grid.temperature=1", "--out", "elsewhere").out
    (stored / "results").rename(stored.parent / "aside")
    fresh = spot("plan", sweep).out
    assert once in fresh
    assert " why" not in fresh
    assert max(map(len, fresh.splitlines()[:20])) <= 120
    (stored.parent / "aside").rename(stored / "results")
    partly = spot("plan", sweep, "grid.drafter=[ssd, spot, floor, freedave]").out
    assert once not in partly
    assert "2 of 4 prompts are missing" in partly
    assert "4 prompts not run yet" in partly


def test_counts_agree_with_their_nouns(spot: Spot, sweep: Path) -> None:
    arguments = ("grid.drafter=none", "measure.prompts=1", "resources.workers=1", "grid.max_new_tokens=1")
    totals = spot("plan", sweep, *arguments).out.splitlines()[-1]
    assert totals.startswith("1 cell, 1 with something to do: 2 work items, at most ")
    assert ", 1 model load on 1 worker, into" in totals


def test_a_long_list_is_cut_and_says_so(spot: Spot, sweep: Path) -> None:
    many = f"grid.seed={list(range(70))}"
    arguments = (many, "grid.drafter=none", "grid.temperature=1")
    assert "... and 10 more cells (--all lists them, --json has them)" in spot("plan", sweep, *arguments).out
    assert "more cells" not in spot("plan", sweep, "--all", *arguments).out
    assert len(planned(spot, sweep, *arguments)["cells"]) == 70


def test_a_console_without_unicode_is_not_fatal(sweep: Path) -> None:
    sweep.write_text("title: 'цена €'\n" + sweep.read_text(), encoding="utf-8")
    program = [sys.executable, "-m", "orchestrator.cli", "plan", "small.yaml"]
    env = {"PYTHONPATH": str(Path(__file__).parents[3]), "LC_ALL": "C", "PYTHONUTF8": "0"}
    ended = subprocess.run(program, capture_output=True, cwd=sweep.parent, env=env)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.isascii()
    assert b"\\u20ac" in ended.stdout


def test_a_directory_of_an_earlier_version_is_refused_by_every_command_in_the_same_line(
    spot: Spot, sweep: Path, stored: Path
) -> None:
    record = json.loads((stored / "provenance.json").read_bytes())
    (stored / "provenance.json").write_text(json.dumps(record | {"id_version": 1}))
    run = ("run", sweep, "--pool", "inline")
    lines = {
        ("plan", sweep),
        run,
        (*run, "--accept-changes"),
        *((name, stored) for name in ("report", "export", "sync")),
    }
    said = {spot(*line).err for line in lines}
    assert {spot(*line).code for line in lines} == {2}
    assert len({text.replace(str(stored), "runs/small") for text in said}) == 1
    assert "was made by an earlier version (cell ids of version 1, now" in said.pop()
