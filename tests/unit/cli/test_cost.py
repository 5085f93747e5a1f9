"""`spot measure cost`, and what a sweep says to cost curves that are missing, broken or made for something else."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_checkpoints import on_target
from workers.models.cost_curve import read_cost_curve, write_cost_curve
from workers.models.sealed import content_digest
from workers.targets.inspect import inspect_checkpoint

Spot = Callable[..., Any]
MEASURE = ("--states", "1,3,5", "--prefixes", "0,64", "--repeats", 3)


@pytest.fixture
def curve(models: Path, tmp_path: Path) -> Path:
    """A made-up curve of the small sweep's target."""
    from tests.costs import curve_of

    file, digest = tmp_path / "curve.json", inspect_checkpoint(models / "target").weight_digest
    made = curve_of(lambda states, prefix: states, states=(1, 5), target="rand", target_digest=digest, block_length=32)
    write_cost_curve(file, replace(made, dtype="float32"))
    return file


def planned(spot: Spot, sweep: Path, *overrides: str) -> dict[str, Any]:
    ended = spot("plan", sweep, "--json", "grid.drafter=spot,dear", *overrides)
    assert ended.code == 0, ended.err
    plan: dict[str, Any] = json.loads(ended.out)
    return plan


def dear(models: Path, cost: object) -> str:
    return f"drafters.dear={{kind: spot, checkpoint: {models / 'order'}, cost: {cost}}}"


def test_a_measured_curve_is_one_that_a_sweep_can_use(spot: Spot, sweep: Path, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "costs" / "mine.json"
    measure = (
        "measure",
        "cost",
        *on_target(models),
        "--checkpoint",
        models / "order",
        "--out",
        out,
    )
    ended = spot(*measure, *MEASURE)
    assert ended.code == 0, ended.err
    made = read_cost_curve(out)
    assert f"{out}: digest {made.digest[:12]}" in ended.out
    counts = [line.partition(":")[0] for line in ended.out.splitlines() if "times the root alone" in line]
    assert counts == ["   1 state", "   3 states", "   5 states"]
    assert (made.states, made.prefixes, made.repeats, made.threads) == ([1, 3, 5], [0, 64], 3, 1)
    assert (made.dtype, made.device, made.block_length, made.drafter) == ("float32", "cpu", 32, "spot")
    assert [cost.budget for cost in made.drafters] == [2, 4]
    assert made.target_digest == inspect_checkpoint(models / "target").weight_digest
    few = ("measure.prompts=1", "measure.timed_prompts=0", "grid.max_new_tokens=40", "grid.drafter=dear,spot")
    ended = spot("run", sweep, "--pool", "inline", *few, "grid.budget=4", dear(models, out))
    assert ended.code == 0, ended.err
    assert "Cost-aware budget" in (sweep.parent / "runs/small/report.html").read_text()


def test_the_curve_is_part_of_a_cell_and_plain_cells_stay_what_they_were(
    spot: Spot, sweep: Path, models: Path, curve: Path
) -> None:
    cells = {
        (cell["drafter"], cell["budget"]): cell["cell_id"]
        for cell in planned(spot, sweep, dear(models, curve))["cells"]
    }
    assert len(set(cells.values())) == len(cells) == 5
    other = read_cost_curve(curve)
    write_cost_curve(curve, replace(other, repeats=4))
    again = {
        (cell["drafter"], cell["budget"]): cell["cell_id"]
        for cell in planned(spot, sweep, dear(models, curve))["cells"]
    }
    assert {name for name in cells if cells[name] != again[name]} == {("dear", 2), ("dear", 4)}


def test_planning_reads_a_curve_without_torch(sweep: Path, models: Path, curve: Path) -> None:
    program = (
        "import sys; from orchestrator.prepare import prepare; "
        f"prepare({str(sweep)!r}, ['grid.drafter=dear', {dear(models, curve)!r}]); assert 'torch' not in sys.modules"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", program], check=True, cwd=sweep.parent, env={"PYTHONPATH": str(root)})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"dtype": "bfloat16"}, "dtype bfloat16, here float32"),
        ({"target_digest": "f" * 64}, "weights ffffffffffff, here "),
        ({"cache": "prefix"}, "cache prefix, here exact"),
    ],
)
def test_a_curve_of_another_target_is_refused_with_what_differs(
    spot: Spot, sweep: Path, models: Path, curve: Path, change: dict[str, str], says: str
) -> None:
    write_cost_curve(curve, replace(read_cost_curve(curve), **change))  # type: ignore[arg-type]
    for command in ("plan", "run"):
        ended = spot(command, sweep, "grid.drafter=spot,dear", dear(models, curve))
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.count("\n") == 1
        assert "drafter dear for rand: its cost curve was measured on another target" in ended.err
        assert says in ended.err
        measure = f"measure it: spot measure cost --target {models / 'target'} --dtype float32 "
        assert measure in ended.err
        assert ended.err.endswith(" --out COST.json, or exclude drafter dear for target rand\n")


