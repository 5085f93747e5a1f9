"""`spot run` with lossy acceptance: outputs differ, nothing is called broken, and every file says lossy."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweeps.store import RunDir
from tests.pages import Page

Spot = Callable[..., Any]
FEW = (
    "measure.prompts=1",
    "measure.timed_prompts=0",
    "grid.budget=8",
    "grid.target=tiny-sdar",
    "grid.max_new_tokens=32",
)
RULE = ("grid.commit=threshold", "grid.tau=0.3", "grid.drafter=freedave", "grid.acceptance=[exact,product]")


@pytest.mark.slow
def test_a_run_whose_lossy_outputs_differ_ends_well_and_says_what_it_is(spot: Spot, sweep: Path) -> None:
    """At so low a tau the first prompt's output changes."""
    plan = json.loads(spot("plan", sweep, *FEW, *RULE, "--json").out)
    labels = {(cell["drafter"], cell["acceptance"]): cell["claim"] for cell in plan["cells"]}
    expected = {("none", "exact"): "lossless", ("freedave", "exact"): "lossless", ("freedave", "product"): "lossy"}
    assert labels == expected
    ended = spot("run", sweep, "--pool", "inline", *FEW, *RULE)
    assert ended.code == 0, ended.err
    run = RunDir(sweep.parent / "runs/small")
    with (run.report_data / "cells.csv").open() as file:
        cells = {(row["drafter"], row["acceptance"]): row for row in csv.DictReader(file)}
    assert {key: row["claim"] for key, row in cells.items()} == expected
    product, exact = cells["freedave", "product"], cells["freedave", "exact"]
    assert (float(product["identical"]), float(exact["identical"])) == (0, 1)
    assert (product["n_bugs"], product["claim_holds"], exact["n_bugs"], exact["claim_holds"]) == ("", "", "0", "True")
    with (run.report_data / "prompts.csv").open() as file:
        assert {row["verdict"] for row in csv.DictReader(file)} == {""}
    page = " ".join(Page(run.report.read_text()).texts)
    assert "freedave" in page
    assert "(lossy)" in page
    assert "BUG:" not in page
