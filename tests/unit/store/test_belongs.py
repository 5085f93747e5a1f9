"""Whose directory it is, and what changed since the last start."""

from dataclasses import replace
from pathlib import Path

import pytest

from sweeps.belongs import check_belongs, read_history, read_jobs, read_spec, record_start, spec_changes
from sweeps.effort import MeasureSpec, ResourceSpec
from sweeps.origin import Origin, code_changes, code_digest, library_versions, origin_of, source_digests
from sweeps.spec import DrafterSpec
from sweeps.store import RunDir, atomic_write
from tests.fake_plan import a_plan

ORIGIN = Origin(
    code_digest="a" * 20,
    sources={"workers/runner.py": "1", "sweeps/cell.py": "2"},
    versions={"torch": "2.13", "transformers": "5.1", "ray": "2.60"},
    command=("spot", "run", "s.yaml"),
)


def test_a_new_or_empty_directory_is_ours(tmp_path: Path) -> None:
    check_belongs(RunDir(tmp_path), "sweep")
    check_belongs(RunDir(tmp_path / "none"), "sweep")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_other_things_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"is no run directory but holds thesis\.tex"):
        check_belongs(RunDir(tmp_path), "sweep")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match="is a file"):
        check_belongs(RunDir(tmp_path / "thesis.tex"), "sweep")


