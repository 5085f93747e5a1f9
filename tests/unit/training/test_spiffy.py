"""Calibration from trajectories: ranks, what is held out, and that the forwards it foretells are those of decoding."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from sweeps.spec import DrafterSpec
from tests.toys import ToyTarget
from tests.traces import toy_cell, toy_trace, write_traces
from workers.decoding.loop import decode
from workers.decoding.noise import sample_seed
from workers.drafters.spiffy import make
from workers.models.draft_graph import DraftGraph, inspect, read_draft_graph
from workers.replay.trace import Trace
from workers.training.spiffy import calibrate, chain_of, forwards, futures_of
from workers.training.spiffy_recipe import SpiffyRecipe

LENGTH, NEW = 8, 21
TARGET = ToyTarget(vocab_size=40, drift=0.15)
TEXTS = ["", "abc", "defgh", "ij", "klmnopqrs", "t", "uvwx", "yz"]
RECIPE = SpiffyRecipe(budget_max=24, held_out=0.25)
TAU = 0.5


def trace_of(index: int, temperature: float, **options: object) -> Trace:
    cell = toy_cell(temperature=temperature, length=LENGTH, new=NEW, **options)  # type: ignore[arg-type]
    return toy_trace(TARGET, cell, index, prompt=TEXTS[index])


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return [trace_of(index, temperature) for temperature in (0.0, 1.0) for index in range(len(TEXTS))]


@pytest.fixture(scope="module")
def paths(traces: list[Trace], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_traces(tmp_path_factory.mktemp("traces"), traces)


@pytest.fixture(scope="module")
def graph(paths: list[Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[DraftGraph, Path]:
    folder = tmp_path_factory.mktemp("graph")
    return calibrate(paths, RECIPE, out_dir=folder), folder


@pytest.fixture(scope="module")
def sets() -> list[Trace]:
    """The same prompts by the threshold rule."""
    return [trace_of(index, temperature, tau=TAU) for temperature in (0.0, 1.0) for index in range(len(TEXTS))]


@pytest.fixture(scope="module")
def sets_graph(sets: list[Trace], tmp_path_factory: pytest.TempPathFactory) -> tuple[DraftGraph, Path]:
    folder = tmp_path_factory.mktemp("sets")
    return calibrate(write_traces(folder / "traces", sets), RECIPE, out_dir=folder / "graph"), folder / "graph"


def held_out(traces: list[Trace], temperature: float) -> list[Trace]:
    """The quarter of the prompts with the smallest hashes of their ids."""
    from hashlib import sha256

    own = [trace for trace in traces if trace.header.decode.temperature == temperature]
    return sorted(own, key=lambda trace: sha256(trace.header.prompt_id.encode()).hexdigest())[: len(own) // 4]


def test_chains_are_the_next_commits_as_ranks_at_the_stale_distribution(traces: list[Trace]) -> None:
    lengths, cut = set(), 0
    for trace in traces:
        for step in range(len(trace)):
            state = trace.steps[step].state
            last = step + len(state.open)
            if len(state.open) < 3:
                continue
            stale, root = trace.stale(step), state.fill(trace.commits[step])
            chain = chain_of(trace, step, last)
            order = stale.logodds_L[list(root.open)].sort(descending=True, stable=True).indices.tolist()
            told = [(root.open[order[rank]], token) for ((rank, token),) in chain]
            true = trace.commits[step + 1 : last - 1]
            for (position, token), commit in zip(told, true, strict=False):
                assert position == commit.position
                assert int(stale.drawn_ids_L2[position, token]) == commit.token
            if len(chain) < len(true):
                cut += 1
                missed = true[len(chain)]
                assert missed.token not in stale.drawn_ids_L2[missed.position].tolist()
            lengths.add(len(chain))
    assert cut > 0
    assert {0, LENGTH - 2} <= lengths


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("budget", [1, 4, 12])
def test_replayed_forwards_are_those_of_decoding_the_held_out_prompts(
    traces: list[Trace], graph: tuple[DraftGraph, Path], temperature: float, budget: int
) -> None:
    spec = DrafterSpec(name="spiffy", kind="spiffy", budget=budget, checkpoint=str(graph[1]))
    drafter, nfe, tokens = make(spec, block_length=LENGTH), 0, 0
    for trace in held_out(traces, temperature):
        header = trace.header
        seed = sample_seed(header.seed, header.prompt_id)
        generation = decode(TARGET, drafter, header.prompt_ids, spec=header.decode, seed=seed)
        assert len(generation.order) == len(trace)
        nfe, tokens = nfe + generation.counters.nfe, tokens + len(trace)
    (row,) = (row for row in graph[0].held_out if (row.temperature, row.budget) == (temperature, budget))
    assert (row.forwards, row.tokens) == (nfe, tokens)
    assert row.forwards < row.tokens


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("budget", [1, 4, 12])
def test_replayed_forwards_by_the_threshold_rule_are_those_of_decoding(
    sets: list[Trace], sets_graph: tuple[DraftGraph, Path], temperature: float, budget: int
) -> None:
    spec = DrafterSpec(name="spiffy", kind="spiffy", budget=budget, checkpoint=str(sets_graph[1]))
    drafter, nfe, free = make(spec, block_length=LENGTH), 0, 0
    for trace in held_out(sets, temperature):
        header = trace.header
        seed = sample_seed(header.seed, header.prompt_id)
        generation = decode(TARGET, drafter, header.prompt_ids, spec=header.decode, seed=seed)
        assert generation.steps == tuple(map(len, trace.taken))
        nfe, free = nfe + generation.counters.nfe, free + len(trace)
    (row,) = (row for row in sets_graph[0].held_out if (row.temperature, row.budget) == (temperature, budget))
    assert (row.forwards, row.draft_free, row.tokens) == (nfe, free, 2 * NEW)
    assert row.forwards <= row.draft_free < row.tokens


def test_a_graph_for_the_threshold_rule_says_so_and_has_nodes_of_whole_steps(
    sets: list[Trace], sets_graph: tuple[DraftGraph, Path], graph: tuple[DraftGraph, Path]
) -> None:
    found, folder = sets_graph
    assert read_draft_graph(folder) == found
    assert (found.tau, found.commit, graph[0].tau, graph[0].commit) == (TAU, "threshold", None, "standard")
    facts = [inspect(str(one)) for one in (folder, graph[1])]
    assert [(one.commit, one.tau) for one in facts] == [("threshold", TAU), ("standard", None)]
    text = (folder / "README.md").read_text()
    assert f"- commit rule: threshold, tau {TAU};" in text
    assert "of those that draft-free decoding by the same rule takes" in text
    chains = [chain for trace in sets for chain in futures_of(trace, 9).chains.values() if chain]
    nodes = {node.key for node in found.nodes}
    assert any(len(chain[0]) > 1 and frozenset(chain[0]) in nodes for chain in chains), "a step of several is a node"
    assert "tau" not in (graph[1] / "graph.json").read_text(), "files of the standard rule are as they were"


def test_trajectories_of_two_rules_make_no_graph(traces: list[Trace], sets: list[Trace], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"001\.trace: tau is 0\.5: the others have None \(None: standard rule\)"):
        calibrate(write_traces(tmp_path, [traces[0], sets[1]]), RECIPE, out_dir=tmp_path / "graph")


def test_without_a_graph_there_is_a_forward_a_token(traces: list[Trace]) -> None:
    assert [forwards(futures_of(trace, 9), ()) for trace in traces] == [len(trace) for trace in traces]


def test_provenance_and_what_was_counted(traces: list[Trace], graph: tuple[DraftGraph, Path]) -> None:
    found, folder = graph
    assert read_draft_graph(folder) == found
    assert [(s.task, s.temperature, s.prompts, s.held_out) for s in found.sources] == [
        ("toy", 0.0, 8, 2),
        ("toy", 1.0, 8, 2),
    ]
    assert (found.target, found.target_digest, found.dtype, found.seed) == ("toy", "toy-0", "float64", 3)
    assert (found.block_length, found.max_new_tokens, found.budget_max, found.traces) == (LENGTH, NEW, 24, 12)
    kept_out = {trace.header.prompt_id for trace in held_out(traces, 0.0)}
    counted = [trace for trace in traces if trace.header.prompt_id not in kept_out]
    assert found.steps == sum(len(step.state.open) >= 3 for trace in counted for step in trace.steps)
    assert max(node.count for node in found.nodes) == found.nodes[0].count
    text = (folder / "README.md").read_text()
    assert "| 1 | 0.0 | 1 |" in text
    assert f"digest `{found.digest[:16]}`" in text


def test_the_same_trajectories_give_the_same_file_whatever_their_files_and_cells_are_called(
    traces: list[Trace], graph: tuple[DraftGraph, Path], tmp_path: Path
) -> None:
    renamed = [replace(trace, header=msgspec.structs.replace(trace.header, cell_id="other")) for trace in traces[::-1]]
    calibrate(write_traces(tmp_path / "traces", renamed), RECIPE, out_dir=tmp_path / "graph")
    for name in ("graph.json", "README.md"):
        assert (tmp_path / "graph" / name).read_bytes() == (graph[1] / name).read_bytes()


def test_another_held_out_trajectory_is_other_data(
    traces: list[Trace], graph: tuple[DraftGraph, Path], tmp_path: Path
) -> None:
    (one, *_) = held_out(traces, 0.0)
    others = [trace for trace in traces if trace is not one]
    found = calibrate(write_traces(tmp_path / "traces", others), RECIPE, out_dir=tmp_path / "graph")
    assert found.nodes == graph[0].nodes
    assert found.data_digest != graph[0].data_digest


def test_trajectories_that_do_not_belong_together_are_refused(traces: list[Trace], tmp_path: Path) -> None:
    mixed = write_traces(tmp_path, [traces[0], trace_of(1, 0.0, seed=4)])
    with pytest.raises(ValueError, match=r"001\.trace: target, .* and seed are .*, 4\): the others have .*, 3\)"):
        calibrate(mixed, RECIPE, out_dir=tmp_path / "graph")
    assert not (tmp_path / "graph").exists()


def test_too_little_to_count_is_refused(traces: list[Trace], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="traces: none given"):
        calibrate([], RECIPE, out_dir=tmp_path)
    with pytest.raises(ValueError, match="1 prompts of toy: at least 2 are needed"):
        calibrate(write_traces(tmp_path / "one", [traces[1], traces[9]]), RECIPE, out_dir=tmp_path)
    short = [toy_trace(TARGET, toy_cell(length=LENGTH, new=2), index, prompt="abcdefgh") for index in range(2)]
    with pytest.raises(ValueError, match="nothing to count in 2 trajectories"):
        calibrate(write_traces(tmp_path / "short", short), RECIPE, out_dir=tmp_path)


def test_a_trajectory_that_ends_within_a_block_is_refused(traces: list[Trace]) -> None:
    whole = traces[0]
    rows = whole.rows[-2]
    arrays = {
        name: array[: len(whole) - 1] if name in ("positions", "tokens", "margins") else array[:rows]
        for name, array in whole.arrays.items()
    }
    with pytest.raises(ValueError, match="it ends within a block"):
        futures_of(Trace.of(whole.header, arrays), 9)
    assert futures_of(replace(whole), 9).blocks[-1][1] == len(whole)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget_max": 0}, "budget_max is 0: allowed is a whole number from 1 to 4096"),
        ({"budget_max": 5000}, "budget_max is 5000"),
        ({"held_out": 0.0}, r"held_out is 0\.0: allowed is a share"),
        ({"held_out": 1.0}, r"held_out is 1\.0"),
    ],
)
def test_recipes_that_make_no_sense(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SpiffyRecipe(**options)  # type: ignore[arg-type]
