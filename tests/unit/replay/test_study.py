"""The observation study against a recount from the arrays of a trace, and against training's own evaluation."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.spec import DecodeSpec, Noise, TargetSpec, TaskSpec
from sweeps.study import LOOK_AHEADS, TOPS, StudyRecord
from tests.toys import ToyTarget, coarse_target
from tests.traces import toy_cell, toy_trace, write_traces
from workers.catalog import ZOO
from workers.models.facts import OrderConfig
from workers.models.order_model import OrderModel, load_order_model
from workers.replay.record import record
from workers.replay.study import study
from workers.replay.trace import Trace
from workers.training.order_accuracy import judge
from workers.training.order_data import Trajectories

LENGTH = 8


def a_model(seed: int = 0) -> OrderModel:
    torch.manual_seed(seed)
    return OrderModel(OrderConfig(block_length=LENGTH, layers=1, width=16, heads=2, feedforward=16)).eval()


def a_trace(
    *, temperature: float = 0.0, noise: Noise = "coupled", prompt: str = "abc", coarse: bool = False, index: int = 0
) -> Trace:
    """Blocks of 8 behind a prompt that fills part of the first one; the last block is not filled to its end."""
    target = coarse_target(vocab_size=45) if coarse else ToyTarget(vocab_size=45, drift=0.6)
    cell = toy_cell(temperature=temperature, length=LENGTH, new=21)
    return toy_trace(target, replace(cell, decode=replace(cell.decode, noise=noise)), index, prompt=prompt)


def recount(trace: Trace) -> dict[str, Counter]:
    """What a study should count, by (look-ahead, index), from the commits and the rows of the arrays alone.

    Block borders come from the number of positions and the block length; nothing of the study or of `Stale` is used.
    """
    header, a = trace.header, trace.arrays
    positions, tokens, L = a["positions"].tolist(), a["tokens"].tolist(), header.decode.block_length
    begin, end = len(header.prompt_ids), len(header.prompt_ids) + header.decode.max_new_tokens
    counts = {name: Counter() for name in ("asked", "drawn", "by_confidence", *TOPS)}
    row, step, block = 0, 0, begin // L
    while step < len(positions):
        fillable = [i for i in range(L) if begin <= block * L + i < end]
        n = len(fillable)
        for s in range(n):  # the s-th commit of this block
            masked = sorted(set(fillable) - set(positions[step : step + s]))
            rows = {position: row + i for i, position in enumerate(masked)}
            row += len(masked)
            for k in range(1, LOOK_AHEADS + 1):
                left = sorted(set(masked) - set(positions[step + s : step + s + k]))
                if len(left) < 2:
                    break
                where, what, at = positions[step + s + k], tokens[step + s + k], (k, s + k)
                counts["asked"][at] += 1
                for top in TOPS:
                    counts[top][at] += what in a["ids"][rows[where]][:top].tolist()
                counts["drawn"][at] += int(a["drawn_ids"][rows[where]][0]) == what
                best = max(a["logodds"][rows[position]] for position in left)
                counts["by_confidence"][at] += where == min(p for p in left if a["logodds"][rows[p]] == best)
        step, block = step + n, block + 1
    assert row == len(a["logodds"])
    return counts


def assert_is(record: StudyRecord, expected: dict[str, Counter]) -> None:
    grids = {"asked": record.asked, "drawn": record.drawn, "by_confidence": record.by_confidence}
    grids |= dict(zip(TOPS, record.in_top, strict=True))
    for name, grid in grids.items():
        found = {(k + 1, b): n for k, row in enumerate(grid) for b, n in enumerate(row) if n}
        assert found == {at: n for at, n in expected[name].items() if n}, name


@pytest.mark.parametrize("coarse", [False, True], ids=["distinct", "ties"])
@pytest.mark.parametrize(("temperature", "noise"), [(0.0, "coupled"), (1.0, "coupled"), (1.0, "independent")])
@pytest.mark.parametrize("prompt", ["", "abc", "abcdefghij"])
def test_counts_are_those_of_a_recount(temperature: float, noise: Noise, prompt: str, coarse: bool) -> None:
    trace = a_trace(temperature=temperature, noise=noise, prompt=prompt, coarse=coarse)
    record = study(trace, a_model())
    assert_is(record, recount(trace))
    assert (record.prompt_id, record.prompt_index, record.commits) == ("p0", 0, 21)


def test_what_is_asked_follows_from_block_sizes_alone() -> None:
    """Blocks of 8 with 5, 8 and 8 commits: of n commits, those at k .. n - 2 are asked for at look-ahead k."""
    record = study(a_trace(prompt="abc"), a_model())
    for k in range(1, LOOK_AHEADS + 1):
        expected = [sum(k <= b <= n - 2 for n in (5, 8, 8)) for b in range(LENGTH)]
        assert list(record.asked[k - 1]) == expected


def test_the_draw_is_the_argmax_at_zero_and_may_differ_above() -> None:
    cold, hot = (study(a_trace(temperature=t), a_model()) for t in (0.0, 1.5))
    assert cold.drawn == cold.in_top[0]
    assert hot.drawn != hot.in_top[0]
    assert sum(map(sum, hot.drawn)) > sum(map(sum, hot.in_top[0]))  # the shared draw foretells a sampled token better


def test_the_order_model_is_asked_about_the_true_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that names the lowest open position is right exactly where the next commit is that one."""

    class Lowest:
        def __init__(self, model, stale) -> None:
            self.mask = stale.state.tokens[stale.state.open[0]]

        def __call__(self, nodes):
            q_BL = torch.zeros(len(nodes), LENGTH)
            for row, node in enumerate(nodes):
                q_BL[row, min(node.state.open)] = 1.0
                assert all(node.state.tokens[position] != self.mask for position in (node.known, *node.path))
            return q_BL

    monkeypatch.setattr("workers.replay.study.OrderScorer", Lowest)
    trace = a_trace(prompt="")
    positions = [commit.position for commit in trace.commits]
    expected = Counter()
    for start, n in ((0, 8), (8, 8), (16, 5)):
        for b in range(1, n - 1):
            hit = positions[start + b] == min(set(range(n)) - set(positions[start : start + b]))
            for k in range(1, b + 1):
                expected[k, b] += hit
    found = {(k + 1, b): n for k, row in enumerate(study(trace, a_model()).by_model) for b, n in enumerate(row) if n}
    assert found == {at: n for at, n in expected.items() if n}


