from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from orchestrator.collect import CollectProgress, collect_traces, is_stored, items_of, trace_path
from orchestrator.pool import PoolEvent
from orchestrator.pool_inline import InlinePool
from sweeps.records import Failure, ItemResult
from tests.toys import ToyTarget
from tests.traces import toy_cell, toy_trace
from workers.replay.trace import decode_trace, encode_trace

CELLS = (toy_cell(), toy_cell(temperature=1.0))
PROMPTS = 6


@dataclass
class TraceRunner:
    """Records toy trajectories; `trouble` says what goes wrong with a prompt."""

    trouble: dict[int, str] = field(default_factory=dict)
    runs: Counter = field(default_factory=Counter)

    def run(self, item, cell):
        traces, failures = [], []
        for index in range(item.first, item.last):
            self.runs[cell.cell_id, index] += 1
            match self.trouble.get(index):
                case "too long":
                    failures.append(
                        Failure(kind="deterministic", type="ValueError", message="long", prompt_index=index)
                    )
                case "silent":
                    pass
                case "raises":
                    raise RuntimeError("no target")
                case "memory" if self.runs[cell.cell_id, index] == 1:
                    raise MemoryError("first try")
                case _:
                    traces.append(encode_trace(toy_trace(ToyTarget(), cell, index, prompt="a" * index)))
        result = ItemResult(item_id=item.item_id, cell_id=item.cell_id, kind="trace", first=item.first, last=item.last)
        return replace(result, traces=tuple(traces), failures=tuple(failures))


def collected(folder, runner, **options):
    pool = InlinePool(runner_factory=lambda *_: runner)
    return collect_traces(pool, dict.fromkeys(CELLS, PROMPTS), folder, **options)


def test_every_prompt_of_every_cell_has_its_trace(tmp_path):
    seen: list[CollectProgress] = []
    outcome = collected(tmp_path, TraceRunner(), progress=seen.append)
    assert outcome.failures == ()
    headers = [decode_trace(path.read_bytes()).header for path in outcome.paths]
    assert [(h.cell_id, h.prompt_index) for h in headers] == [(c.cell_id, i) for c in CELLS for i in range(PROMPTS)]
    assert [(p.done, p.kept, p.total) for p in (seen[0], seen[-1])] == [(0, 0, 12), (12, 0, 12)]


def test_a_second_collection_does_nothing(tmp_path):
    first = collected(tmp_path, TraceRunner())
    again = TraceRunner()
    seen: list[CollectProgress] = []
    outcome = collected(tmp_path, again, progress=seen.append)
    assert outcome.paths == first.paths
    assert not again.runs
    assert [(p.done, p.kept) for p in seen] == [(0, 12)]


def test_damaged_missing_and_foreign_files_are_collected_again(tmp_path):
    first = collected(tmp_path, TraceRunner())
    contents = [path.read_bytes() for path in first.paths]
    first.paths[0].unlink()
    first.paths[2].write_bytes(contents[2][:-1])
    first.paths[3].write_bytes(contents[4])  # another prompt's
    first.paths[7].write_bytes(contents[1])  # another cell's
    runner = TraceRunner()
    outcome = collected(tmp_path, runner)
    cold, hot = (cell.cell_id for cell in CELLS)
    assert runner.runs == {(cold, 0): 1, (cold, 2): 1, (cold, 3): 1, (hot, 1): 1}
    assert [path.read_bytes() for path in outcome.paths] == contents


def test_more_prompts_extend_a_collection(tmp_path):
    runner = TraceRunner()
    pool = InlinePool(runner_factory=lambda *_: runner)
    collect_traces(pool, dict.fromkeys(CELLS, 2), tmp_path)
    collected(tmp_path, runner)
    assert set(runner.runs.values()) == {1}
    assert len(runner.runs) == 12


