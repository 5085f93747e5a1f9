"""Plan minus done: exactly the missing prompts, in items whose names do not depend on history."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeps.effort import MeasureSpec, ResourceSpec
from sweeps.records import Failure
from sweeps.results import Coverage
from sweeps.spec import GridSpec, SweepSpec
from sweeps.todo import Job, Plan, jobs_of, missing_items
from tests.fake_plan import a_cell

BASE, SPOT, OTHER_SEED = a_cell(), a_cell(budget=4), a_cell(seed=1)
FAILURE = Failure(kind="deterministic", type="T", message="m")


def covered(indexes: set[int], failed: set[int] | None = None) -> dict[str, Coverage]:
    good = {("decode", index): 1 for index in indexes}
    bad = {("decode", index): FAILURE for index in failed or ()}
    return {SPOT.cell_id: Coverage(good=good, failed=bad)}  # type: ignore[arg-type]


@given(st.integers(0, 40), st.integers(1, 9), st.sets(st.integers(0, 45)))
def test_items_cover_the_missing_prompts_once(prompts: int, chunk: int, done: set[int]) -> None:
    items = missing_items([Job(cell=SPOT, prompts=prompts)], covered(done), chunk=chunk)
    asked = [index for item in items for index in range(item.first, item.last)]
    assert asked == [index for index in range(prompts) if index not in done]
    assert all(0 < item.last - item.first <= chunk for item in items)
    assert all(item.first // chunk == (item.last - 1) // chunk for item in items)
    assert len({item.item_id for item in items}) == len(items)


def test_a_larger_prompt_count_only_adds_items() -> None:
    few = missing_items([Job(cell=SPOT, prompts=8)], {}, chunk=4)
    many = missing_items([Job(cell=SPOT, prompts=13)], {}, chunk=4)
    rest = missing_items([Job(cell=SPOT, prompts=13)], covered(set(range(8))), chunk=4)
    assert many[:2] == few
    assert [(item.first, item.last) for item in rest] == [(8, 12), (12, 13)]
    assert rest == many[2:]


def test_item_names() -> None:
    job = Job(cell=SPOT, prompts=2, timed_prompts=1, repeats=3)
    assert [item.item_id for item in missing_items([job], {}, chunk=8)] == [
        f"{SPOT.cell_id}-decode-000000-000002",
        f"{SPOT.cell_id}-timing-000000-000001-r3",
    ]


def test_failed_rows_run_again_only_on_demand() -> None:
    jobs = [Job(cell=SPOT, prompts=4)]
    state = covered({0}, failed={1, 2})
    assert [(i.first, i.last) for i in missing_items(jobs, state, chunk=8)] == [(3, 4)]
    assert [(i.first, i.last) for i in missing_items(jobs, state, chunk=8, retry_failed=True)] == [(1, 4)]


def test_more_repeats_time_again() -> None:
    state = {SPOT.cell_id: Coverage(good={("timing", 0): 3, ("timing", 1): 5})}
    job = Job(cell=SPOT, prompts=0, timed_prompts=2, repeats=5)
    (item,) = missing_items([job], state, chunk=8)
    assert (item.first, item.last, item.repeats) == (0, 1, 5)
    assert missing_items([replace(job, repeats=3)], state, chunk=8) == ()


def test_a_baseline_is_timed_alone_only_without_variants() -> None:
    measure = MeasureSpec(prompts=4, timed_prompts=2, repeats=3)
    timed = {job.cell_id: job.timed_prompts for job in jobs_of([BASE, SPOT, OTHER_SEED], measure)}
    assert timed == {BASE.cell_id: 0, SPOT.cell_id: 2, OTHER_SEED.cell_id: 2}


def test_a_stored_job_whose_id_is_not_its_cells_is_refused() -> None:
    data = msgspec.json.encode(Job(cell=SPOT, prompts=1))
    assert msgspec.json.decode(data, type=Job) == Job(cell=SPOT, prompts=1)
    with pytest.raises(ValueError, match="cell_id"):
        msgspec.json.decode(data.replace(b'"budget":4', b'"budget":5'), type=Job)


def test_timed_prompts_take_whole_devices() -> None:
    grid = GridSpec(target=("t",), task=("t",))
    spec = SweepSpec(name="s", grid=grid, resources=ResourceSpec(gpus=0.5))
    Plan(spec=spec, jobs=(Job(cell=SPOT, prompts=1),))
    with pytest.raises(ValueError, match=r"resources\.gpus is 0\.5: allowed is a whole number when prompts are timed"):
        Plan(spec=spec, jobs=(Job(cell=SPOT, prompts=1, timed_prompts=1),))
