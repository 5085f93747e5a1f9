"""The threshold rule on the command line: `spot decode --tau`, `spot train spiffy --tau`, the plan, a small run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweeps.spec import DecodeSpec, TargetSpec
from tests.graphs import write_wide_graph
from workers.decoding.noise import sample_seed
from workers.decoding.reference import reference
from workers.models.draft_graph import read_draft_graph
from workers.targets.load import load

Spot = Callable[..., Any]
TAU = 0.05  # the small untrained target is never sure of anything


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("drafter", ["none", "freedave", "spiffy"])
def test_decode_by_the_threshold_rule_gives_what_the_reference_gives(
    spot: Spot, models: Path, tmp_path: Path, drafter: str
) -> None:
    file = tmp_path / "ids.jsonl"
    file.write_text('{"ids": [3, 4, 5]}\n{"ids": []}\n')
    graph = write_wide_graph(tmp_path / "graph", block_length=32, tau=0.9)
    options = ["--checkpoint", graph] if drafter == "spiffy" else []
    command = ["decode", "--target", models / "target", "--drafter", drafter, "--ids-file", file]
    ended = spot(*command, "--max-new-tokens", 40, "--temperature", 1, "--tau", TAU, "--json", *options)
    assert ended.code == 0, ended.err
    target = load(TargetSpec(name="x", path=str(models / "target")), device="cpu")
    spec = DecodeSpec(max_new_tokens=40, temperature=1.0, commit="threshold", tau=TAU)
    for index, row in enumerate(lines(ended.out)):
        expected = reference(target, row["prompt_ids"], spec=spec, seed=sample_seed(0, str(index)))
        assert (row["output_ids"], row["order"]) == (list(expected.output_ids), list(expected.order))
        assert row["steps"] == list(expected.steps)
        assert row["rule"] == f"threshold {TAU}"
        assert max(row["steps"]) > 1
        assert row["counters"]["nfe"] <= expected.forwards < len(expected.output_ids)


def test_decode_shows_the_rule_and_refuses_what_cannot_be(spot: Spot, models: Path, tmp_path: Path) -> None:
    command = ["decode", "--target", models / "target", "--max-new-tokens", 40, "the word"]
    ended = spot(*command, "--drafter", "none", "--tau", TAU)
    assert ended.code == 0, ended.err
    assert f"commit rule threshold {TAU}: " in ended.out
    assert "commit rule" not in spot(*command, "--drafter", "none").out
    graph = write_wide_graph(tmp_path / "graph", block_length=32)
    for options, message in (
        (["--drafter", "ssd", "--tau", 0.9], "ssd drafts for the commit rule standard only"),
        (["--drafter", "none", "--tau", 1], "grid.tau is 1.0: allowed is a number above 0 and below 1"),
        (
            ["--drafter", "spiffy", "--checkpoint", graph, "--tau", 0.9],
            "its draft graph is for the commit rule standard",
        ),
    ):
        ended = spot(*command, *options)
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert message in ended.err


def test_a_graph_for_the_threshold_rule_is_calibrated_planned_and_run(
    spot: Spot, models: Path, sweep: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sets"
    command = ["train", "spiffy", "--target", models / "target", "--task", "tiny-arith", "--out", out, "--prompts", 3]
    few = ["--temperature", 0, "--max-new-tokens", 40, "--pool", "inline", "--budget-max", 6]
    ended = spot(*command, *few, "--tau", TAU)
    assert ended.code == 0, ended.err
    graph = read_draft_graph(out / "graph")
    assert (graph.commit, graph.tau) == ("threshold", TAU)
    other = spot(*command, *few)
    assert other.code == 2
    assert f"it was made with --tau {TAU} (here no --tau)" in other.err

    text = sweep.read_text().replace("drafter: [ssd, spot, floor]", "drafter: [ssd, freedave, spiffy]")
    text = text.partition("drafters:")[0] + f"  commit: [standard, threshold]\n  tau: [{TAU}, 0.1]\n"
    text += f"drafters:\n  spiffy: {{checkpoint: {out / 'graph'}}}\nmeasure: {{prompts: 1, timed_prompts: 0}}\n"
    sweep.write_text(text)
    ended = spot("plan", sweep, "--json")
    assert ended.code == 0, ended.err
    plan = json.loads(ended.out)
    rules = {(cell["drafter"], cell["commit"], cell["tau"]) for cell in plan["cells"]}
    assert rules == {
        *((name, "standard", None) for name in ("none", "ssd", "freedave")),
        *((name, "threshold", tau) for name in ("none", "freedave", "spiffy") for tau in (TAU, 0.1)),
    }
    reasons = [gone["reason"] for gone in plan["dropped"]]
    assert any("its draft graph is for the commit rule threshold" in reason for reason in reasons)
    assert "ssd drafts for the commit rule standard only" in reasons
    name = plan["cells"][0]["target"]
    assert f"drafter spiffy on {name}: its draft graph was made at tau {TAU}, and is used at 0.1" in plan["notes"]
    shown = spot("plan", sweep).out
    assert "threshold" in shown
    assert "0.05" in shown
