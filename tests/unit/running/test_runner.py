import threading
from dataclasses import replace
from pathlib import Path

import pytest

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.records import ItemKind, ItemResult, WorkItem
from sweeps.results import check_result, decode_result, encode_result
from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec, TaskSpec
from tests.toys import ToyTarget, ToyTask
from workers import catalog
from workers.decoding.loop import decode
from workers.decoding.noise import sample_seed
from workers.drafters.none import NoDrafter
from workers.entries import FamilyEntry, TaskEntry
from workers.models.facts import OrderConfig
from workers.models.order_model import OrderModel, save_order_model
from workers.replay.trace import decode_trace
from workers.runner import Runner

TARGET = ToyTarget(seed=1, vocab_size=40, drift=0.1, stops=(3,), max_positions=64)
CELL = Cell(
    target=TargetSpec(name="toy", family="toy", digest="toy-1", dtype="float64"),
    task=TaskSpec(name="toy", kind="toy", digest="toy-data"),
    decode=DecodeSpec(max_new_tokens=24, block_length=8, temperature=0.7),
    drafter=DrafterSpec(name="ssd", kind="ssd", budget=4),
    seed=3,
)


def load_toy(spec: TargetSpec, *, device: str) -> ToyTarget:
    """The toy family's loader."""
    loads.append(spec)
    return ToyTarget(**{**vars(TARGET), "seed": int(spec.revision or 1)})


loads: list[TargetSpec] = []


@pytest.fixture(autouse=True)
def toys_in_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    loads.clear()
    real = catalog.resolve
    monkeypatch.setitem(catalog.FAMILIES, "toy", FamilyEntry(loader="toy:load", exact_cache=True))
    monkeypatch.setitem(catalog.TASKS, "toy", TaskEntry(factory="toy:task", digest="", summary=""))
    made = {"toy:load": load_toy, "toy:task": lambda spec: ToyTask()}
    monkeypatch.setattr("workers.loading.resolve", lambda reference: made.get(reference) or real(reference))


def item(kind: ItemKind = "decode", first: int = 0, last: int = 4, repeats: int = 1, cell: Cell = CELL) -> WorkItem:
    return WorkItem(item_id=f"{kind}-{first}", cell_id=cell.cell_id, kind=kind, first=first, last=last, repeats=repeats)


def travelled(work: WorkItem, result: ItemResult) -> ItemResult:
    """The result after a trip through JSON, checked as the driver checks it.

    Trajectories become files of their own, so the store of results has no say in them.
    """
    if work.kind == "trace":
        return result
    result = decode_result(encode_result(result))
    check_result(work, result)
    return result


def test_decoded_rows_are_the_decoders_generations_graded() -> None:
    work = item(first=1, last=4)
    result = travelled(work, Runner().run(work, CELL))
    assert not result.failures
    assert [row.prompt_index for row in result.generations] == [1, 2, 3]
    for row in result.generations:
        ids = TARGET.encode(ToyTask().texts[row.prompt_index])
        free = decode(TARGET, NoDrafter(), ids, spec=CELL.decode, seed=sample_seed(3, f"test-{row.prompt_index}"))
        assert row.output_ids == free.output_ids
        assert row.text == TARGET.decode(free.output_ids[: row.tokens_kept])
        assert "".join(row.pieces[: row.tokens_kept]) == row.text
        assert row.correct is (row.text[:1] == "a")
        assert row.prompt_tokens == len(ids)
        assert row.counters.nfe + sum(row.counters.accepted) == row.tokens_generated == len(row.output_ids)
    provenance = result.provenance
    assert provenance is not None
    assert (provenance.device, provenance.threads) == ("cpu", 1)
    assert len(provenance.code_digest) >= 16
    assert provenance.versions["torch"]


def test_equal_prompts_with_different_ids_draw_different_noise_and_any_cut_gives_the_same_rows() -> None:
    runner = Runner()
    whole = runner.run(item(), CELL).generations
    parts = [row for first in (2, 0) for row in runner.run(item(first=first, last=first + 2), CELL).generations]
    assert sorted(parts, key=lambda row: row.prompt_index) == list(whole)
    assert whole[0].prompt_tokens == whole[3].prompt_tokens
    assert whole[0].output_ids != whole[3].output_ids


def test_timing_compares_with_draft_free_on_the_same_prompts() -> None:
    work = item("timing", repeats=3)
    result = travelled(work, Runner().run(work, CELL))
    decoded = {row.prompt_index: row for row in Runner().run(item(), CELL).generations}
    for row in result.timings:
        assert row.identical
        assert row.nfe == decoded[row.prompt_index].counters.nfe < row.baseline_nfe
        assert row.baseline_nfe == decoded[row.prompt_index].tokens_generated
        assert row.tokens_kept == decoded[row.prompt_index].tokens_kept
        assert min(*row.variant_seconds, *row.baseline_seconds) > 0
        assert 0 < row.drafter_seconds + row.forward_seconds + row.walk_seconds <= sum(row.variant_seconds)


def test_a_trace_is_the_draft_free_trajectory_whatever_the_drafter() -> None:
    work = item("trace", first=1, last=3)
    result = travelled(work, Runner().run(work, CELL))
    assert not result.failures
    free = Runner().run(item(first=1, last=3), CELL.baseline()).generations
    for data, row in zip(result.traces, free, strict=True):
        trace = decode_trace(data)
        assert trace.header.cell_id == CELL.baseline().cell_id
        assert trace.header.prompt_id == row.prompt_id
        assert len(trace.commits) == row.tokens_generated
        ids = trace.header.prompt_ids
        assert [
            step.start + commit.position - len(ids) for step, commit in zip(trace.steps, trace.commits, strict=True)
        ] == list(row.order)