def test_of_two_targets_only_the_measured_one_is_run_with_it_and_the_plan_says_why(
    spot: Spot, sweep: Path, models: Path, curve: Path
) -> None:
    half = f"targets.half={{path: {models / 'target'}, dtype: bfloat16}}"
    plan = planned(spot, sweep, dear(models, curve), half, "grid.target=rand,half")
    assert {(cell["target"], cell["drafter"]) for cell in plan["cells"]} == {
        *(("rand", drafter) for drafter in ("none", "spot", "dear")),
        *(("half", drafter) for drafter in ("none", "spot")),
    }
    (gone,) = plan["dropped"]
    assert gone["axes"] == {"target": "half", "drafter": "dear"}
    assert gone["reason"].endswith("(dtype float32, here bfloat16)")


def test_other_blocks_and_larger_budgets_than_measured_are_left_out(
    spot: Spot, sweep: Path, models: Path, curve: Path
) -> None:
    plan = planned(spot, sweep, dear(models, curve), "grid.budget=4,5")
    assert [gone["reason"] for gone in plan["dropped"]] == ["its cost curve ends at budget 4"]
    write_cost_curve(curve, replace(read_cost_curve(curve), block_length=16))
    plan = planned(spot, sweep, dear(models, curve))
    assert [gone["reason"] for gone in plan["dropped"]] == ["its cost curve is for blocks of 16"]


def test_missing_and_broken_curves_are_refused_in_one_line(spot: Spot, sweep: Path, models: Path, curve: Path) -> None:
    ended = spot("run", sweep, "grid.drafter=dear", dear(models, "costs/mine"))
    assert ended.code == 2
    assert "drafter dear for rand: the cost curve is still to be measured (" in ended.err
    assert "cost 'costs/mine' is not there" in ended.err
    assert "spot measure cost --target" in ended.err
    for file in ("costs/mine", "COST.json"):
        plan = planned(spot, sweep, dear(models, file))
        assert [f"cost '{file}'" in line for line in plan["missing"]] == [True]
    curve.write_text(curve.read_text().replace('"threads": 1', '"threads": 8'))
    for command in ("plan", "run"):
        ended = spot(command, sweep, "grid.drafter=dear", dear(models, curve))
        assert ended.code == 2
        assert "altered" in ended.err
        assert ended.err.count("\n") == 1


def test_a_drafter_that_cannot_use_a_curve_says_what_it_uses(spot: Spot, sweep: Path, curve: Path) -> None:
    ended = spot("plan", sweep, f"drafters.mine={{kind: ssd, cost: {curve}}}", "grid.drafter=mine")
    assert ended.code == 2
    assert "drafters.mine.cost: ssd does not use it; it uses budget, verify_margin" in ended.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--states", "2,3"), "states is (2, 3): allowed is a list that begins with 1, the root alone"),
        (("--states", "1,3,3"), "states is (1, 3, 3): allowed is ascending whole numbers from 1"),
        (("--states", "one"), "--states is 'one': allowed is a list as 1,2,3"),
        (("--prefixes", "0,40"), "prefixes is (0, 40): allowed is multiples of the block length, 32"),
        (("--prefixes", "0,2048"), "prefixes are (0, 2048): allowed is up to 2016"),
        (("--block-length", "16"), "block_length is 16: allowed by the order model is 32"),
        (("--dtype", "float8"), "dtype is 'float8'"),
        (("--device", "abacus"), "device is 'abacus': allowed on this machine is cpu"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    spot: Spot, models: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "curve.json"
    measure = (
        "measure",
        "cost",
        *on_target(models),
        "--checkpoint",
        models / "order",
        "--out",
        out,
    )
    ended = spot(*measure, *options)
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert not out.exists()


def test_the_types_of_a_curve_file_are_checked(curve: Path) -> None:
    raw = json.loads(curve.read_text())
    raw["repeats"] = "three"
    raw["digest"] = content_digest(raw)
    curve.write_text(json.dumps(raw))
    with pytest.raises(ValueError, match=r"curve\.json: Expected `int`, got `str` - at `\$\.repeats`"):
        read_cost_curve(curve)
