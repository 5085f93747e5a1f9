"""After a run, report and mirror are made where they are stale and left alone where they are not."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from orchestrator import finish as module
from orchestrator.finish import finish
from orchestrator.outcome import RunOutcome
from sweeps.belongs import read_jobs, read_spec
from sweeps.results import decode_result, encode_result
from sweeps.store import RunDir
from tests.synthetic import Faults, grid, sweep
from tests.unit.tracking.test_db import tables

NOTHING = RunOutcome(done=0, failed=0, skipped=9, left=0)
CELLS = grid(tasks=("tiny-arith",), budgets=(4,), temperatures=(0.0,))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run whose rows are all there, and nothing made from them yet."""
    return RunDir(sweep(CELLS, prompts=3, faults=Faults(failed=1)).write(tmp_path / "run"))


@pytest.fixture
def mirrored(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Exit codes that the mirror will give, first to last; a code is used up by each mirroring."""
    codes = [0] * 9

    def mirror(of: RunDir, tracking_uri: str = "") -> int:
        of.mlflow_db.unlink(missing_ok=True)
        tables(f"sqlite:///{of.mlflow_db}")
        return codes.pop(0)

    monkeypatch.setattr(module, "mirror", mirror)
    return codes


def made(run: RunDir, codes: list[int], outcome: RunOutcome = NOTHING) -> tuple[int, bool, bool]:
    """Exit code of `finish`, and whether it wrote the report and the mirror."""
    before = run.report.stat().st_ino if run.report.exists() else None  # each writing is a new file
    left = len(codes)
    code = finish(run, outcome)
    return code, run.report.stat().st_ino != before, len(codes) < left


def test_a_run_killed_before_its_report_gets_it_and_the_next_does_nothing(
    run: RunDir, mirrored: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    run.report.write_text("the page of an earlier start")
    assert made(run, mirrored) == (0, True, True)
    assert "nothing was missing" not in capsys.readouterr().out
    assert made(run, mirrored) == (0, False, False)
    assert capsys.readouterr().out == f"nothing was missing; report: {run.report}\n"


def test_a_mirror_that_failed_is_tried_again_alone(
    run: RunDir, mirrored: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    mirrored[:2] = [3, 3]
    assert made(run, mirrored) == (3, True, True)
    assert made(run, mirrored) == (3, False, True)
    assert "nothing was missing" not in capsys.readouterr().out
    assert made(run, mirrored) == (0, False, True)
    assert made(run, mirrored) == (0, False, False)


def test_a_mirror_elsewhere_or_gone_is_written(
    run: RunDir, mirrored: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(run, mirrored)
    run.mlflow_db.unlink()
    assert made(run, mirrored) == (0, False, True)
    run.mlflow_db.write_bytes(b"garbage" * 1000)
    assert made(run, mirrored) == (0, False, True)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracking.example:5000")
    assert made(run, mirrored) == (0, False, True)
    assert made(run, mirrored) == (0, False, False)


def test_failures_alone_are_news_also_when_their_file_keeps_its_size(
    run: RunDir, mirrored: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    failed = replace(NOTHING, failed=1)
    assert made(run, mirrored, failed) == (1, True, True)
    path = next(p for p in sorted(run.results.glob("*/*-decode-*")) if decode_result(p.read_bytes()).failures)
    result = decode_result(path.read_bytes())
    again = replace(result.failures[0], message=result.failures[0].message.replace("passes", "misses"))
    size = path.stat().st_size
    path.write_bytes(encode_result(replace(result, failures=(again,))))
    assert path.stat().st_size == size
    assert made(run, mirrored, failed) == (1, True, True)
    assert "misses the limit" in run.report.read_text()
    assert made(run, mirrored, failed) == (1, False, False)
    assert "nothing was missing" not in capsys.readouterr().out


def test_an_edited_title_and_a_dropped_cell_are_news(run: RunDir, mirrored: list[int]) -> None:
    made(run, mirrored)
    run.spec.write_bytes(msgspec.json.encode(replace(read_spec(run), title="Another title")))
    assert made(run, mirrored) == (0, True, True)
    assert "Another title" in run.report.read_text()
    run.cells.write_bytes(msgspec.json.encode(read_jobs(run)[:-1]))
    assert made(run, mirrored) == (0, True, True)
    assert made(run, mirrored) == (0, False, False)


def test_a_report_that_was_deleted_is_made_and_the_mirror_needs_nothing(run: RunDir, mirrored: list[int]) -> None:
    made(run, mirrored)
    run.report.unlink()
    assert made(run, mirrored) == (0, True, False)  # the same bytes as before


def test_notes_that_cannot_be_read_count_for_nothing(run: RunDir, mirrored: list[int]) -> None:
    made(run, mirrored)
    run.fresh.write_bytes(b"\xff{")
    assert made(run, mirrored) == (0, True, True)
