"""Every benchmark runs and prints strict JSON lines that say what it ran on; no figure is asserted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = sorted((Path(__file__).parents[1] / "bench").glob("bench_*.py"))


def refused(constant: str) -> float:
    """NaN and infinities are no JSON."""
    raise ValueError(constant)


@pytest.mark.slow
@pytest.mark.parametrize("path", BENCHES, ids=lambda path: path.stem)
def test_a_benchmark_prints_json_lines(path: Path) -> None:
    ended = subprocess.run((sys.executable, str(path)), capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stderr[-2000:]
    lines = [json.loads(line, parse_constant=refused) for line in ended.stdout.splitlines()]
    assert lines
    assert all(line["bench"] and line["ran_on"] for line in lines)
