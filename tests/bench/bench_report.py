"""Wall time, memory and size of the report of 1,000 synthetic cells: one JSON line.

python tests/bench/bench_report.py [cells] [prompts a cell]
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from reports import frames, render
from tests.bench.common import report
from tests.synthetic import grid, sweep


def main(cells: int = 1000, prompts: int = 8) -> None:
    """Write a run directory of synthetic results, then read and render it as `spot report` does."""
    wide = grid(targets=6, temperatures=(0.0, 0.5, 1.0, 1.5, 2.0), budgets=(2, 4, 8, 12, 16, 20))[:cells]
    with tempfile.TemporaryDirectory() as folder:
        root = sweep(wide, prompts=prompts, timed=3).write(Path(folder) / "run")
        stored = sum(path.stat().st_size for path in root.rglob("*.json"))
        started, cpu = time.monotonic(), time.process_time()
        read = frames.load(root)
        loaded = time.monotonic()
        page = render.render(root)
        finished = time.monotonic()
        figures = {
            "cells": len(read.cells),
            "prompts": len(read.prompts),
            "stored_mb": round(stored / 1e6, 1),
            "read_and_aggregate_s": round(loaded - started, 2),
            "report_s": round(finished - loaded, 2),
            "cpu_s": round(time.process_time() - cpu, 2),
            "report_mb": round(page.stat().st_size / 1e6, 2),
            "data_mb": round(sum(path.stat().st_size for path in (root / "report-data").iterdir()) / 1e6, 2),
            "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
        }
    report("report", **figures)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
