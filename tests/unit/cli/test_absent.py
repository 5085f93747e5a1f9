"""What is not here yet is listed once, with a command that can be typed as it stands and the override that uses it."""

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from orchestrator.absent import ToMake, merged
from orchestrator.commands.measure import measure
from orchestrator.commands.train import train
from tests.costs import curve_of
from workers.models.cost_curve import write_cost_curve

Spot = Callable[..., Any]
GROUPS = {"train": train, "measure": measure}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def lines(spot: Spot, *arguments: object) -> list[str]:
    ended = spot("plan", *arguments, "--json")
    assert (ended.code, ended.err) == (0, "")
    missing: list[str] = json.loads(ended.out)["missing"]
    return missing


def parsed(line: str) -> tuple[str, dict[str, Any]]:
    """The command in a line and its options, as the real command understands them (it exits on an unknown one)."""
    text = line[line.index(": spot ") + 2 :].partition(", then add ")[0].partition(" (TRAIN")[0]
    _, group, name, *words = shlex.split(text)
    command = GROUPS[group].commands[name]
    return f"{group} {name}", command.make_context(name, words).params


def added(line: str) -> list[str]:
    """The overrides that a line ends with."""
    return shlex.split(line.partition(", then add ")[2])


def test_an_absent_targets_order_model_and_graph_come_with_whole_commands(spot: Spot, sweep: Path) -> None:
    sweep.write_text(
        "grid: {target: a/x, task: [tiny-arith, tiny-code], drafter: [ssd, spot, spiffy], budget: [4, 80],"
        " max_new_tokens: [64, 96], block_length: 16}\n"
        "targets: {a/x: {path: a/x, dtype: bfloat16}}\n"
    )
    _, order, graph = lines(spot, sweep)
    assert order.startswith("drafter spot for a/x: the order model is still to be made: spot train order --target a/x ")
    name, options = parsed(order)
    assert name == "train order"
    assert (options["targets"], options["tasks"]) == (("a/x",), ("tiny-arith", "tiny-code"))
    assert (options["dtype"], options["max_new_tokens"], options["block_length"]) == ("bfloat16", 96, 16)
    assert added(order) == [f"drafters.spot.checkpoint={options['out'] / 'model'}"]
    name, options = parsed(graph)
    assert (name, options["target"], options["budget_max"]) == ("train spiffy", "a/x", 80)
    assert added(graph) == [f"drafters.spiffy.checkpoint={options['out'] / 'graph'}"]


def test_what_is_printed_for_the_papers_setting_is_one_line_a_thing(spot: Spot, sweep: Path) -> None:
    found = lines(spot, "beyond", "--with", "sdar-8b")
    (order,) = [line for line in found if "order model" in line]
    (cost,) = [line for line in found if "cost curve" in line]
    assert order.startswith("drafters spot, spot-unmerged, spot-cost, spot-verified")
    name, options = parsed(order)
    assert (name, options["targets"], options["dtype"]) == ("train order", ("sdar-8b-b32",), "bfloat16")
    assert (options["max_new_tokens"], options["block_length"], options["gpus"]) == (256, 32, 1.0)
    assert options["tasks"] == ("jsonl:TRAIN.jsonl",)  # none of its tasks has prompts to train on
    assert "TRAIN.jsonl: rows of question and answer to learn from, none of which the sweep judges" in order
    checkpoint = options["out"] / "model"
    assert {f"drafters.{name}.checkpoint={checkpoint}" for name in ("spot", "spot-unmerged", "spot-cost")} < {
        *added(order)
    }
    name, options = parsed(cost)
    assert (name, options["target"], options["device"]) == ("measure cost", "sdar-8b-b32", "cuda")
    assert (options["dtype"], options["checkpoint"]) == ("bfloat16", str(checkpoint))
    assert added(cost) == [f"drafters.spot-cost.cost={options['out']}"]
    assert "tiny-sdar-cpu was read and belongs to another target: target tiny-sdar, here sdar-8b-b32" in cost
    plan = spot("plan", "beyond", "--with", "sdar-8b")
    assert f"not here yet: {order}" in plan.out


