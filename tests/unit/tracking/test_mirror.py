"""What a sync writes, over a store in memory: each cell once, changed results anew, people's tags kept."""

from dataclasses import replace

import pytest

from orchestrator.tracking_mirror import PARENT, mirror
from sweeps.aggregate import aggregate_all
from sweeps.belongs import History
from sweeps.origin import Origin
from sweeps.spec import GridSpec, SweepSpec
from sweeps.store import RunDir
from tests.memory_store import Memory
from tests.synthetic import Faults, grid, sweep

SPEC = SweepSpec(name="quick", title="A title", grid=GridSpec(target=("t",), task=("a",)))
CELLS = grid(tasks=("tiny-arith",), budgets=(4, 8), temperatures=(0.0,))
HISTORY = History(starts=(Origin(code_digest="c", sources={}, versions={}, host="h", started_at=5.0),))


@pytest.fixture
def run(tmp_path):
    (tmp_path / "report.html").write_text("page")
    (tmp_path / "spec.json").write_text("{}")
    (tmp_path / "report-data").mkdir()
    (tmp_path / "report-data/cells.csv").write_text("a")
    return RunDir(tmp_path)


def results(faults=None, prompts=3):
    made = sweep(CELLS, prompts=prompts, faults=faults or Faults())
    return aggregate_all(made.jobs, made.rows())


def test_one_parent_and_one_child_a_cell(run):
    store = Memory()
    done = mirror(store, run, SPEC, HISTORY, results())
    assert (done.written, done.unchanged, done.waiting, done.trouble) == (7, 0, 0, "")
    parent, *children = store.active()
    assert parent["files"] == ["spec.json", "report.html", "report-data/cells.csv"]
    assert parent["metrics"]["cells_complete"] == 7
    assert parent["tags"]["title"] == "A title"
    assert {child["tags"][PARENT] for child in children} == {"r0"}
    assert sorted(child["tags"]["cell_id"] for child in children) == sorted(cell.cell_id for cell in CELLS)


def test_a_second_sync_changes_nothing(run):
    store = Memory()
    mirror(store, run, SPEC, HISTORY, results())
    before = repr(store)
    done = mirror(store, run, SPEC, HISTORY, results())
    assert (done.written, done.unchanged) == (0, 7)
    assert repr(store) == before


def parent_and_children(store):
    (parent_id,) = [i for i, r in store.all.items() if not r["deleted"] and "cell_id" not in r["tags"]]
    children = [r for r in store.active() if "cell_id" in r["tags"]]
    assert {child["tags"][PARENT] for child in children} == {parent_id}
    return store.all[parent_id], children


def test_a_new_page_makes_a_new_parent_above_the_same_children(run):
    store = Memory()
    mirror(store, run, SPEC, HISTORY, results())
    _, before = parent_and_children(store)
    run.report.write_text("a newer page")
    assert mirror(store, run, SPEC, HISTORY, results()).written == 0
    parent, children = parent_and_children(store)
    assert parent["files"].count("report.html") == 1
    assert store.all["r0"]["deleted"]
    assert all(now is then for now, then in zip(children, before, strict=True))


def test_an_edited_sweep_has_its_own_numbers_and_none_of_the_cells_that_left(run):
    store = Memory()
    mirror(store, run, SPEC, HISTORY, results())
    store.all["r0"]["tags"]["mlflow.note.content"] = "look at this"
    left = results()[-1].cell_id
    done = mirror(store, run, replace(SPEC, title="Another"), HISTORY, results()[:-1])
    assert (done.written, done.unchanged, done.removed) == (0, 6, 1)
    parent, children = parent_and_children(store)
    assert parent is not store.all["r0"]
    assert parent["metrics"]["cells"] == 6
    assert parent["metrics"]["prompts"] == 18
    assert parent["tags"]["title"] == "Another"
    assert parent["tags"]["mlflow.note.content"] == "look at this"
    assert left not in {child["tags"]["cell_id"] for child in children}
    assert len(children) == 6
    before = repr(store)
    assert mirror(store, run, replace(SPEC, title="Another"), HISTORY, results()[:-1]).removed == 0
    assert repr(store) == before


def test_a_sync_that_dies_while_the_parent_is_replaced_is_put_right_by_the_next(run):
    store = Memory()
    mirror(store, run, SPEC, HISTORY, results())
    store.all["r0"]["tags"]["mlflow.note.content"] = "look at this"
    run.report.write_text("a newer page")
    store.broken = "log"
    with pytest.raises(ConnectionError):
        mirror(store, run, SPEC, HISTORY, results())
    store.broken = ""
    mirror(store, run, SPEC, HISTORY, results())
    parent, children = parent_and_children(store)
    assert parent["tags"]["mlflow.note.content"] == "look at this"
    assert len(children) == 7