def test_shares_are_those_of_trainings_held_out_evaluation(tmp_path: Path) -> None:
    """The same held-out traces, judged by training in large padded batches and by the study step by step."""
    prompts, temperatures = ["", "abc", "abcdefghij", "zz"], (0.0, 1.0)
    traces = [a_trace(temperature=t, prompt=p, index=i) for i, p in enumerate(prompts) for t in temperatures]
    data, model = Trajectories.read(write_traces(tmp_path, traces), held_out=0.5), a_model(3)
    rows = judge(model, data, max_depth=6).accuracy
    whole = {row.depth: row for row in rows if (row.target, row.task, row.temperature) == ("", "", None)}
    firsts = np.cumsum([0, *(len(trace) for trace in traces)])[:-1]
    records = [study(trace, model) for trace, first in zip(traces, firsts, strict=True) if data.judged_S[first]]
    assert len(records) == 4
    for depth in range(1, 7):
        asked, right, surest = (
            sum(sum(grid(record)[depth - 1]) for record in records)
            for grid in (lambda r: r.asked, lambda r: r.by_model, lambda r: r.by_confidence)
        )
        assert asked == whole[depth].order_model.n > 0
        assert surest == whole[depth].stale_confidence.hits
        assert abs(right - whole[depth].order_model.hits) <= 1  # another batch shape may round a near-tie away


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_shipped_target_and_model_on_one_prompt(temperature: float) -> None:
    from workers.loading import Loaded

    spec = TargetSpec(name="tiny-sdar", path=str(ZOO / "tiny-sdar"), family="SDARForCausalLM")
    task = TaskSpec(name="tiny-arith", kind="tiny-arith")
    loaded = Loaded("cpu")
    target = loaded.get_target(spec)
    prompt = loaded.get_task(task).prompts(split="test", limit=1, seed=0)[0]
    decode = DecodeSpec(max_new_tokens=64, temperature=temperature)
    cell = Cell(target=spec, task=task, decode=decode, drafter=NO_DRAFTER)
    _, trace = record(target, cell, prompt_id=prompt.id, prompt_index=0, prompt_ids=target.encode(prompt.text))
    observed = study(trace, load_order_model(ZOO / "drafters" / "spot-tiny-sdar", block_length=32))
    assert_is(observed, recount(trace))
    ahead = [sum(row) for row in observed.asked]
    assert sum(observed.by_model[0]) / ahead[0] > 0.6  # held out it is right 83 % of the time; one prompt varies
    assert sum(observed.in_top[0][0]) / ahead[0] > 0.6
