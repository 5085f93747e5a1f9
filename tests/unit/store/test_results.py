"""What is stored is read back exactly, and what is not exactly that is no result."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.records import Failure, ItemResult, Provenance
from sweeps.results import check_result, decode_result, encode_result, load_results, verified
from sweeps.store import RunDir, atomic_write
from sweeps.todo import Job, item_of
from tests.fake_plan import a_cell
from tests.fake_runner import answer, generation

CELL = a_cell(budget=4)
JOB = Job(cell=CELL, prompts=8, timed_prompts=4, repeats=3)
ITEM = item_of(JOB, "decode", 0, 3)
GOOD = answer(ITEM, CELL)
CONTENT = encode_result(GOOD)


def put(run: RunDir, result: ItemResult, name: str = "") -> Path:
    path = run.result(result.cell_id, name or result.item_id)
    atomic_write(path, encode_result(result))
    return path


def failing(first: int, last: int, index: int = -1, **changes: object) -> ItemResult:
    item = item_of(JOB, "decode", first, last)
    failure = Failure(kind="deterministic", type="ValueError", message="m", prompt_index=index)
    result = ItemResult(
        item_id=item.item_id, cell_id=item.cell_id, kind="decode", first=first, last=last, failures=(failure,)
    )
    if index >= 0:
        good = tuple(generation(CELL.cell_id, i) for i in range(first, last) if i != index)
        result = replace(result, generations=good)
    return replace(result, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["decode", "timing"])
def test_round_trip(kind: str) -> None:
    item = item_of(JOB, kind, 1, 4)  # type: ignore[arg-type]
    result = answer(item, CELL)
    assert decode_result(verified(item, result)) == result


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_any_flipped_or_lost_byte_is_noticed(data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(CONTENT) - 1))
    if data.draw(st.booleans()):
        broken = CONTENT[:position]
    else:
        value = data.draw(st.integers(1, 255)) ^ CONTENT[position]
        broken = CONTENT[:position] + bytes([value]) + CONTENT[position + 1 :]
    try:
        assert decode_result(broken) == GOOD  # a flip in insignificant white space would be harmless; there is none
    except ValueError:
        return
    raise AssertionError(f"byte {position} was changed unnoticed")


def test_answers_that_are_none() -> None:
    row = GOOD.generations[0]
    infinite = replace(row, margins=(float("inf"), *row.margins[1:]))
    wrong = {
        "another cell": replace(GOOD, cell_id="other"),
        "another item": replace(GOOD, item_id="other"),
        "another range": replace(GOOD, last=4),
        "a prompt missing": replace(GOOD, generations=GOOD.generations[:2]),
        "a prompt twice": replace(GOOD, generations=(*GOOD.generations, row)),
        "a prompt outside": replace(GOOD, generations=(*GOOD.generations[:2], generation(CELL.cell_id, 9))),
        "row and failure": replace(GOOD, failures=failing(0, 3, index=0).failures),
        "all failed, yet rows": replace(GOOD, failures=failing(0, 3).failures),
        "another kind of row": replace(GOOD, traces=(b"x",)),
        "nothing": replace(GOOD, generations=()),
        "a string for a number": replace(GOOD, generations=(replace(row, prompt_tokens="4"), *GOOD.generations[1:])),
        "no JSON at all": replace(GOOD, generations=(object(), *GOOD.generations[1:])),
        "not a number": replace(GOOD, seconds=float("nan")),
        "a lone surrogate": replace(GOOD, generations=(replace(row, text="\ud800"), *GOOD.generations[1:])),
    }
    for name, result in wrong.items():
        with pytest.raises(ValueError, match=r"."):
            print(name, verified(ITEM, result))
    assert b"null" in verified(ITEM, replace(GOOD, generations=(infinite, *GOOD.generations[1:])))


def test_timings_must_have_the_repeats_asked_for() -> None:
    item = item_of(JOB, "timing", 0, 2)
    fewer = replace(answer(replace(item, repeats=2), CELL), item_id=item.item_id)
    with pytest.raises(ValueError, match="not timed 3 times"):
        check_result(item, fewer)


def test_traces_are_no_results_of_a_run() -> None:
    item = item_of(JOB, "trace", 0, 3)
    with pytest.raises(ValueError, match="trace rows"):
        check_result(item, answer(item, CELL))


def test_reading_a_run_back(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    put(run, GOOD)
    put(run, failing(3, 5, index=4))
    put(run, failing(5, 8))
    put(run, answer(item_of(JOB, "timing", 0, 4), CELL))
    loaded = load_results(run)
    rows = loaded.rows(CELL.cell_id)
    assert not loaded.problems
    assert sorted(rows.failed) == [("decode", index) for index in (4, 5, 6, 7)]
    assert [index for index in range(9) if rows.has("decode", index, 1)] == [0, 1, 2, 3]
    assert [index for index in range(9) if rows.has("timing", index, 3)] == [0, 1, 2, 3]
    assert not rows.has("timing", 0, 4)


def test_a_later_success_ends_a_failure_and_a_failure_never_ends_a_success(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    put(run, failing(0, 3, index=2, finished_at=1.0))
    put(run, replace(answer(item_of(JOB, "decode", 2, 3), CELL), finished_at=2.0))
    put(run, failing(1, 2, finished_at=3.0))
    rows = load_results(run).rows(CELL.cell_id)
    assert rows.failed == {}
    assert sorted(rows.good) == [("decode", 0), ("decode", 1), ("decode", 2)]


def test_what_is_no_result_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    good = put(run, GOOD)
    folder = good.parent
    cut = put(run, answer(item_of(JOB, "decode", 3, 5), CELL))
    os.truncate(cut, 100)
    shutil.copy(good, folder / "copy.json")
    shutil.copytree(folder, run.results / "othercell")
    (folder / "notes.txt").write_text("hello")
    (folder / "empty.json").touch()
    (run.results / "stray").touch()
    (folder / "nested").mkdir()
    again = answer(item_of(JOB, "decode", 2, 4), CELL)
    differs = replace(again.generations[0], output_ids=(1,) * 8)
    put(run, replace(again, generations=(differs, again.generations[1]), finished_at=9.0))
    loaded = load_results(run)
    reasons = {problem.path.relative_to(run.results).as_posix(): problem.reason for problem in loaded.problems}
    cell = CELL.cell_id
    assert [result.item_id for result in loaded.results] == [GOOD.item_id]
    assert "not a whole result file" in reasons[f"{cell}/{cut.name}"]
    assert f"holds the result of item {GOOD.item_id}" in reasons[f"{cell}/copy.json"]
    assert f"of cell {cell}" in reasons[f"othercell/{good.name}"]
    assert reasons[f"{cell}/notes.txt"] == reasons[f"{cell}/nested"] == "not a result file"
    assert "not a whole" in reasons[f"{cell}/empty.json"]
    assert reasons["stray"] == "not a cell's folder"
    assert reasons[f"{cell}/{again.item_id}.json"] == "duplicate: prompts [2] are stored already and its output differs"


def test_results_of_other_code_are_foreign(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    made = Provenance(host="h", device="cpu", threads=1, code_digest="theirs", versions={})
    put(run, replace(GOOD, provenance=made))
    assert load_results(run, code_digests={"theirs"}).problems == []
    (problem,) = load_results(run, code_digests={"ours"}).problems
    assert problem.reason == "made by code theirs, which never ran here"
