"""What oracles are told on a worker: recorded once for all oracles and budgets of a prompt, within bounds."""

from dataclasses import replace

import pytest

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.records import ItemKind, ItemResult, WorkItem
from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec, TaskSpec
from tests.drafters import artifact
from tests.toys import ToyTarget, ToyTask
from workers.decoding.loop import decode
from workers.drafters.none import NoDrafter
from workers.drafters.oracle import ChainOracle
from workers.futures import Futures, future_of, told
from workers.loading import Loaded
from workers.replay.future import Future
from workers.runner import Runner

PROMPTS = len(ToyTask().texts)
CELL = Cell(
    target=TargetSpec(name="toy", family="toy", digest="toy-1", dtype="float64"),
    task=TaskSpec(name="toy", kind="toy", digest="toy-data"),
    decode=DecodeSpec(max_new_tokens=24, block_length=8, temperature=0.7),
    drafter=NO_DRAFTER,
    seed=3,
)


@pytest.fixture(autouse=True)
def target(monkeypatch: pytest.MonkeyPatch) -> ToyTarget:
    toy = ToyTarget(seed=1, vocab_size=40, drift=0.1, stops=(3,), max_positions=64)
    monkeypatch.setattr(Loaded, "get_target", lambda self, spec, size: toy)
    monkeypatch.setattr(Loaded, "get_task", lambda self, spec: ToyTask())
    return toy


def oracle(kind: str, budget: int, cell: Cell = CELL) -> Cell:
    return replace(cell, drafter=DrafterSpec(name=kind, kind=kind, budget=budget, oracle=True))


def run(runner: Runner, cell: Cell, kind: ItemKind = "decode", repeats: int = 1) -> ItemResult:
    item = WorkItem(item_id="i", cell_id=cell.cell_id, kind=kind, first=0, last=PROMPTS, repeats=repeats)
    result = runner.run(item, cell)
    assert not result.failures, result.failures
    return result


def forwards_of(target: ToyTarget, runner: Runner, cell: Cell) -> tuple[int, int]:
    """Forwards that decoding a cell took: those the target saw, and those the rows count."""
    before = len(target.batches)
    rows = run(runner, cell).generations
    return len(target.batches) - before, sum(row.counters.nfe for row in rows)


def test_a_prompt_is_recorded_once_for_all_oracles_and_budgets(target: ToyTarget) -> None:
    runner = Runner()
    seen, counted = forwards_of(target, runner, oracle("oracle_token", 4))
    tokens = sum(row.tokens_generated for row in run(Runner(), CELL).generations)
    assert seen == counted + tokens
    for kind in ("oracle_token", "oracle_position", "oracle_joint"):
        for budget in (2, 6):
            seen, counted = forwards_of(target, runner, oracle(kind, budget))
            assert seen == counted < tokens


def test_a_draft_free_item_records_for_the_oracles_that_follow(target: ToyTarget) -> None:
    runner = Runner()
    free = run(runner, CELL).generations
    seen, counted = forwards_of(target, runner, oracle("oracle_joint", 4))
    assert seen == counted
    drafted = run(runner, oracle("oracle_joint", 4)).generations
    assert [row.output_ids for row in drafted] == [row.output_ids for row in free]


@pytest.mark.parametrize(
    "other",
    [replace(CELL, seed=4), replace(CELL, decode=replace(CELL.decode, temperature=0.9))],
    ids=["seed", "temperature"],
)
def test_another_trajectory_is_recorded_for_itself(target: ToyTarget, other: Cell) -> None:
    runner = Runner()
    run(runner, CELL)
    seen, counted = forwards_of(target, runner, oracle("oracle_joint", 4, other))
    assert seen > counted
    rows = {row.prompt_index: row for row in run(runner, oracle("oracle_joint", 4, other)).generations}
    for row in run(Runner(), other).generations:
        assert rows[row.prompt_index].output_ids == row.output_ids


def test_recording_is_outside_of_what_is_timed(target: ToyTarget) -> None:
    cell = oracle("oracle_joint", 4)
    timings = run(Runner(), cell, "timing", repeats=2).timings
    timed = sum(3 * (row.nfe + row.baseline_nfe) for row in timings)  # a warm-up and two repeats of each side
    assert len(target.batches) == timed + sum(row.baseline_nfe for row in timings)
    assert all(row.identical and row.nfe < row.baseline_nfe for row in timings)
    assert [row.nfe for row in timings] == [row.counters.nfe for row in run(Runner(), cell).generations]


