"""The shipped draft graph is for the shipped target and tasks, and its card is its own."""

from pathlib import Path

import pytest

from sweeps.spec import TaskSpec
from workers.catalog import TARGETS, TASKS, ZOO, resolve
from workers.models.draft_graph import inspect, read_draft_graph
from workers.targets.inspect import inspect_checkpoint
from workers.training.spiffy_card import readme

WITH_GRAPH = sorted(name for name, entry in TARGETS.items() if "draft_graph" in entry.artifacts)


def test_tiny_sdar_has_one() -> None:
    assert "tiny-sdar" in WITH_GRAPH


@pytest.mark.parametrize("name", WITH_GRAPH)
def test_a_shipped_graph_is_the_one_its_card_describes(name: str) -> None:
    folder = Path(TARGETS[name].artifacts["draft_graph"])
    graph, facts = read_draft_graph(folder), inspect(folder.name)  # by its name in the zoo
    assert (facts.digest, facts.path) == (graph.digest, folder)
    assert graph.target_digest == inspect_checkpoint(ZOO / name).weight_digest
    assert (folder / "README.md").read_text(encoding="utf-8") == readme(graph)
    assert len(graph.nodes) == graph.budget_max == 64
    assert {(source.task, source.temperature) for source in graph.sources} == {
        (task, temperature) for task in ("tiny-arith", "tiny-code") for temperature in (0.0, 1.0)
    }
    for source in graph.sources:
        spec = TaskSpec(name=source.task, kind=source.task, split="train")
        assert source.task_digest == resolve(TASKS[source.task].digest)(spec)
        assert (source.split, source.prompts) == ("train", 32)


@pytest.mark.parametrize("name", WITH_GRAPH)
def test_more_nodes_never_accept_fewer_drafts_on_held_out_prompts(name: str) -> None:
    rows = read_draft_graph(Path(TARGETS[name].artifacts["draft_graph"])).held_out
    for group in {(row.task, row.temperature) for row in rows}:
        own = sorted((row for row in rows if (row.task, row.temperature) == group), key=lambda row: row.budget)
        assert [row.budget for row in own] == [1, 2, 4, 8, 12, 16, 20, 32, 64]
        assert [row.accepted for row in own] == sorted(row.accepted for row in own)
        assert [row.forwards for row in own] == sorted((row.forwards for row in own), reverse=True)
        assert own[0].forwards < own[0].tokens
