"""A directory whose cell ids are of another version: said once, by whatever reads it, and nothing is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from sweeps.belongs import check_belongs, read_history, read_jobs, read_spec, record_start
from sweeps.cell import ID_VERSION
from sweeps.origin import Origin
from sweeps.store import RunDir
from tests.fake_plan import a_plan

ORIGIN = Origin(code_digest="a" * 20, sources={}, versions={}, command=("spot", "run", "s.yaml"))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "run")
    record_start(made, a_plan(tmp_path), ORIGIN)
    return made


def edit(path: Path, **values: Any) -> None:
    """Set (or with None: remove) keys of a JSON file, of every entry where it is a list."""
    content = json.loads(path.read_bytes())
    for entry in content if isinstance(content, list) else [content]:
        entry.update(values)
        for name in [name for name, value in values.items() if value is None]:
            del entry[name]
    path.write_text(json.dumps(content))


def refused(run: RunDir) -> set[str]:
    """What every reader says."""
    before = {path: path.read_bytes() for path in run.root.iterdir()}
    said = set()
    plan = a_plan(run.root.parent)
    for read in (read_spec, read_jobs, read_history, lambda own: check_belongs(own, plan.spec.name)):
        with pytest.raises(ValueError, match="use that version or another --out") as error:
            read(run)
        said.add(str(error.value))
    for accept in (False, True):
        with pytest.raises(ValueError, match="use that version or another --out") as error:
            record_start(run, plan, ORIGIN, accept_changes=accept)
        said.add(str(error.value))
    assert {path: path.read_bytes() for path in run.root.iterdir()} == before
    return said


def test_the_version_is_written_down_and_ours_is_read(run: RunDir) -> None:
    assert json.loads(run.provenance.read_bytes())["id_version"] == ID_VERSION
    assert read_jobs(run)
    assert read_history(run).starts == (ORIGIN,)


@pytest.mark.parametrize(("version", "which"), [(1, "an earlier"), (ID_VERSION + 1, "a later")])
def test_another_version_is_refused_by_everybody_in_the_same_words(run: RunDir, version: int, which: str) -> None:
    edit(run.provenance, id_version=version)
    (line,) = refused(run)
    assert line == (
        f"{run.root} was made by {which} version (cell ids of version {version}, now {ID_VERSION}): "
        "use that version or another --out"
    )


def test_foreign_ids_without_a_version_are_of_an_earlier_one(run: RunDir) -> None:
    edit(run.provenance, id_version=None)
    edit(run.cells, cell_id="1c3234487a9cb23e0380")
    (line,) = refused(run)
    assert f"made by an earlier version (cell ids not of version {ID_VERSION})" in line


def test_cells_in_words_of_another_version_are_of_an_earlier_one(run: RunDir) -> None:
    edit(run.provenance, id_version=None)
    edit(run.cells, cell={"target": {"name": "t", "cache": 5}, "seed": "none"})
    assert len(refused(run)) == 1


def test_our_ids_without_a_version_are_ours_and_get_one(run: RunDir, tmp_path: Path) -> None:
    edit(run.provenance, id_version=None)
    assert record_start(run, a_plan(tmp_path), ORIGIN) == ()
    assert read_history(run).id_version == ID_VERSION


def test_a_damaged_cell_of_our_version_is_no_earlier_version(run: RunDir) -> None:
    edit(run.cells, cell_id="1c3234487a9cb23e0380")
    with pytest.raises(ValueError, match=r"cells\.json cannot be read"):
        read_jobs(run)


def test_files_that_cannot_be_read_are_said_to_be_that(run: RunDir) -> None:
    for path in (run.provenance, run.cells):
        path.write_bytes(b"\xff{")
    with pytest.raises(ValueError, match=r"cells\.json cannot be read"):
        read_jobs(run)
    with pytest.raises(ValueError, match=r"provenance\.json cannot be read"):
        read_history(run)
