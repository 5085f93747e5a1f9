"""`spot train spiffy`, and what a sweep says to draft graphs that are missing, broken or made for something else."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.graphs import write_wide_graph
from tests.tiny_checkpoints import on_target
from workers.models.draft_graph import read_draft_graph, write_draft_graph

Spot = Callable[..., Any]
FEW = ["--prompts", 3, "--temperature", 0, "--max-new-tokens", 40, "--pool", "inline"]


def planned(spot: Spot, sweep: Path, *overrides: str) -> dict[str, Any]:
    """The plan as JSON."""
    ended = spot("plan", sweep, "--json", *overrides)
    assert ended.code == 0, ended.err
    plan: dict[str, Any] = json.loads(ended.out)
    return plan


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return write_wide_graph(tmp_path / "graph", block_length=32)


@pytest.fixture
def spiffy(sweep: Path, graph: Path) -> Path:
    """The small sweep with spiffy and its graph alone."""
    text = sweep.read_text().replace("drafter: [ssd, spot, floor]", "drafter: [spiffy]")
    kept = text.partition("drafters:")[0] + "drafters:\n  spiffy: {checkpoint: GRAPH}\n"
    sweep.write_text(kept.replace("GRAPH", str(graph)) + "measure: {prompts: 2, timed_prompts: 0}\n")
    return sweep


def test_a_graph_is_calibrated_again_without_collecting_and_drafts(spot: Spot, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "spiffy"
    command = ["train", "spiffy", *on_target(models), "--task", "tiny-arith", "--out", out]
    ended = spot(*command, *FEW, "--budget-max", 6)
    assert ended.code == 0, ended.err
    graph = read_draft_graph(out / "graph")
    told = f"{out / 'graph'}: {len(graph.nodes)} nodes, calibrated on 2 of 3 trajectories, judged on the others"
    assert told in ended.out
    assert "trajectories 3/3 (0 from before), failed 0" in ended.err
    assert (graph.block_length, graph.budget_max, graph.max_new_tokens) == (32, 6, 40)
    assert [(source.task, source.split, source.prompts) for source in graph.sources] == [("tiny-arith", "train", 3)]
    before = (out / "graph" / "graph.json").read_bytes()
    again = spot(*command, *FEW, "--budget-max", 6)
    assert "trajectories 3/3 (3 from before), failed 0" in again.err
    assert (out / "graph" / "graph.json").read_bytes() == before
    other = spot(*command, *FEW, "--budget-max", 6, "--task", "tiny-code")
    assert (other.code, other.out, other.err.count("\n")) == (2, "", 1)
    made = f"out is {str(out)!r}: it was made with --task tiny-arith (here --task tiny-arith --task tiny-code)"
    assert f"{made}: choose another --out, or delete {out} to start again" in other.err
    assert (out / "graph" / "graph.json").read_bytes() == before

    decode = ["decode", *on_target(models), "--drafter", "spiffy", "--checkpoint", out / "graph"]
    ended = spot(*decode, "--budget", 4, "--max-new-tokens", 40, "--json", "the word")
    assert ended.code == 0, ended.err
    counters = json.loads(ended.out)["counters"]
    assert max(counters["drafted"]) == min(4, len(graph.nodes))
    assert counters["nfe"] + sum(counters["accepted"]) == 40
    ended = spot(*decode, "--budget", 7, "--max-new-tokens", 40, "--json", "the word")
    assert ended.code == 2
    assert "its draft graph is for budgets up to 6" in ended.err
    more = spot(*command, "--prompts", 4, *FEW[2:], "--budget-max", 5)  # a graph is counted anew each time
    assert more.code == 0, more.err
    assert "trajectories 3/4 (3 from before)" in more.err
    assert read_draft_graph(out / "graph").budget_max == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prompts", 1], "prompts is 1: allowed is a whole number from 2"),
        (["--max-new-tokens", 2], "max_new_tokens is 2: allowed is a whole number from 3"),
        (["--max-new-tokens", 5000], "max_new_tokens is 5000: allowed is a number below the 2048 positions"),
        (["--block-length", 2], "block_length is 2: allowed is a whole number from 3"),
        (["--budget-max", 0], "budget_max is 0: allowed is a whole number from 1"),
        (["--temperature", 1, "--temperature", 1], "temperatures is (1.0, 1.0): allowed is one or more, each once"),
        (["--task", "tiny-arith"], "tasks is ('tiny-arith', 'tiny-arith'): allowed is one or more, each once"),
        (["--task", "tiny-codes"], "unknown task 'tiny-codes'"),
        (["--seed", -1], "seed is -1"),
        (["--dtype", "int8"], "dtype is 'int8'"),
    ],
)
def test_bad_requests_are_refused_in_one_line_before_any_work(
    spot: Spot, models: Path, tmp_path: Path, options: list[Any], message: str
) -> None:
    out = tmp_path / "spiffy"
    ended = spot(
        "train", "spiffy", *on_target(models), "--task", "tiny-arith", "--out", out, "--pool", "inline", *options
    )
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert not out.exists()


def test_more_prompts_than_a_task_has_are_refused(spot: Spot, models: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps({"question": f"{n}?", "answer": "1"}) + "\n" for n in range(3)))
    out, few = tmp_path / "spiffy", [*FEW, "--prompts", 4]
    ended = spot("train", "spiffy", *on_target(models), "--task", f"jsonl:{file}", "--out", out, *few)
    assert (ended.code, out.exists()) == (2, False)
    assert "prompts is 4: allowed is a whole number up to the 3 of jsonl:" in ended.err


@pytest.mark.parametrize("inside", ["", "graph", "traces"])
def test_a_file_where_a_directory_must_be_is_left_alone(spot: Spot, models: Path, tmp_path: Path, inside: str) -> None:
    out = tmp_path / "out"
    file = out / inside if inside else out
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    ended = spot("train", "spiffy", *on_target(models), "--task", "tiny-arith", "--out", out, *FEW)
    assert (ended.code, ended.out) == (2, "")
    assert f"{file} is no directory: choose another --out" in ended.err
    assert file.read_text() == "mine"


def test_a_prompt_without_a_trajectory_is_told_and_the_rest_is_calibrated(
    spot: Spot, models: Path, tmp_path: Path
) -> None:
    rows = [{"question": "how many? " * (700 if index == 1 else 1), "answer": "1"} for index in range(4)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out, few = tmp_path / "spiffy", [*FEW, "--prompts", 4]
    ended = spot("train", "spiffy", *on_target(models), "--task", f"jsonl:{file}", "--out", out, *few)
    assert ended.code == 1
    assert "no trajectory of prompt 1: ValueError" in ended.err
    assert read_draft_graph(out / "graph").sources[0].prompts == 3


@pytest.mark.slow
def test_a_sweep_over_a_graph_runs_and_its_cells_name_it(spot: Spot, spiffy: Path, graph: Path) -> None:
    cells = planned(spot, spiffy)["cells"]
    assert [(cell["drafter"], cell["budget"]) for cell in cells] == [("none", 0), ("spiffy", 2), ("spiffy", 4)]
    assert spot("run", spiffy, "--pool", "inline").code == 0
    (jobs,) = (json.loads(path.read_bytes()) for path in (spiffy.parent / "runs" / "small").glob("cells.json"))
    digests = {job["cell"]["drafter"]["digest"] for job in jobs if job["cell"]["drafter"]["kind"] == "spiffy"}
    assert digests == {read_draft_graph(graph).digest}


def test_another_graph_is_other_work(spot: Spot, spiffy: Path, graph: Path) -> None:
    before = [cell["cell_id"] for cell in planned(spot, spiffy)["cells"]]
    other = write_wide_graph(graph.parent / "other", block_length=32)
    assert [cell["cell_id"] for cell in planned(spot, spiffy, f"drafters.spiffy.checkpoint={other}")["cells"]] == before
    whole = read_draft_graph(other)
    write_draft_graph(other, replace(whole, nodes=whole.nodes[:-1]))
    after = [cell["cell_id"] for cell in planned(spot, spiffy, f"drafters.spiffy.checkpoint={other}")["cells"]]
    assert after[0] == before[0]  # draft-free
    assert not set(after[1:]) & set(before)


def test_a_target_without_a_graph_drops_its_cells_and_says_how_to_make_one(spot: Spot, spiffy: Path) -> None:
    spiffy.write_text(spiffy.read_text().partition("drafters:")[0].replace("[spiffy]", "[ssd, spiffy]"))
    plan = planned(spot, spiffy)
    assert {cell["drafter"] for cell in plan["cells"]} == {"none", "ssd"}
    (dropped,) = plan["dropped"]
    make, _, other = dropped["reason"].rpartition(", or use ")
    assert make.startswith("no draft graph is known for rand: make one (spot train spiffy --target ")
    shipped = "spiffy-tiny-sdar | spiffy-tiny-sdar-s | spiffy-tiny-llada2 | spiffy-tiny-llada | spiffy-tiny-dream"
    assert other == f"one that was made on another target (shipped: {shipped}): drafters.spiffy.checkpoint=NAME"
    ended = spot("plan", spiffy, "grid.drafter=[spiffy]")
    assert ended.code == 2
    assert "no cell is left to run" in ended.err


def test_a_graph_for_other_blocks_or_smaller_budgets_drops_those_cells(spot: Spot, spiffy: Path) -> None:
    plan = planned(spot, spiffy, "grid.block_length=[32,16]", "grid.budget=[4,65]")
    variants = [cell for cell in plan["cells"] if cell["budget"]]
    assert [(cell["block_length"], cell["budget"]) for cell in variants] == [(32, 4)]
    reasons = {dropped["reason"]: dropped["count"] for dropped in plan["dropped"]}
    assert reasons == {"its draft graph is for blocks of 32": 2, "its draft graph is for budgets up to 64": 1}


@pytest.mark.parametrize("command", ["plan", "run"])
def test_missing_foreign_and_altered_graphs_stop_a_sweep_before_it_starts(
    spot: Spot, spiffy: Path, graph: Path, models: Path, command: str
) -> None:
    file = graph / "graph.json"
    whole = file.read_text()

    def refused(message: str, *overrides: str) -> None:
        ended = spot(command, spiffy, *overrides)
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert "drafter spiffy for rand: draft graph" in ended.err
        assert message in ended.err
        assert not (spiffy.parent / "runs").exists()

    refused("checkpoint 'nowhere' is neither a directory nor one of", "drafters.spiffy.checkpoint=nowhere")
    refused("graph.json is missing", f"drafters.spiffy.checkpoint={models / 'order'}")
    file.write_text(whole.replace('"count":128', '"count":127'))
    assert file.read_text() != whole
    refused("digest is ")
    file.write_text(whole[:-9])
    refused("is not a JSON object")
    file.write_text(whole.replace("spot-draft-graph", "other"))
    refused("format is 'other': allowed is 'spot-draft-graph'")