def test_a_prompt_that_cannot_be_recorded_fails_alone() -> None:
    cell = oracle("oracle_joint", 4, replace(CELL, decode=replace(CELL.decode, max_new_tokens=61)))
    item = WorkItem(item_id="i", cell_id=cell.cell_id, kind="decode", first=0, last=PROMPTS)
    result = Runner().run(item, cell)
    (failure,) = result.failures
    assert (failure.prompt_index, failure.kind) == (2, "deterministic")
    assert "prompt of 5 tokens plus 61 new" in failure.message
    assert [row.prompt_index for row in result.generations] == [0, 1, 3]


def test_the_memo_is_bounded_and_forgets_what_was_not_asked_for_longest(target: ToyTarget) -> None:
    spec = replace(CELL.decode, ignore_eos=True)
    cell = replace(CELL, decode=spec)  # 24 commits a prompt
    futures = Futures(most_commits=60)
    for name in ("a", "b", "a", "c"):
        futures.of(target, cell, name, [1])
    assert [prompt for _, prompt in futures.known] == ["a", "c"]
    assert futures.commits == sum(map(len, futures.known.values())) == 48
    before = len(target.batches)
    futures.of(target, cell, "a", [1])
    assert len(target.batches) == before
    futures.of(target, cell, "b", [1])
    assert len(target.batches) == before + 24
    assert [prompt for _, prompt in futures.known] == ["a", "b"]


def test_a_future_above_the_bound_is_kept_alone(target: ToyTarget) -> None:
    futures = Futures(most_commits=5)
    for name in ("a", "b"):
        assert len(futures.of(target, CELL, name, [1])) > 5
    assert [prompt for _, prompt in futures.known] == ["b"]


def test_hearing_a_prompt_twice_counts_it_once(target: ToyTarget) -> None:
    futures = Futures()
    generation = decode(target, NoDrafter(), [1], spec=CELL.decode, seed=0)
    for _ in range(2):
        futures.heard(CELL, "p", generation)
    assert futures.commits == len(generation.output_ids)


def test_only_oracles_ask_for_the_future() -> None:
    def never() -> Future:
        raise AssertionError("asked")

    drafter = NoDrafter()
    assert told(drafter, never) is drafter
    with pytest.raises(AssertionError, match="asked"):
        told(ChainOracle(4, lambda root, stale, coming: coming), never)


def test_no_future_is_told_where_its_noise_decides_other_commits(target: ToyTarget) -> None:
    spec = DecodeSpec(max_new_tokens=6, block_length=4, temperature=1.0, noise="independent")
    with pytest.raises(ValueError, match="noise is 'independent': allowed for an oracle is 'coupled'"):
        future_of(target, [1], spec=spec, seed=0)
    cell = replace(CELL, decode=spec)
    futures = Futures()
    futures.heard(cell, "p", decode(target, NoDrafter(), [1], spec=spec, seed=0))
    with pytest.raises(ValueError, match="allowed for an oracle"):
        futures.of(target, cell, "p", [1])


def test_another_commit_rule_has_no_future_and_none_is_kept(target: ToyTarget) -> None:
    cell = replace(CELL, decode=replace(CELL.decode, commit="threshold", tau=0.5))
    with pytest.raises(ValueError, match=r"decode\.commit is 'threshold': allowed for an oracle is 'standard'"):
        future_of(target, [1], spec=cell.decode, seed=0)
    futures = Futures()
    futures.heard(cell, "p", decode(target, NoDrafter(), [1], spec=cell.decode, seed=0))
    assert not futures.known


def test_a_drafter_that_does_not_draft_for_the_rule_is_refused_when_it_is_loaded() -> None:
    decode_spec = replace(CELL.decode, commit="threshold", tau=0.5)
    with pytest.raises(ValueError, match="drafter ssd: commit is 'threshold': allowed is standard"):
        Loaded("cpu").get_drafter(DrafterSpec(name="ssd", kind="ssd"), decode_spec)
    for commit, other in (("standard", "threshold"), ("threshold", "standard")):
        spec = DrafterSpec(name="s", kind="spiffy", checkpoint=artifact("draft_graph", 8, commit))
        assert Loaded("cpu").get_drafter(spec, replace(decode_spec, commit=commit)).budget == 8
        with pytest.raises(ValueError, match=f"its draft graph is for the commit rule {commit}: asked is {other}"):
            Loaded("cpu").get_drafter(spec, replace(CELL.decode, commit=other, tau=0.5))
