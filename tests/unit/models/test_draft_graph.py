import json
import subprocess
import sys
from pathlib import Path

import pytest

from sweeps.cell import digest_of
from tests.graphs import graph_of, write_wide_graph
from workers.models.draft_graph import inspect, parents_of, read_draft_graph, write_draft_graph
from workers.models.facts import OrderConfig

A, B, C = (0, 0), (1, 0), (2, 1)


def edit(folder: Path, *, sign: bool, **fields: object) -> None:
    """Change fields of a stored graph, with its digest made anew if `sign`."""
    raw = json.loads((folder / "graph.json").read_text()) | fields
    if sign:
        raw["digest"] = digest_of({name: value for name, value in raw.items() if name != "digest"})
    (folder / "graph.json").write_text(json.dumps(raw))


def test_a_node_has_as_many_parents_as_pairs() -> None:
    assert parents_of(frozenset([A, B, C])) == {frozenset([B, C]), frozenset([A, C]), frozenset([A, B])}
    assert parents_of(frozenset([A])) == {frozenset()}


def test_what_is_written_is_read_and_equal_graphs_are_equal_files(tmp_path: Path) -> None:
    graph = graph_of([[A], [B], [A, B], [A, B, C]])
    digests = [write_draft_graph(tmp_path / name, graph) for name in ("one", "two")]
    assert digests[0] == digests[1]
    assert (tmp_path / "one" / "graph.json").read_bytes() == (tmp_path / "two" / "graph.json").read_bytes()
    read = read_draft_graph(tmp_path / "one")
    assert (read.nodes, read.block_length, read.digest) == (graph.nodes, 8, digests[0])


def test_facts_are_path_digest_block_length_and_largest_budget(tmp_path: Path) -> None:
    facts = inspect(str(write_wide_graph(tmp_path / "g", block_length=12)))
    assert (facts.path, facts.block_length, facts.budget_max) == (tmp_path / "g", 12, 64)
    assert facts.digest == json.loads((tmp_path / "g" / "graph.json").read_text())["digest"]


def test_the_digest_depends_on_every_field(tmp_path: Path) -> None:
    folder = write_wide_graph(tmp_path, block_length=8)
    text = (folder / "graph.json").read_text()
    for name, value in json.loads(text).items():
        if name in ("format", "version", "digest"):
            continue
        edit(folder, sign=False, **{name: value + 1 if isinstance(value, int) else [*value, 1] if value == [] else "x"})
        with pytest.raises(ValueError, match=r"draft graph .*: digest is [0-9a-f]{12}, its graph.json says"):
            inspect(str(folder))
        (folder / "graph.json").write_text(text)
    inspect(str(folder))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "spot-order-model"}, "format is 'spot-order-model': allowed is 'spot-draft-graph'"),
        ({"version": 99}, "version is 99: allowed is 1"),
        ({"block_length": "8"}, "Expected `int`"),
        ({"nodes": []}, "it has 0 nodes"),
        ({"budget_max": 63}, "it has 64 nodes"),
        ({"block_length": 3}, "it fits no block"),
        ({"steps": 3}, "its counts are impossible"),
    ],
)
def test_foreign_or_contradictory_files_are_refused_in_one_line(
    tmp_path: Path, fields: dict[str, object], message: str
) -> None:
    folder = write_wide_graph(tmp_path, block_length=8)
    edit(folder, sign=True, **fields)
    with pytest.raises(ValueError, match=message) as caught:
        inspect(str(folder))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([[A], [A]], "node 1: it is there twice"),
        ([[A], [B, C]], "node 1: none of its parents comes before it"),
        ([[A, B], [A]], "node 0: none of its parents comes before it"),
        ([[(0, 0), (0, 1)]], "node 0: position ranks are"),
        ([[(0, 2)]], "node 0: a token rank is neither 0 nor 1"),
        ([[(7, 0)]], "node 0: it fits no block"),
        ([[(-1, 0)]], "node 0: it fits no block"),
        ([[]], "node 0: position ranks are"),
    ],
)
def test_nodes_must_be_a_connected_graph_of_ranks(sets: list[list[tuple[int, int]]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        graph_of(sets)


def test_a_graph_that_is_missing_or_no_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="draft graph: checkpoint is ''"):
        inspect("")
    with pytest.raises(ValueError, match=r"'nowhere' is neither a directory nor one of .*spiffy-tiny-sdar"):
        inspect("nowhere")
    with pytest.raises(ValueError, match=r"graph\.json is missing"):
        inspect(str(tmp_path))
    for text in ("", "[]", "{", "\xff"):
        (tmp_path / "graph.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(ValueError, match="is not a JSON object"):
            inspect(str(tmp_path))


def test_a_directory_of_an_order_model_is_no_draft_graph(tmp_path: Path) -> None:
    from workers.models.order_model import OrderModel, save_order_model

    save_order_model(OrderModel(OrderConfig(block_length=8, width=16, heads=2, feedforward=16)), tmp_path)
    with pytest.raises(ValueError, match=r"draft graph .*: graph\.json is missing"):
        inspect(str(tmp_path))


def test_planning_reads_a_graph_without_torch(tmp_path: Path) -> None:
    folder = write_wide_graph(tmp_path, block_length=8)
    reads = "import sys; from workers.models.draft_graph import inspect; inspect(sys.argv[1])"
    root = Path(__file__).parents[3]
    ended = subprocess.run(
        [sys.executable, "-c", f"{reads}; print('torch' in sys.modules)", str(folder)],
        capture_output=True,
        text=True,
        cwd=root,
        check=True,
    )
    assert ended.stdout == "False\n"