def test_another_sweeps_directory_is_refused(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    record_start(run, a_plan(tmp_path, name="first"), ORIGIN)
    before = {path: path.read_bytes() for path in run.root.iterdir()}
    with pytest.raises(ValueError, match="belongs to sweep 'first', not 'second'"):
        record_start(run, a_plan(tmp_path, name="second"), ORIGIN)
    assert {path: path.read_bytes() for path in run.root.iterdir()} == before


def test_a_start_that_died_before_it_wrote_the_sweep_is_ours(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.lock.touch()
    run.events.touch()
    (tmp_path / ".tmp-spec.json-7").touch()
    check_belongs(run, "sweep")


def test_what_was_started_is_written_once(tmp_path: Path) -> None:
    run, plan = RunDir(tmp_path / "run"), a_plan(tmp_path)
    assert record_start(run, plan, ORIGIN) == ()
    assert record_start(run, plan, replace(ORIGIN, started_at=5.0)) == ()
    assert read_spec(run) == plan.spec
    assert read_jobs(run) == plan.jobs
    assert read_history(run).starts == (ORIGIN,)
    record_start(run, plan, replace(ORIGIN, command=("spot", "run", "s.yaml", "--retry-failed")))
    assert len(read_history(run).starts) == 2


def test_an_edited_sweep_goes_on_with_its_difference_named(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    record_start(run, a_plan(tmp_path, cells=3, prompts=4), ORIGIN)
    changes = record_start(run, a_plan(tmp_path, cells=2, prompts=6), ORIGIN)
    assert changes == ("spec measure.prompts: 4 -> 6", "cells no longer wanted: 1 (their results are kept)")
    changes = record_start(run, a_plan(tmp_path, cells=4, prompts=6), ORIGIN)
    assert changes == ("cells added: 2",)
    assert len(read_jobs(run)) == 4


def test_differences_of_sweeps_name_list_members_and_what_came_or_went(tmp_path: Path) -> None:
    spec = a_plan(tmp_path).spec
    cell = a_plan(tmp_path).jobs[0].cell
    before = replace(spec, targets=(cell.target,))
    after = replace(spec, targets=(replace(cell.target, digest="x"), replace(cell.target, name="b")), title="T")
    changes = spec_changes(before, after)
    assert 'spec targets[fake].digest: "digest of fake" -> "x"' in changes
    assert 'spec title: "" -> "T"' in changes
    assert "target b: added" in changes
    assert not any("(absent)" in line for line in changes)
    assert "target b: left out" in spec_changes(after, before)
    assert spec_changes(after, after) == ()
    assert spec_changes(spec, replace(spec, measure=MeasureSpec(prompts=4, chunk=2, timed_prompts=1, repeats=1))) == (
        "spec measure.timed_prompts: 0 -> 1",
    )


def test_a_drafter_that_goes_is_one_line_and_resources_are_none(tmp_path: Path) -> None:
    before = replace(
        a_plan(tmp_path).spec,
        drafters=tuple(DrafterSpec(name=name, kind=name) for name in ("ssd", "oracle_token")),
        resources=ResourceSpec(workers=1),
    )
    before = replace(before, grid=replace(before.grid, drafter=("ssd", "oracle_token")))
    after = replace(before, drafters=(replace(before.drafters[0], budget=4),), resources=ResourceSpec(gpus=1))
    after = replace(after, grid=replace(after.grid, drafter=("ssd",)))
    assert spec_changes(before, after) == ("drafter oracle_token: left out", "spec drafters[ssd].budget: 8 -> 4")
    assert spec_changes(after, before) == ("drafter oracle_token: added", "spec drafters[ssd].budget: 4 -> 8")
    assert spec_changes(before, replace(before, resources=ResourceSpec())) == ()
    turned = replace(before, grid=replace(before.grid, drafter=("oracle_token", "ssd")))
    assert spec_changes(before, turned) == ('spec grid.drafter: ["ssd","oracle_token"] -> ["oracle_token","ssd"]',)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            {"code_digest": "b" * 20, "sources": {**ORIGIN.sources, "workers/runner.py": "9"}},
            "code changed: workers/runner",
        ),
        ({"code_digest": "b" * 20, "sources": {"sweeps/cell.py": "2"}}, r"code removed: workers/runner\.py"),
        ({"versions": {**ORIGIN.versions, "torch": "2.14"}}, r"torch version: 2\.13 -> 2\.14"),
        ({"versions": {**ORIGIN.versions, "transformers": "6.0"}}, r"transformers version: 5\.1 -> 6\.0"),
    ],
)
def test_other_code_or_libraries_are_refused_by_name_unless_accepted(
    tmp_path: Path, change: dict[str, object], named: str
) -> None:
    run, plan = RunDir(tmp_path / "run"), a_plan(tmp_path)
    record_start(run, plan, ORIGIN)
    changed = replace(ORIGIN, **change)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=named):
        record_start(run, plan, changed)
    assert read_history(run).starts == (ORIGIN,)
    assert any(
        named.split(r"\.")[0].split(":")[0] in line for line in record_start(run, plan, changed, accept_changes=True)
    )
    assert read_history(run).starts == (ORIGIN, changed)
    assert record_start(run, plan, changed) == ()


def test_a_library_that_cannot_change_a_number_may_change() -> None:
    assert code_changes(ORIGIN, replace(ORIGIN, versions={**ORIGIN.versions, "ray": "2.99"}, host="elsewhere")) == ()


def test_the_origin_of_this_process() -> None:
    origin = origin_of(("spot", "run"), 1.0)
    assert "workers/actor.py" in origin.sources
    assert "sweeps/cell.py" in origin.sources
    assert not any(name.startswith(("orchestrator", "reports", "tests")) for name in origin.sources)
    assert origin.code_digest == code_digest()
    assert origin.sources == source_digests()
    assert set(library_versions()) >= {"torch", "transformers", "python"}
    assert code_changes(origin, origin) == ()


@pytest.mark.parametrize("name", ["spec", "provenance", "cells"])
def test_a_damaged_file_of_ours_is_named(tmp_path: Path, name: str) -> None:
    run, plan = RunDir(tmp_path / "run"), a_plan(tmp_path)
    record_start(run, plan, ORIGIN)
    path = getattr(run, name)
    atomic_write(path, path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=f"{path.name} cannot be read"):
        record_start(run, plan, ORIGIN)


def test_reading_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is no run directory: spec\.json is missing"):
        read_spec(RunDir(tmp_path))
