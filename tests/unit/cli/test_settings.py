"""Settings laid over a sweep, and planning of what is not on this machine yet."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweeps.load import packaged, settings_there_are

Spot = Callable[..., Any]

OF_ONE_SWEEP = ("transfer-8b",)  # settings that also say which drafters: they are tested with their sweep
ABSENT = {
    "grid.target=nobody/nothing": "not in the local hub cache: fetch it first (hf download nobody/nothing)",
    "grid.task=jsonl:nowhere.jsonl": "task jsonl:nowhere.jsonl: no file",
}


LAID_OVER_SDAR_8B = {
    "sdar-1.7b": "sdar-1.7b-b32",
    "llada2-mini": "llada2-mini",
    "llada-8b": "llada-8b",
    "dream-7b": "dream-7b",
}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def planned(spot: Spot, *arguments: object) -> dict[str, Any]:
    ended = spot("plan", *arguments, "--json")
    assert (ended.code, ended.err) == (0, "")
    plan: dict[str, Any] = json.loads(ended.out)
    return plan


def test_settings_merge_into_the_sweep_and_overrides_come_last(spot: Spot, sweep: Path) -> None:
    (sweep.parent / "large.yaml").write_text("grid: {budget: 9, max_new_tokens: 16}\nmeasure: {prompts: 3}\n")
    (sweep.parent / "few.yaml").write_text("measure: {prompts: 2}\n")
    plan = planned(spot, sweep, "--with", "large.yaml", "--with", "few.yaml", "grid.max_new_tokens=24")
    spec = plan["spec"]
    assert (spec["grid"]["budget"], spec["grid"]["max_new_tokens"], spec["measure"]["prompts"]) == ([9], [24], 2)
    assert spec["measure"]["chunk"] == 2  # what no settings name stays
    assert spec["name"] == "small-large-few"
    assert plan["directory"].endswith("runs/small-large-few")


def test_settings_may_name_the_sweep_anew(spot: Spot, sweep: Path) -> None:
    (sweep.parent / "large.yaml").write_text("name: mine\n")
    assert planned(spot, sweep, "--with", "large.yaml")["spec"]["name"] == "mine"


@pytest.mark.parametrize("command", ["plan", "run", "doctor"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid:\n  budget: 0\n", "wrong.yaml:2: grid.budget is 0: allowed"),
        ("grid:\n  temperture: 0\n", "wrong.yaml:2: unknown key grid.temperture"),
        ("measure:\n  prompts: 3\n  prompts: 4\n", "wrong.yaml:3: prompts is given twice"),
        ("", "wrong.yaml: the file is empty"),
        ("- 1\n", "wrong.yaml:1: the top level must be a mapping"),
    ],
)
def test_an_error_in_settings_names_their_file_and_line(
    spot: Spot, sweep: Path, command: str, text: str, message: str
) -> None:
    (sweep.parent / "wrong.yaml").write_text(text)
    ended = spot(command, sweep, "--with", "wrong.yaml")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert message in ended.err


def test_settings_that_do_not_exist(spot: Spot, sweep: Path) -> None:
    ended = spot("run", sweep, "--with", "sdar8b")
    assert ended.code == 2
    assert "no settings file 'sdar8b', and no packaged settings of that name" in ended.err
    assert "did you mean sdar-8b?" in ended.err


@pytest.mark.parametrize("override", ABSENT)
def test_what_is_not_here_is_planned_and_not_run(spot: Spot, sweep: Path, override: str) -> None:
    plan = planned(spot, sweep, override)
    assert any(ABSENT[override] in line for line in plan["missing"])
    assert plan["items"] > 0
    shown = spot("plan", sweep, override).out.splitlines()
    assert shown[-1] == "cell ids are provisional until all of it is here, and spot run refuses to start"
    few = len(plan["missing"]) + 1
    assert shown[-few:-1] == [f"not here yet: {missing}" for missing in plan["missing"]]
    assert "with something to do" in shown[-few - 1]  # the totals, then what is missing, however long the plan is
    ended = spot("run", sweep, override)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ABSENT[override] in ended.err
    assert not (sweep.parent / "runs").exists()


def test_two_absent_things_stay_two(spot: Spot, sweep: Path) -> None:
    arguments = ("grid.drafter=none", "grid.target=a/x,a/y", "grid.task=['jsonl:one.jsonl', 'jsonl:two.jsonl']")
    plan = planned(spot, sweep, *arguments)
    assert len({cell["cell_id"] for cell in plan["cells"]}) == 4
    assert len(plan["missing"]) == 4


@pytest.mark.parametrize("name", packaged())
def test_a_packaged_sweep_runs_on_what_is_shipped(spot: Spot, name: str) -> None:
    plan = planned(spot, name)
    assert plan["missing"] == []
    assert [gone for gone in plan["dropped"] if not gone["reason"].startswith("exclude[")] == []


def test_beyond_repairs_bfloat16_apart_and_another_target_gets_every_drafter(spot: Spot) -> None:
    plain, large = planned(spot, "beyond"), planned(spot, "beyond", "--with", "sdar-8b")

    def drafters(plan: dict[str, Any], target: str) -> set[str]:
        return {cell["drafter"] for cell in plan["cells"] if cell["target"] == target}

    shared = {"none", "spot"}
    assert drafters(plain, "tiny-sdar") == shared | {"spot-unmerged", "spot-cost", "spot-verified"}
    assert drafters(plain, "tiny-sdar-bf16") == shared | {"spot-verified-bf16"}
    assert drafters(large, "sdar-8b-b32") == drafters(plain, "tiny-sdar") | drafters(plain, "tiny-sdar-bf16")
    assert {cell["target"] for cell in large["cells"]} == {"sdar-8b-b32"}
    budgets = [
        {cell["budget"] for cell in plan["cells"] if cell["drafter"] == "spot" and cell["target"] == target}
        for plan, target in ((plain, "tiny-sdar"), (plain, "tiny-sdar-bf16"), (large, "sdar-8b-b32"))
    ]
    assert budgets == [{8, 20}, {8}, {8, 20}]
    dtypes = {target["name"]: target["dtype"] for target in plain["spec"]["targets"]}
    assert dtypes == {"tiny-sdar": "float32", "tiny-sdar-bf16": "bfloat16"}


@pytest.mark.parametrize("name", LAID_OVER_SDAR_8B)
def test_the_papers_setting_on_another_target_differs_by_the_target_alone(spot: Spot, name: str) -> None:
    base, plan = (planned(spot, "quick", "--with", settings) for settings in ("sdar-8b", name))
    assert plan["spec"]["name"] == f"quick-{name}"
    (target,) = plan["spec"]["targets"]
    assert target["name"] == LAID_OVER_SDAR_8B[name]
    assert (target["dtype"], target["block_length"]) == ("bfloat16", 32)
    own = {"name", "targets", "grid"}
    assert {key: value for key, value in plan["spec"].items() if key not in own} == {
        key: value for key, value in base["spec"].items() if key not in own
    }
    assert plan["spec"]["grid"] | {"target": ["sdar-8b-b32"]} == base["spec"]["grid"]


def test_settings_laid_over_others_are_read_once_and_come_behind_them(spot: Spot, sweep: Path) -> None:
    folder = sweep.parent
    (folder / "base.yaml").write_text("grid: {budget: 9, max_new_tokens: 16}\nmeasure: {prompts: 3}\n")
    (folder / "over.yaml").write_text("with: base.yaml\ngrid: {budget: 5}\n")
    plan = planned(spot, sweep, "--with", "over.yaml")
    grid = plan["spec"]["grid"]
    assert (plan["spec"]["name"], grid["budget"], grid["max_new_tokens"]) == ("small-over", [5], [16])
    (folder / "base.yaml").write_text("with: over.yaml\ngrid: {budget: 7, max_new_tokens: 24}\n")  # a circle ends
    grid = planned(spot, sweep, "--with", "over.yaml")["spec"]["grid"]
    assert (grid["budget"], grid["max_new_tokens"]) == ([5], [24])
    (folder / "base.yaml").write_text("grid: {budget: 0}\n")
    (folder / "over.yaml").write_text("with: base.yaml\nmeasure: {prompts: 2}\n")
    assert "base.yaml:1: grid.budget is 0" in spot("plan", sweep, "--with", "over.yaml").err
    for text, says in (("with: [a]\n", "over.yaml:1: with is ['a']: allowed"), ("with: sdar-9b\n", "mean sdar-8b?")):
        (folder / "over.yaml").write_text(text)
        ended = spot("plan", sweep, "--with", "over.yaml")
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert says in ended.err


@pytest.mark.parametrize(
    "settings", [name for name in settings_there_are() if name not in {*OF_ONE_SWEEP, *LAID_OVER_SDAR_8B}]
)
@pytest.mark.parametrize("name", packaged())
def test_packaged_settings_fit_every_packaged_sweep(spot: Spot, name: str, settings: str) -> None:
    plain, plan = planned(spot, name), planned(spot, name, "--with", settings)
    shape = {(cell["drafter"], cell["budget"], cell["temperature"], cell["noise"]) for cell in plain["cells"]}
    assert {(c["drafter"], c["budget"], c["temperature"], c["noise"]) for c in plan["cells"]} == shape
    assert plan["missing"]
    assert {cell["max_new_tokens"] for cell in plan["cells"]} == {256}