def test_a_target_is_loaded_once_and_replaced_by_the_next() -> None:
    runner = Runner()
    other = replace(CELL, target=replace(CELL.target, revision="2", digest="toy-2"))
    for cell in (CELL, CELL.baseline(), replace(CELL, seed=4), other, other, CELL):
        assert not runner.run(item(cell=cell, last=1), cell).failures
    assert [spec.digest for spec in loads] == ["toy-1", "toy-2", "toy-1"]


def test_other_weights_than_the_cell_names_fail_the_item_by_name() -> None:
    cell = replace(CELL, target=replace(CELL.target, digest="toy-77"))
    (failure,) = Runner().run(item(cell=cell), cell).failures
    assert (failure.kind, failure.type, failure.prompt_index) == ("deterministic", "ValueError", -1)
    assert failure.message == "target toy: weights have digest toy-1, the cell says toy-77"


def test_other_data_than_the_cell_names_fail_the_item_by_name() -> None:
    cell = replace(CELL, task=replace(CELL.task, digest="older"))
    (failure,) = Runner().run(item(cell=cell), cell).failures
    assert failure.message == "task toy: data have digest toy-data, the cell says older"


@pytest.mark.parametrize("change", [{"family": "GPT2"}, {"family": ""}])
def test_an_unknown_family_is_named(change: dict[str, str]) -> None:
    cell = replace(CELL, target=replace(CELL.target, **change))  # type: ignore[arg-type]
    (failure,) = Runner().run(item(cell=cell), cell).failures
    assert f"family is {change['family']!r}" in failure.message
    assert "SDARForCausalLM" in failure.message


def test_another_order_model_than_the_cell_names_fails_the_item_by_name(tmp_path: Path) -> None:
    digest = save_order_model(OrderModel(OrderConfig(block_length=8, width=16, heads=2, feedforward=16)), tmp_path)
    drafter = DrafterSpec(name="spot", kind="spot", checkpoint=str(tmp_path), digest=digest)
    good, bad = (replace(CELL, drafter=replace(drafter, digest=each)) for each in (digest, "f" * 64))
    assert not Runner().run(item(cell=good, last=1), good).failures
    (failure,) = Runner().run(item(cell=bad, last=1), bad).failures
    assert failure.message == f"drafter spot: its order model has digest {digest}, the cell says {'f' * 64}"


def test_an_unknown_drafter_or_task_is_named() -> None:
    for cell, start in (
        (replace(CELL, drafter=DrafterSpec(name="x", kind="spto")), "drafter x: kind is 'spto': allowed is none | ssd"),
        (replace(CELL, task=replace(CELL.task, kind="gsm")), "task toy: kind is 'gsm': allowed is tiny-arith | "),
    ):
        (failure,) = Runner().run(item(cell=cell), cell).failures
        assert failure.message.startswith(start)


@pytest.mark.parametrize("kind", ["decode", "timing", "trace"])
def test_an_overlong_prompt_is_a_row_failure_and_its_siblings_finish(kind: ItemKind) -> None:
    cell = replace(CELL, decode=replace(CELL.decode, max_new_tokens=61))  # fits 3 prompt tokens, not 5
    work = item(kind, cell=cell)
    result = travelled(work, Runner().run(work, cell))
    (failure,) = result.failures
    assert (failure.kind, failure.type) == ("deterministic", "ValueError")
    assert (failure.prompt_index, failure.prompt_id) == (2, "test-2")
    assert "prompt of 5 tokens plus 61 new" in failure.message
    assert len(result.generations) + len(result.timings) + len(result.traces) == 3


def test_prompts_behind_the_end_of_the_task_are_named_failures() -> None:
    work = item(first=3, last=6)
    result = travelled(work, Runner().run(work, CELL))
    assert [row.prompt_index for row in result.generations] == [3]
    assert [failure.message for failure in result.failures] == [
        f"task toy has 4 prompts in split 'test': no prompt {index}" for index in (4, 5)
    ]


class AwkwardError(Exception):
    """Cannot be made without its argument, holds a lock, and says 5 MB."""

    def __init__(self, culprit: str) -> None:
        super().__init__("x" * 5_000_000 + culprit)
        self.lock = threading.Lock()


@pytest.mark.parametrize(
    ("error", "kind", "name"),
    [
        (AwkwardError("end"), "deterministic", "AwkwardError"),
        (SystemExit(3), "deterministic", "SystemExit"),
        (MemoryError("no room"), "infrastructure", "MemoryError"),
        (OSError(28, "No space left on device"), "infrastructure", "OSError"),
    ],
)
def test_an_exception_is_a_bounded_row_that_can_travel(error: BaseException, kind: str, name: str) -> None:
    runner = Runner()
    runner.loaded.tasks[CELL.task] = ToyTask(texts=("fine", "boom", "fine too"), error=error)
    work = item(last=3)
    result = travelled(work, runner.run(work, CELL))
    (failure,) = result.failures
    assert (failure.prompt_index, failure.kind) == (1, kind)
    assert failure.type.endswith(name)
    assert len(failure.message) < 3000
    assert [row.prompt_index for row in result.generations] == [0, 2]


def test_a_keyboard_interrupt_passes() -> None:
    runner = Runner()
    runner.loaded.tasks[CELL.task] = ToyTask(texts=("boom",), error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        runner.run(item(last=1), CELL)


def test_a_drafter_of_the_baseline_cell_drafts_nothing() -> None:
    cell = CELL.baseline()
    assert cell.drafter == NO_DRAFTER
    for row in Runner().run(item(cell=cell), cell).generations:
        assert row.counters.nfe == row.tokens_generated
        assert set(row.counters.drafted) == {0}
