"""Parts of the GPU checks by themselves: the result file, what counts as a problem, drafters, floors by hand."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeps.records import Counters, GenerationRecord
from sweeps.spec import DecodeSpec
from tests.gpu.floors import Rates, layer_weights, operations
from tests.gpu.report import Report
from tests.gpu.setting import TINY, Deadline, Row, Setting
from tests.gpu.zoo import Case, drafter_specs, identity_row
from tests.toys import ToyTarget
from workers.catalog import DRAFTERS, TARGETS
from workers.targets.published import SDAR_1_7B, SDAR_8B

SETTING = Setting(device="cpu", small=True, seed=0)


def test_the_file_is_whole_after_every_row_and_a_failing_part_stops_no_other(tmp_path: Path) -> None:
    report = Report(tmp_path / "r.json", SETTING, ("one", "two", "three", "four"), ())

    def stored() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((tmp_path / "r.json").read_text())
        return found

    def failing(_: Setting) -> Iterator[Row]:
        yield {"kind": "a", "problems": []}
        assert [row["kind"] for row in stored()["parts"]["one"]["rows"]] == ["a"]  # a kill would leave this
        assert stored()["parts"]["one"]["state"] == "running"
        raise RuntimeError("no such kernel")

    def endless(_: Setting) -> Iterator[Row]:
        while True:
            time.sleep(0.01)
            yield {"kind": "b", "problems": []}

    def fine(_: Setting) -> Iterator[Row]:
        yield {"kind": "c", "problems": ["two is not one"]}

    for name, part, seconds in (("one", failing, 60.0), ("two", endless, 0.05), ("three", fine, 60.0)):
        report.run(name, part, SETTING, Deadline.after(seconds))
    assert stored()["finished"] is False
    assert report.finish() == 1
    states = {name: part["state"] for name, part in stored()["parts"].items()}
    assert states == {"one": "failed", "two": "cut", "three": "done", "four": "waiting"}
    assert stored()["complete"] is False
    assert stored()["problems"] == ["one: RuntimeError: no such kernel", "two is not one"]
    assert len(stored()["parts"]["two"]["rows"]) <= 6
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def record(ids: tuple[int, ...], margin: float) -> GenerationRecord:
    """Tokens committed from left to right, one a forward, each by the same margin."""
    count = len(ids)
    return GenerationRecord(
        prompt_id="p",
        prompt_index=0,
        prompt_tokens=3,
        output_ids=ids,
        tokens_generated=count,
        tokens_kept=count,
        finish_reason="length",
        text="",
        correct=None,
        score_reason="",
        order=tuple(range(count)),
        rounds=tuple(range(count)),
        margins=(margin,) * count,
        counters=Counters(
            nfe=count,
            prefill_forwards=0,
            prefill_positions=0,
            kv_passes=0,
            positions=0,
            accepted=(0,) * count,
            drafted=(0,) * count,
            merged=0,
            drafter_calls=0,
        ),
    )


@pytest.mark.parametrize(
    ("gap", "margin", "problems"),
    [
        (1e-12, 0.0, []),  # rounding explains it: reported, no problem
        (1e-12, 1e-9, ["equal to draft-free ones"]),  # a margin should have prevented it
        (0.5, 0.0, ["BUG"]),
        (0.5, 1e-9, ["BUG", "equal to draft-free ones"]),
    ],
)
def test_what_counts_as_a_problem(gap: float, margin: float, problems: list[str]) -> None:
    target = ToyTarget()
    case = Case(target=target, name="toy", spec=DecodeSpec(), prompts={}, seed=0)
    row = identity_row(case, "ssd", 8, margin, {0: record((1, 2, 3), gap)}, {0: record((1, 4, 3), gap)})
    assert [problem.endswith(end) for problem, end in zip(row["problems"], problems, strict=True)] == [True] * len(
        problems
    )
    assert (row["n"], row["identical"], row["match_rate"]) == (1, 0, 0.0)
    assert row["mismatches"][0]["step"] == 1
    assert row["mismatches"][0]["margin"] == gap


def test_every_drafter_that_can_run_is_checked() -> None:
    kinds = [spec.kind for spec in drafter_specs(SETTING, "tiny-sdar")]
    shipped = {"", *TARGETS["tiny-sdar"].artifacts}
    runnable = {kind: entry for kind, entry in DRAFTERS.items() if entry.artifact in shipped and not entry.oracle}
    assert kinds == [kind for kind in runnable if kind != "none"]
    assert [spec.kind for spec in drafter_specs(replace(SETTING, drafters=("spot",)), "tiny-sdar")] == ["spot"]


def test_floors_are_counted_from_the_widths() -> None:
    per_layer = 4096 * 4096 * 2 + 2 * 4096 * 1024 + 3 * 4096 * 12288  # q and o, k and v, the MLP
    norms = 2 * 4096 + 2 * 128
    assert layer_weights(SDAR_8B.shape) == 36 * (per_layer + norms) + 4096
    assert operations(SDAR_8B.shape, 10, 100, 32) == 10 * (2 * 36 * per_layer + 36 * 4 * 32 * 128 * 132)
    assert 1.3e9 < layer_weights(SDAR_1_7B.shape) < 1.5e9
    floors = Rates(bytes_s=2.0, operations_s=4.0).floors(TINY, 1, 0, 32)
    assert floors["bytes_floor_s"] == layer_weights(TINY)  # two bytes a weight at two bytes a second
    assert floors["operations_floor_s"] == operations(TINY, 1, 0, 32) / 4
