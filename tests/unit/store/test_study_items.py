"""Studies as work: one for each order model and draft-free cell, whatever the budgets; stored and resumed by prompt."""

from dataclasses import replace

import pytest

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.effort import MeasureSpec
from sweeps.results import Loaded, check_rows, decode_result, encode_result
from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec, TaskSpec
from sweeps.study import is_study, study_cell
from sweeps.todo import jobs_of, missing_items
from tests.synthetic import Faults, study_item

BASE = Cell(
    target=TargetSpec(name="t", digest="t"),
    task=TaskSpec(name="a", kind="a", digest="a"),
    decode=DecodeSpec(),
    drafter=NO_DRAFTER,
)
MEASURE = MeasureSpec(prompts=2, timed_prompts=0, studied_prompts=5)


def spot(budget: int = 8, **options: object) -> Cell:
    return replace(
        BASE, drafter=DrafterSpec(**{"name": "spot", "kind": "spot", "budget": budget, "digest": "m"} | options)
    )


def hot(cell: Cell) -> Cell:
    return replace(cell, decode=replace(cell.decode, temperature=1.0))


def studies(*cells: Cell) -> list[Cell]:
    return [job.cell for job in jobs_of(cells, MEASURE, ("spot",)) if job.wanted("study")]


def test_budgets_and_options_share_one_study() -> None:
    same = [spot(4), spot(8), spot(8, gamma=0.1, name="floor"), spot(20, hedge=0.0, checkpoint="elsewhere")]
    assert [cell.cell_id for cell in studies(BASE, *same)] == [study_cell(spot(4)).cell_id]
    assert studies(BASE, *same)[0] == study_cell(spot(4))  # the first one's checkpoint is loaded


def test_models_and_draft_free_cells_have_studies_of_their_own() -> None:
    other = spot(8, digest="n")
    assert studies(BASE, spot(), other, hot(BASE), hot(spot())) == [study_cell(c) for c in (spot(), other, hot(spot()))]
    assert len({cell.cell_id for cell in map(study_cell, (spot(), other, hot(spot())))}) == 3


def test_only_drafters_with_an_order_model_are_studied_and_only_on_request() -> None:
    graph = replace(BASE, drafter=DrafterSpec(name="g", kind="spiffy", digest="g"))
    assert studies(BASE, graph) == []
    assert not any(
        is_study(job.cell) for job in jobs_of([BASE, spot()], replace(MEASURE, studied_prompts=0), ("spot",))
    )


def test_a_study_is_no_cell_that_a_sweep_can_name() -> None:
    """It neither decodes nor is timed, its draft-free cell is the one it looks back on, and no drafter has its id."""
    (job,) = [
        job
        for job in jobs_of([BASE, spot(1, hedge=0.0, merge_states=False)], MEASURE, ("spot",))
        if job.studied_prompts
    ]
    assert (job.wanted("decode"), job.wanted("timing"), job.wanted("study")) == (0, 0, 5)
    assert job.cell.baseline().cell_id == BASE.cell_id
    assert job.cell_id != spot(1, hedge=0.0, merge_states=False).cell_id


def test_missing_prompts_are_items_of_their_own() -> None:
    jobs = [job for job in jobs_of([BASE, spot()], MEASURE, ("spot",)) if is_study(job.cell)]
    items = missing_items(jobs, {}, chunk=4)
    assert [(item.kind, item.first, item.last) for item in items] == [("study", 0, 4), ("study", 4, 5)]
    loaded = Loaded()
    loaded.add(study_item(replace(jobs[0], studied_prompts=3), Faults(failed=1)))
    assert [(item.first, item.last) for item in missing_items(jobs, loaded.cells, chunk=8)] == [(3, 5)]
    again = missing_items(jobs, loaded.cells, chunk=8, retry_failed=True)
    assert [(item.first, item.last) for item in again] == [(0, 1), (3, 5)]


def test_a_stored_study_is_read_back_and_checked() -> None:
    job = next(job for job in jobs_of([BASE, spot()], MEASURE, ("spot",)) if is_study(job.cell))
    result = study_item(job, Faults())
    assert decode_result(encode_result(result)) == result
    assert len(encode_result(result)) / len(result.studies) < 8_000  # a few kilobytes a prompt
    with pytest.raises(ValueError, match=r"study rows are \[0, 1, 2, 3\]"):
        check_rows(replace(result, studies=result.studies[:4]))
    with pytest.raises(ValueError, match="rows of another kind"):
        check_rows(replace(result, kind="decode"))
    loaded = Loaded()
    loaded.add(result)
    with pytest.raises(ValueError, match="duplicate"):
        loaded.add(result)
