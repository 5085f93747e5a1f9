"""The ladder end to end in this very process: its section against the result files, read as plain JSON."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from reports.frames import load
from reports.model import Table
from reports.sections import acceptance, ladder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SMALL = (
    *("grid.task=tiny-arith", "grid.tau=0.95", "grid.max_new_tokens=64"),
    *("measure.prompts=3", "measure.timed_prompts=2", "measure.repeats=2"),
)
RUNGS = ("threshold", "sets", "sets-floor", "sets-cross", "sets-refresh", "sets-product")
NAMES = (
    *("standard decoding", "threshold decoding", "+ set drafter and tree", "+ mass floor 0.03"),
    *("+ cross-block", "+ draft refresh", "+ product, max-commit"),
)
Rows = dict[int, dict[str, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a small ladder on the shipped target."""
    out = tmp_path_factory.mktemp("ladder") / "run"
    command = (sys.executable, "-m", "orchestrator.cli", "run", "ladder", *SMALL, "--pool", "inline")
    ended = subprocess.run((*command, "--out", str(out)), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return out


@pytest.fixture(scope="module")
def stored(run: Path) -> dict[str, tuple[Rows, Rows]]:
    """Generations and timings by prompt, for each rung."""
    found = {}
    for job in json.loads((run / "cells.json").read_text()):
        cell = job["cell"]
        free = "standard" if cell["decode"]["commit"] == "standard" else "threshold"
        name = free if cell["drafter"]["kind"] == "none" else cell["drafter"]["name"]
        files = sorted((run / "results" / job["cell_id"]).glob("*.json"))
        results = [json.loads(path.read_text())["result"] for path in files]
        found[name] = tuple(
            {row["prompt_index"]: row for result in results for row in result[kind]}
            for kind in ("generations", "timings")
        )
    return found  # type: ignore[return-value]


@pytest.fixture(scope="module")
def tables(run: Path) -> dict[str, dict[str, str]]:
    """The texts of the section's rows by rung and head, of both tables."""
    section = ladder.info(load(run))
    assert section is not None
    rows: dict[str, dict[str, str]] = {}
    for table in (part for part in section.groups[0].parts if isinstance(part, Table)):
        ((_, own),) = table.groups
        for row in own:
            heads = [head.name for head in table.heads]
            rows.setdefault(row[0].text, {}).update({head: value.text for head, value in zip(heads, row, strict=True)})
    return rows


def kept(row: dict[str, Any]) -> list[int]:
    return list(row["output_ids"][: row["tokens_kept"]])


def test_every_rung_has_its_row(tables: dict[str, dict[str, str]]) -> None:
    assert tuple(tables) == NAMES
    assert [row["Claim"] for row in tables.values()] == ["lossless"] * 6 + ["lossy"]


def test_forwards_and_outputs_are_those_of_the_files(
    tables: dict[str, dict[str, str]], stored: dict[str, tuple[Rows, Rows]]
) -> None:
    free = stored["threshold"][0]
    for name, rung in zip(("standard", *RUNGS), NAMES, strict=True):
        own = stored[name][0]
        forwards = sum(row["counters"]["nfe"] for row in own.values())
        assert tables[rung]["NFE"] == f"{forwards / 3:.1f}"
        if name in ("standard", "threshold"):
            continue
        assert tables[rung]["NFE reduction"] == f"{sum(r['counters']['nfe'] for r in free.values()) / forwards:.2f}"
        same = sum(kept(own[i]) == kept(free[i]) for i in range(3))
        assert tables[rung]["Identical to threshold"] == f"{100 * same / 3:.1f}"
        if name != "sets-product":
            assert same == 3
            assert [own[i]["order"] for i in range(3)] == [free[i]["order"] for i in range(3)]


def test_throughput_over_standard_decoding_is_the_product_of_two_links(
    tables: dict[str, dict[str, str]], stored: dict[str, tuple[Rows, Rows]]
) -> None:
    assert stored["standard"][1] == {}  # its seconds were taken beside threshold decoding
    links = {}
    for name in RUNGS:
        rows = stored[name][1].values()
        own, other = (
            sum(row[tokens] for row in rows) / sum(median(row[seconds]) for row in rows)
            for tokens, seconds in (("tokens_kept", "variant_seconds"), ("baseline_tokens_kept", "baseline_seconds"))
        )
        links[name] = own / other
    for name, rung in zip(RUNGS, NAMES[1:], strict=True):
        pace = links["threshold"] * (1 if name == "threshold" else links[name])
        assert tables[rung]["Over standard"].removesuffix(" \u2020") == f"{pace:.2f}"
    assert all(
        row["baseline_nfe"] == stored["standard"][0][i]["counters"]["nfe"] for i, row in stored["threshold"][1].items()
    )


def test_product_is_lossy_beside_all_others(run: Path) -> None:
    section = acceptance.info(load(run))
    assert section is not None
    (table,) = [part for part in section.groups[0].parts if isinstance(part, Table)]
    claims = {row[1].text: row[2].text for _, rows in table.groups for row in rows}
    assert claims == {"exact": "lossless", "product": "lossy"}