@pytest.mark.parametrize("what", ["too long", "silent"])
def test_a_prompt_without_a_trace_is_a_failure_and_its_siblings_go_on(tmp_path, what):
    outcome = collected(tmp_path, TraceRunner(trouble={2: what}))
    assert len(outcome.paths) == 10
    assert [failure.prompt_index for failure in outcome.failures] == [2, 2]
    assert outcome.failures[0].type == ("ValueError" if what == "too long" else "MissingTrace")
    assert not trace_path(tmp_path, CELLS[0], 2).exists()


def test_an_item_that_fails_as_a_whole_fails_its_prompts(tmp_path):
    outcome = collected(tmp_path, TraceRunner(trouble={5: "raises"}))
    assert [failure.prompt_index for failure in outcome.failures] == [4, 5, 4, 5]  # prompts 4 and 5 are one item
    assert {failure.message for failure in outcome.failures} == {"no target"}
    assert len(outcome.paths) == 8


def test_trouble_of_the_machine_is_tried_again_on_a_fresh_worker(tmp_path):
    runner = TraceRunner(trouble={1: "memory"})
    outcome = collected(tmp_path, runner)
    assert outcome.failures == ()
    assert len(outcome.paths) == 12


class DyingPool(InlinePool):
    """Loses its worker at the first items."""

    def __init__(self, runner, losses):
        super().__init__(runner_factory=lambda *_: runner)
        self.losses = losses
        self.started = self.closed = 0

    def start(self, at_most=0):
        self.started += 1
        return super().start(at_most)

    def wait(self, timeout):
        if self._work is not None and self.losses:
            self.losses, self._work = self.losses - 1, None
            return (PoolEvent(kind="lost", worker=self._name, reason="killed"),)
        return super().wait(timeout)

    def close(self):
        self.closed += 1
        super().close()


def test_a_lost_worker_costs_a_retry_only(tmp_path):
    runner = TraceRunner()
    pool = DyingPool(runner, losses=2)
    notes: list[str] = []
    outcome = collect_traces(pool, dict.fromkeys(CELLS, PROMPTS), tmp_path, progress=lambda p: notes.append(p.note))
    assert len(outcome.paths) == 12
    assert sum("killed" in note for note in notes) == 2
    assert set(runner.runs.values()) == {1}
    assert pool.closed == 1


def test_a_pool_that_never_gets_anything_done_is_an_error_and_closed(tmp_path):
    pool = DyingPool(TraceRunner(), losses=10**6)
    with pytest.raises(ValueError, match="no worker gets anything done: killed"):
        collect_traces(pool, dict.fromkeys(CELLS, 60), tmp_path)
    assert pool.closed == 1


def test_an_interrupt_keeps_what_is_stored_and_closes_the_pool(tmp_path):
    class Stopped(TraceRunner):
        def run(self, item, cell):
            if len(self.runs) >= 4:
                raise KeyboardInterrupt
            return super().run(item, cell)

    pool = DyingPool(Stopped(), losses=0)
    with pytest.raises(KeyboardInterrupt):
        collect_traces(pool, dict.fromkeys(CELLS, PROMPTS), tmp_path)
    assert pool.closed == 1
    runner = TraceRunner()
    collected(tmp_path, runner)
    assert sum(runner.runs.values()) == 8


def test_items_are_runs_of_neighbours_of_bounded_size():
    items = list(items_of("c", [0, 1, 2, 3, 4, 7, 9, 10]))
    assert [(item.first, item.last) for item in items] == [(0, 4), (4, 5), (7, 8), (9, 11)]
    assert len({item.item_id for item in items}) == 4
    assert list(items_of("c", [])) == []


def test_a_trace_of_the_other_split_does_not_count(tmp_path):
    cell = CELLS[0]
    test = replace(cell, task=replace(cell.task, split="test"))
    path = tmp_path / "x.trace"
    path.write_bytes(encode_trace(toy_trace(ToyTarget(), test, 0)))
    assert is_stored(path, test, 0)
    assert not is_stored(path, cell, 0)
    assert trace_path(tmp_path, cell, 0) != trace_path(tmp_path, test, 0)
