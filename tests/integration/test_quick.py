"""The quick sweep with fewer prompts, as the README runs it: what it promises holds, and the report says so.

Two Ray workers, the shipped target and drafter, the real tasks. Forwards and identities do not depend on the machine;
no time is asserted.
"""

import csv
import json
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from tests.pages import Page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
PROMPTS = 3


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a finished quick sweep."""
    out = tmp_path_factory.mktemp("quick") / "run"
    again = (sys.executable, "-m", "orchestrator.cli", "run", "quick", f"measure.prompts={PROMPTS}")
    ended = subprocess.run((*again, "measure.timed_prompts=0", "--out", str(out)), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert str(out / "report.html") in ended.stdout + ended.stderr
    return out


@pytest.fixture(scope="module")
def rows(run: Path) -> list[dict[str, str]]:
    """One row a cell, through the command that a user has."""
    out = run / "cells.csv"
    subprocess.run((sys.executable, "-m", "orchestrator.cli", "export", str(run), "-o", str(out)), check=True)
    with out.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def points(rows: list[dict[str, str]]) -> list[tuple[tuple[str, ...], list[dict[str, str]]]]:
    """Rows by task, temperature and budget, draft-free ones left out."""

    def key(row: dict[str, str]) -> tuple[str, ...]:
        return row["task"], row["temperature"], row["budget"]

    return [
        (at, list(group)) for at, group in groupby(sorted((r for r in rows if r["drafter"] != "none"), key=key), key)
    ]


def test_every_generation_equals_draft_free_decoding_token_by_token(run: Path, rows: list[dict[str, str]]) -> None:
    assert len(rows) == 2 * 2 * (1 + 3 * 3)
    outputs: dict[tuple[str, ...], set[tuple[int, ...]]] = {}
    for cell in json.loads((run / "cells.json").read_text(encoding="utf-8")):
        at = cell["cell"]["task"]["name"], str(cell["cell"]["decode"]["temperature"])
        for path in (run / "results" / cell["cell_id"]).glob("*.json"):
            stored = json.loads(path.read_text(encoding="utf-8"))
            for row in stored["result"]["generations"]:
                outputs.setdefault((*at, row["prompt_id"]), set()).add(tuple(row["output_ids"]))
    assert len(outputs) == 2 * 2 * PROMPTS
    differing = {prompt for (_, _, prompt), different in outputs.items() if len(different) > 1}
    shown = Page((run / "report.html").read_text(encoding="utf-8")).text
    assert all(prompt in shown for prompt in differing)  # a near-tie of float32 is shown; anything else ended the run
    assert len(differing) <= 1


def test_spot_needs_fewer_forwards_than_ssd_in_every_cell(rows: list[dict[str, str]]) -> None:
    for at, group in points(rows):
        nfe = {row["drafter"]: float(row["nfe"]) for row in group}
        assert nfe["spot"] < nfe["ssd"], at


def test_spot_needs_two_and_a_half_times_fewer_forwards_than_draft_free(rows: list[dict[str, str]]) -> None:
    for row in rows:
        if (row["drafter"], row["budget"], float(row["temperature"])) == ("spot", "8", 0.0):
            assert float(row["nfe_draft_free"]) / float(row["nfe"]) >= 2.5, row["task"]


def test_the_report_shows_those_figures(run: Path, rows: list[dict[str, str]]) -> None:
    text = Page((run / "report.html").read_text(encoding="utf-8")).text
    for row in rows:
        if row["drafter"] == "spot":
            assert f"{float(row['nfe']):.1f}" in text
            assert f"{float(row['nfe_reduction']):.2f}" in text


def test_the_same_command_again_does_nothing(run: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    command = (sys.executable, "-m", "orchestrator.cli", "run", "quick", f"measure.prompts={PROMPTS}")
    subprocess.run((*command, "measure.timed_prompts=0", "--out", str(run)), check=True, capture_output=True)
    after = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    changed = {path.name for path in before if before[path] != after.get(path)}
    assert changed <= {"events.jsonl", "lock", "provenance.json"}
