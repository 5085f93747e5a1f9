"""`spot doctor` and `spot list`: the same words as a run's own refusals, nothing changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.machine import Gpu, Machine, this_machine

Spot = Callable[..., Any]


def findings(spot: Spot, *arguments: object) -> dict[str, tuple[str, str]]:
    """Level and text by subject."""
    ended = spot("doctor", "--json", *arguments)
    rows = [json.loads(line) for line in ended.out.splitlines()]
    found = {row["subject"]: (row["level"], row["text"]) for row in rows}
    assert ended.code == int(any(level == "problem" for level, _ in found.values()))
    return found


def test_machine_and_packages(spot: Spot) -> None:
    found = findings(spot)
    assert found["cores"][1].startswith(f"{this_machine().cores} usable of")
    assert {found[name][0] for name in ("torch", "ray", "mlflow")} == {"ok"}
    assert found["target tiny-sdar"][1]
    assert found["task tiny-arith"][0] == "ok"


def test_memory_is_told_in_one_unit(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(name="H", memory=85_520_809_984, free=2 * 1024**3)  # 2 GiB are 2.1 GB
    machine = Machine(cores=2, memory=3 * 1024**3, gpus=(gpu,))  # 3 GiB are 3.2 GB
    monkeypatch.setattr("orchestrator.doctor.this_machine", lambda: machine)
    found = findings(spot)
    assert found["memory"] == ("note", "3.2 GB (a local Ray and one worker take about 2 GB)")
    assert found["GPUs"] == ("ok", "H, 85.5 GB, 2.1 GB free")
    assert "GPU 0 H: 2.1 GB free, " in found["room for sdar-1.7b-b32"][1]
    assert not any("iB" in text for _, text in found.values())


def test_variables_that_redirect_are_listed(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    monkeypatch.setenv("MLFLOW_RUN_ID", "x")
    found = findings(spot)
    assert found["RAY_ADDRESS"] == (
        "note",
        "auto (ignored: a run uses a private Ray here unless --address says otherwise)",
    )
    assert found["MLFLOW_RUN_ID"][0] == "note"


def test_temporary_folder_that_is_too_deep_is_named_with_the_limit(
    spot: Spot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 90)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    level, text = findings(spot)["Ray's folder"]
    assert level == "note"
    assert f"TMPDIR {deep}: " in text
    assert "sockets allow" in text
    assert list(deep.iterdir()) == []


@pytest.mark.parametrize(
    ("resources", "level", "expected"),
    [
        ("resources.gpus=64", "problem", "a worker needs CPU 1, GPU 64 on one node"),
        ("resources.cpus=4000", "problem", "a worker needs CPU 4000 on one node"),
        ("resources.workers=1000", "note", "resources.workers is 1000, but only"),
        ("resources.workers=1", "ok", "1 of 1 CPU each"),
    ],
)
def test_demand_of_a_sweep_is_checked_as_a_run_checks_it(
    spot: Spot, sweep: Path, resources: str, level: str, expected: str
) -> None:
    found = findings(spot, sweep, resources)
    assert found["workers"][0] == level
    assert found["workers"][1].startswith(expected)


def test_table_for_people(spot: Spot) -> None:
    ended = spot("doctor")
    assert any(line.split()[:2] == ["ok", "cores"] for line in ended.out.splitlines())


@pytest.mark.parametrize(
    ("what", "expected"),
    [("targets", "tiny-sdar"), ("tasks", "jsonl:PATH"), ("drafters", "budget, gamma, hedge"), ("sweeps", "quick")],
)
def test_lists(spot: Spot, what: str, expected: str) -> None:
    ended = spot("list", what)
    assert ended.code == 0
    assert expected in ended.out
