"""The threshold rule on the command line: `spot decode --tau`, `spot train spiffy --tau`, the plan, a small run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest

from sweeps.spec import DecodeSpec, TargetSpec
from tests.graphs import write_wide_graph
from workers.catalog import TARGETS
from workers.decoding.noise import sample_seed
from workers.decoding.reference import reference
from workers.models.draft_graph import read_draft_graph
from workers.targets.load import load

Spot = Callable[..., Any]
TAU = 0.9


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("drafter", ["none", "freedave", "spiffy"])
def test_decode_by_the_threshold_rule_gives_what_the_reference_gives(spot: Spot, tmp_path: Path, drafter: str) -> None:
    file = tmp_path / "ids.jsonl"
    file.write_text('{"ids": [3, 4, 5]}\n{"ids": [30]}\n')
    graph = write_wide_graph(tmp_path / "graph", block_length=32, tau=0.9)
    options = ["--checkpoint", graph] if drafter == "spiffy" else []
    command = ["decode", "--target", "tiny-sdar", "--drafter", drafter, "--ids-file", file]
    ended = spot(*command, "--max-new-tokens", 40, "--temperature", 1, "--tau", TAU, "--json", *options)
    assert ended.code == 0, ended.err
    target = load(TargetSpec(name="x", path=TARGETS["tiny-sdar"].path), device="cpu")
    spec = DecodeSpec(max_new_tokens=40, temperature=1.0, commit="threshold", tau=TAU)
    for index, row in enumerate(lines(ended.out)):
        expected = reference(target, row["prompt_ids"], spec=spec, seed=sample_seed(0, str(index)))
        assert (row["output_ids"], row["order"]) == (list(expected.output_ids), list(expected.order))
        assert row["steps"] == list(expected.steps)
        assert row["rule"] == f"threshold {TAU}"
        assert max(row["steps"]) > 1
        assert row["counters"]["nfe"] <= expected.forwards < len(expected.output_ids)


def test_decode_shows_the_rule_and_refuses_what_cannot_be(spot: Spot, tmp_path: Path) -> None:
    command = ["decode", "--target", "tiny-sdar", "--max-new-tokens", 40, "the word"]
    ended = spot(*command, "--drafter", "none", "--tau", TAU)
    assert ended.code == 0, ended.err
    assert f"commit rule threshold {TAU}: " in ended.out
    assert "commit rule" not in spot(*command, "--drafter", "none").out
    graph = write_wide_graph(tmp_path / "graph", block_length=32)
    for options, message in (
        (["--drafter", "ssd", "--tau", 0.9], "ssd drafts for the commit rule standard only"),
        (["--drafter", "none", "--tau", 1], "--tau is 1.0: allowed is a number above 0 and below 1"),
        (
            ["--drafter", "spiffy", "--checkpoint", graph, "--tau", 0.9],
            "its draft graph is for the commit rule standard",
        ),
    ):
        ended = spot(*command, *options)
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert message in ended.err


def test_a_plan_tells_cells_apart_by_how_drafts_are_verified(
    spot: Spot, sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one drafter that differ in nothing but the acceptance rule are not the same row four times."""
    monkeypatch.setenv("COLUMNS", "200")
    axes = ["grid.commit=threshold", "grid.acceptance=[exact,subset,product]", "grid.budget=4"]
    plan = [
        "plan",
        sweep,
        *axes,
        "grid.drafter=[none,freedave,most]",
        "drafters={most: {kind: freedave, max_commit: true}}",
    ]
    cells = json.loads(spot(*plan, "--json").out)["cells"]
    expected = [
        ("none", "exact", False, "lossless"),
        ("freedave", "exact", False, "lossless"),
        ("freedave", "subset", False, "lossy"),
        ("freedave", "product", False, "lossy"),
        ("most", "subset", True, "lossy"),
        ("most", "product", True, "lossy"),
    ]
    assert [(cell["drafter"], cell["acceptance"], cell["max_commit"], cell["claim"]) for cell in cells] == expected
    assert not any(cell["cross_block"] or cell["refresh"] for cell in cells)
    rows = [line.split("│") for line in spot(*plan).out.replace("┃", "│").splitlines() if line.count("│") > 4]
    (column,) = [at for at, name in enumerate(rows[0]) if name.strip() == "verified by"]
    shown = [row[column].strip() for row in rows[1:]]
    assert shown == ["-", "exact", "subset", "product", "subset, max-commit", "product, max-commit"]
    assert "verified by" not in spot("plan", sweep).out


def test_steps_of_another_rule_than_exact_are_shown_as_lossy(spot: Spot) -> None:
    command = [
        "decode",
        "--target",
        "tiny-sdar",
        "--drafter",
        "freedave",
        "--tau",
        0.9,
        "--max-new-tokens",
        40,
        "the word",
    ]
    lossy = spot(*command, "--acceptance", "product", "--max-commit")
    assert lossy.code == 0, lossy.err
    rule = "LOSSY: steps were accepted by the rule product, of all paths the one with the most commits"
    assert f"{rule}: the output may be another than draft-free decoding's\n" in lossy.out
    assert "claim: lossy" in lossy.out
    plain = spot(*command).out
    assert "LOSSY" not in plain
    assert "claim: lossless" in plain
    (row,) = lines(spot(*command, "--acceptance", "subset", "--json").out)
    assert (row["acceptance"], row["max_commit"], row["claim"]) == ("subset", False, "lossy")
    assert (row["cross_block"], row["refresh"]) == (False, False)