def test_commands_take_the_kind_of_cache_where_it_is_not_the_default(spot: Spot, sweep: Path) -> None:
    sweep.write_text(
        "grid: {target: NAME, task: tiny-arith, drafter: [spot, spiffy, costly], max_new_tokens: 64}\n"
        "targets: {prefixed: {path: llada-8b, cache: prefix}}\n"
        "drafters: {costly: {kind: spot, cost: tiny-sdar-cpu}}\n"
    )
    for name, cache in (("llada-8b", ""), ("prefixed", "prefix"), ("sdar-8b-b32", "")):
        found = [parsed(line) for line in lines(spot, sweep, f"grid.target={name}")[1:]]
        assert {command for command, _ in found} == {"train order", "train spiffy", "measure cost"}
        assert {options["cache"] for _, options in found} == {cache}
        assert {options.get("gpus", 0.0) for _, options in found} == {0.0}


def test_a_curve_of_another_target_was_read_and_one_of_this_target_is_taken(spot: Spot, sweep: Path) -> None:
    file = sweep.parent / "cost.json"
    made = replace(curve_of(lambda states, prefix: states, block_length=32, states=(1, 41)), dtype="bfloat16")
    arguments = ("beyond", "--with", "sdar-8b", f"drafters.spot-cost.cost={file}")
    write_cost_curve(file, replace(made, target="tiny-sdar"))
    (line,) = [line for line in lines(spot, *arguments) if "cost curve" in line]
    assert f"({file} was read and belongs to another target: target tiny-sdar, here sdar-8b-b32)" in line
    write_cost_curve(file, replace(made, target="sdar-8b-b32", dtype="float32"))
    (line,) = [line for line in lines(spot, *arguments) if "cost curve" in line]
    assert "belongs to another target: dtype float32, here bfloat16" in line
    write_cost_curve(file, replace(made, target="sdar-8b-b32"))
    assert not [line for line in lines(spot, *arguments) if "cost curve" in line]


def test_a_cost_curve_that_is_named_already_is_not_to_be_named_again(spot: Spot, sweep: Path) -> None:
    arguments = ("beyond", "--with", "sdar-8b", "drafters.spot-cost.cost=COST.json")
    (line,) = [line for line in lines(spot, *arguments) if "cost curve" in line]
    assert line.endswith(" --out COST.json")


def test_large_budgets_are_measured(spot: Spot, sweep: Path) -> None:
    (line,) = [
        line for line in lines(spot, "beyond", "--with", "sdar-8b", "grid.budget=[8, 64, 40]") if "measure cost" in line
    ]
    assert [int(count) for count in parsed(line)[1]["states"].split(",")] == [1, 3, 5, 9, 13, 17, 25, 33, 41, 65]


def test_a_target_that_is_here_gets_the_whole_command_too(spot: Spot, sweep: Path, models: Path) -> None:
    ended = spot("plan", sweep, "grid.drafter=ssd,spiffy", "--json")
    (gone,) = json.loads(ended.out)["dropped"]
    make = gone["reason"].partition(": make one (")[2].partition("), or use")[0]
    name, options = parsed(f": {make}")
    assert (name, options["target"], options["tasks"]) == ("train spiffy", str(models / "target"), ("tiny-arith",))
    assert options["max_new_tokens"] == 8


def test_hostile_names_are_quoted() -> None:
    thing = ToMake(
        noun="order model",
        target="x",
        drafters=("a b",),
        command=("spot", "train", "order", "--target", "my models/x; rm"),
        option="checkpoint",
        made="runs/x y/model",
    )
    (line,) = merged([thing, replace(thing, drafters=("c",)), replace(thing, drafters=("a b",))])
    assert "--target 'my models/x; rm'" in line
    assert line.startswith("drafters a b, c for x: ")
    assert added(line) == ["drafters.a b.checkpoint=runs/x y/model", "drafters.c.checkpoint=runs/x y/model"]


def test_a_missing_file_says_where_its_path_goes(spot: Spot, sweep: Path) -> None:
    found = lines(spot, sweep, "tasks.sums={kind: jsonl, path: sums.jsonl}", "grid.task=[sums, 'jsonl:other.jsonl']")
    folder = sweep.parent
    assert found == [
        f"task sums: no file {folder / 'sums.jsonl'}: give its path: tasks.sums.path=FILE",
        f"task jsonl:other.jsonl: no file {folder / 'other.jsonl'}",
    ]


def test_parsing_refuses_what_does_not_exist() -> None:
    with pytest.raises(click.UsageError):
        parsed("x: spot train order --target a --task b --no-such-option 3, then add y")