def test_a_changed_result_replaces_its_run_and_keeps_peoples_tags(run):
    store = Memory()
    mirror(store, run, SPEC, HISTORY, results())
    for child in store.all.values():
        child["tags"]["mlflow.note.content"] = "look at this"
    done = mirror(store, run, SPEC, HISTORY, results(prompts=5))
    assert (done.written, done.unchanged) == (7, 0)
    assert len(store.active()) == 8
    assert all(child["metrics"]["n"] == 5 for child in parent_and_children(store)[1])
    assert all(child["tags"]["mlflow.note.content"] == "look at this" for child in store.active())


def test_a_run_that_was_cut_short_is_written_anew(run):
    store = Memory()
    mirror(store, run, SPEC, HISTORY, results())
    cut = list(store.all.values())[3]
    del cut["tags"]["result_digest"]
    cut["metrics"] = {}
    assert mirror(store, run, SPEC, HISTORY, results()).written == 1
    assert cut["deleted"]
    assert len(store.active()) == 8


def test_duplicates_are_reduced_to_one(run):
    store = Memory()
    mirror(store, run, SPEC, HISTORY, results())
    store.all["twin"] = {**list(store.all.values())[2], "deleted": False}
    assert mirror(store, run, SPEC, HISTORY, results()).written == 0
    assert len(store.active()) == 8


def test_a_deleted_parent_gets_a_successor_with_all_its_children(run):
    store = Memory()
    mirror(store, run, SPEC, HISTORY, results())
    store.delete("r0")
    mirror(store, run, SPEC, HISTORY, results())
    parents = [run_id for run_id, r in store.all.items() if not r["deleted"] and "cell_id" not in r["tags"]]
    assert len(parents) == 1
    children = [r for r in store.active() if "cell_id" in r["tags"]]
    assert len(children) == 7
    assert {child["tags"][PARENT] for child in children} == set(parents)


def test_cells_without_results_wait(run):
    store = Memory()
    done = mirror(store, run, SPEC, HISTORY, results(Faults(empty_cells=2)))
    assert (done.written, done.waiting) == (5, 2)


def test_a_deleted_experiment_is_named_with_its_way_back_and_the_next_name_taken(run):
    store = Memory()
    mirror(store, run, SPEC, HISTORY, results())
    store.experiments["quick"] = replace(store.experiments["quick"], active=False)
    for found in store.all.values():
        found["deleted"] = True
    done = mirror(store, run, SPEC, HISTORY, results())
    assert done.notes == (
        "experiment 'quick' was deleted (mlflow experiments restore --experiment-id 1 brings it back)",
        "writing to experiment 'quick (2)'",
    )
    assert done.written == 7
    assert mirror(store, run, SPEC, HISTORY, results()).written == 0


def test_files_that_cannot_be_attached_are_said_and_tried_again(run):
    store = Memory(broken="attach")
    done = mirror(store, run, SPEC, HISTORY, results())
    assert done.written == 7
    assert done.trouble == "the report could not be attached: read-only: spec.json"
    store.broken = ""
    assert mirror(store, run, SPEC, HISTORY, results()).trouble == ""
    assert "report.html" in parent_and_children(store)[0]["files"]


def test_a_store_that_dies_in_the_middle_is_filled_later(run):
    store = Memory(broken="log")
    with pytest.raises(ConnectionError):
        mirror(store, run, SPEC, HISTORY, results())
    store.broken = ""
    assert mirror(store, run, SPEC, HISTORY, results()).written == 7
    assert len(store.active()) == 8


def test_long_params_are_attached_in_full(run):
    cells = tuple(replace(cell, target=replace(cell.target, path="p" * 600)) for cell in CELLS[:2])
    made = sweep(cells, prompts=1, timed=0)
    store = Memory()
    mirror(store, run, SPEC, HISTORY, aggregate_all(made.jobs, made.rows()))
    assert [child["files"] for child in store.active()[1:]] == [["params.json"]] * 2


def test_two_sweeps_in_one_store_do_not_mix(run):
    store = Memory()
    other = History(starts=(replace(HISTORY.starts[0], started_at=6.0),))
    mirror(store, run, SPEC, HISTORY, results())
    assert mirror(store, run, SPEC, other, results()).written == 7
    assert len(store.active()) == 16