BAD = [
    (
        ["--drafter", "freedave", "--acceptance", "product"],
        "accepts steps of threshold decoding",
        "--tau 0.9 (the rule threshold)",
    ),
    (
        ["--drafter", "freedave", "--tau", 0.9, "--acceptance", "produkt"],
        "'produkt' is not one of 'exact', 'subset'",
        "",
    ),
    (
        ["--drafter", "freedave", "--tau", 0.9, "--cross-block"],
        "drafters.freedave.cross_block: freedave does not use it",
        "",
    ),
    (
        ["--drafter", "freedave", "--tau", 0.9, "--acceptance", "cut", "--verify-margin", 0.1],
        "acceptance is 'cut': allowed is exact with a verify_margin",
        "",
    ),
]


@pytest.mark.parametrize(("options", "message", "way_out"), BAD)
def test_options_that_cannot_go_together_are_one_line(
    spot: Spot, options: list[str], message: str, way_out: str
) -> None:
    ended = spot("decode", "--target", "tiny-sdar", "--max-new-tokens", 8, "word", *options)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert message in ended.err
    assert way_out in ended.err


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "grid.acceptance=produkt",
            "grid.acceptance is 'produkt': allowed is exact | subset | cut | product; did you mean product?",
        ),
        ("grid.acceptence=product", "unknown key grid.acceptence: allowed are"),
        ("drafters.freedave.max_comit=true", "drafters.freedave.max_comit"),
        (
            "drafters.freedave.acceptance=1",
            "drafters.freedave.acceptance is 1: allowed is exact | subset | cut | product",
        ),
        ("drafters.freedave.max_commit=2", "drafters.freedave.max_commit is 2: allowed is true or false"),
    ],
)
def test_misspelt_options_of_a_sweep_name_the_field_and_the_nearest(
    spot: Spot, sweep: Path, override: str, message: str
) -> None:
    ended = spot("plan", sweep, "grid.drafter=[none,freedave]", "grid.commit=threshold", override)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert message in ended.err


def test_a_graph_for_the_threshold_rule_is_calibrated_planned_and_run(
    spot: Spot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "sets"
    command = ["train", "spiffy", "--target", "tiny-sdar", "--task", "tiny-arith", "--out", out, "--prompts", 3]
    few = ["--temperature", 0, "--max-new-tokens", 40, "--pool", "inline", "--budget-max", 6]
    ended = spot(*command, *few, "--tau", TAU)
    assert ended.code == 0, ended.err
    graph = read_draft_graph(out / "graph")
    assert (graph.commit, graph.tau) == ("threshold", TAU)
    other = spot(*command, *few)
    assert other.code == 2
    assert f"it was made with --tau {TAU} (here no --tau)" in other.err

    sweep = tmp_path / "rules.yaml"
    sweep.write_text(
        f"""\
name: rules
grid:
  target: tiny-sdar
  task: tiny-arith
  drafter: [ssd, freedave, spiffy]
  budget: 4
  max_new_tokens: 40
  commit: [standard, threshold]
  tau: [{TAU}, 0.5]
drafters:
  spiffy: {{checkpoint: {out / "graph"}}}
measure: {{prompts: 1, timed_prompts: 0}}
"""
    )
    ended = spot("plan", sweep, "--json")
    assert ended.code == 0, ended.err
    plan = json.loads(ended.out)
    rules = {(cell["drafter"], cell["commit"], cell["tau"]) for cell in plan["cells"]}
    assert rules == {
        *((name, "standard", None) for name in ("none", "ssd", "freedave")),
        *((name, "threshold", tau) for name in ("none", "freedave", "spiffy") for tau in (TAU, 0.5)),
    }
    reasons = [gone["reason"] for gone in plan["dropped"]]
    assert any("its draft graph is for the commit rule threshold" in reason for reason in reasons)
    assert "ssd drafts for the commit rule standard only" in reasons
    assert f"drafter spiffy on tiny-sdar: its draft graph was made at tau {TAU}, and is used at 0.5" in plan["notes"]
    shown = spot("plan", sweep).out
    assert all(word in shown for word in ("threshold", str(TAU), "0.5"))

    ended = spot("run", sweep, "--pool", "inline")
    assert ended.code == 0, ended.err
    cells = pandas.read_csv(next(tmp_path.glob("runs/rules/**/cells.csv")))
    sets = cells[cells.commit == "threshold"]
    assert {*sets.tau} == {TAU, 0.5}
    assert cells[cells.commit == "standard"].tau.isna().all()
    assert (sets[sets.drafter != "none"].nfe <= sets[sets.drafter != "none"].nfe_draft_free).all()
    assert (sets.nfe < 40).all()
    page = next(tmp_path.glob("runs/rules/**/report.html")).read_text()
    assert "commit rule threshold 0.9" in page
    assert "commit rule standard" in page
    assert spot("run", sweep, "--pool", "inline").code == 0  # nothing is missing
