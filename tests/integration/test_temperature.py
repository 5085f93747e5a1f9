"""The temperature study end to end in this very process: run, aggregate, report, and what its numbers must obey."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reports.frames import Frames, load
from reports.model import Lines
from reports.sections.temperature import info

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SMALL = ("grid.task=tiny-arith", "grid.temperature=[0,3]", "grid.max_new_tokens=48", "measure.prompts=3")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a small study on the shipped target."""
    out = tmp_path_factory.mktemp("temperature") / "run"
    command = (sys.executable, "-m", "orchestrator.cli", "run", "temperature", *SMALL, "--pool", "inline")
    ended = subprocess.run((*command, "--out", str(out)), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return out


@pytest.fixture(scope="module")
def frames(run: Path) -> Frames:
    """The run, read."""
    return load(run)


def test_every_commit_of_every_cell_was_watched(frames: Frames) -> None:
    assert len(frames.results) == 3 + 2 * 3
    for result in frames.results:
        for row in frames.rows[result.cell_id].generations.values():
            assert row.drawn is not None
            assert len(row.drawn.argmax) == len(row.order) == row.tokens_generated


def test_the_numbers_obey_what_the_theory_says(frames: Frames) -> None:
    for result in frames.results:
        decode, draws = result.cell.decode, result.draws
        assert None not in (draws.argmax.value, draws.bound.value, draws.agreement.value, draws.distance.value)
        if decode.temperature == 0:
            assert draws.argmax.value == 1.0
            assert draws.agreement.value == draws.bound.value == pytest.approx(1 - (draws.distance.value or 0))
        else:
            assert (draws.argmax.value or 0) < 1
            assert 0 < (draws.distance.value or 0) < 1
        assert not (decode.noise == "coupled" and draws.below_bound)


def test_coupled_outputs_are_the_draft_free_ones(frames: Frames) -> None:
    for result in frames.results:
        if result.cell.decode.noise == "coupled" and not result.cell.is_baseline:
            assert result.claim_holds is True


def test_the_section_is_on_the_page_and_the_numbers_in_the_exports(run: Path, frames: Frames) -> None:
    section = info(frames)
    assert section is not None
    lines = next(part for part in section.groups[0].parts if isinstance(part, Lines))
    assert any(text.startswith("From T = 2 on") for _, text in lines.lines)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert 'id="temperature"' in page
    rows = frames.cells.set_index("cell_id")
    for result in frames.results:
        assert rows.loc[result.cell_id, "stale_agreement"] == result.draws.agreement.value


def test_watching_adds_little_to_the_files(run: Path) -> None:
    for path in run.glob("results/*/*.json"):
        rows = json.loads(path.read_text(encoding="utf-8"))["result"]["generations"]
        whole, drawn = (sum(len(json.dumps(part)) for part in parts) for parts in (rows, [r["drawn"] for r in rows]))
        assert drawn < whole / 3
