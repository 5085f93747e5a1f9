"""Ways out lead somewhere: commands that are printed run as they stand, drafters that are named can decode."""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from orchestrator.cli import cli
from orchestrator.doctor import examine
from tests.tiny_checkpoints import on_target

Spot = Callable[..., Any]
TYPED = re.compile(r"(?<![\w/])spot (?:train|measure) (?:\([^()]*\)|[^();])*")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def commands_in(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every command line in a text with its options; click refuses what is unknown or missing."""
    for typed in TYPED.findall(text):
        _, *words = shlex.split(re.split(r", (?:then|or|and|no) | \(TRAIN", typed)[0])
        command: click.Command = cli
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        yield str(command.name), command.make_context(command.name, words).params


def refused(spot: Spot, *arguments: object) -> str:
    ended = spot(*arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    return str(ended.err)


SETS = ("--drafter", "spot-sets", "--tau", 0.9, "x")


def test_every_command_that_decode_prints_runs(spot: Spot, models: Path) -> None:
    none = refused(spot, "decode", "--target", "tiny-sdar-s", *SETS)
    ((name, options),) = commands_in(none)
    assert (name, options["target"], options["tasks"]) == ("sets", "tiny-sdar-s", ("tiny-arith", "tiny-code"))
    assert f"): --checkpoint {options['out'] / 'model'}; ways out" in none
    wide = refused(spot, "decode", "--target", "tiny-sdar-s", "--checkpoint", "sets-tiny-sdar", *SETS)
    ((name, options),) = commands_in(wide)
    assert (name, options["target"], options["calibrate_from"]) == ("sets", "tiny-sdar-s", "sets-tiny-sdar")
    assert options["tasks"] == ("tiny-arith", "tiny-code")
    assert "; ways out: another --checkpoint | --drafter (none | freedave)\n" in wide
    graph = refused(spot, "decode", "--target", "tiny-sdar", "--drafter", "spiffy", "--tau", 0.8, "x")
    ((name, options),) = commands_in(graph)
    assert (name, options["target"], options["tau"]) == ("spiffy", "tiny-sdar", 0.8)
    ((name, options),) = commands_in(refused(spot, "decode", *on_target(models), "--drafter", "spot", "x"))
    assert (name, options["tasks"]) == ("order", ("jsonl:TRAIN.jsonl",))
    ((name, options),) = commands_in(refused(spot, "decode", "--target", "tiny-sdar", "--cost", "my/c.json", "x"))
    assert (name, options["target"]) == ("cost", "tiny-sdar")


def test_every_command_that_plan_prints_runs(spot: Spot) -> None:
    drafters = "drafters={sets: {kind: spot-sets}, narrow: {kind: spot-sets, checkpoint: sets-tiny-sdar}, spiffy: {}}"
    axes = ["grid.target=tiny-sdar-s", "grid.drafter=[none,sets,narrow,spiffy]", "grid.tau=0.8"]
    plan = json.loads(spot("plan", "acceptance", *axes, drafters, "--json").out)
    found = [made for gone in plan["dropped"] for made in commands_in(gone["reason"])]
    assert [(name, options["target"], options["tasks"]) for name, options in found] == [
        (name, "tiny-sdar-s", ("tiny-arith", "tiny-code")) for name in ("sets", "sets", "spiffy")
    ]
    assert [options.get("calibrate_from") for _, options in found] == ["", "sets-tiny-sdar", None]
    assert found[2][1]["tau"] == 0.8
    missing = json.loads(spot("plan", "beyond", "--with", "sdar-8b", "--json").out)["missing"]
    assert {"order", "cost"} == {name for line in missing for name, _ in commands_in(line)}


def test_every_command_that_doctor_prints_runs() -> None:
    found = [made for finding in examine() for made in commands_in(finding.text)]
    assert ("sets", "tiny-sdar-s") in [(name, options.get("target")) for name, options in found]
    assert {"order", "sets", "spiffy"} == {name for name, _ in found}
    assert all(options["tasks"] for _, options in found)


@pytest.mark.parametrize(
    ("target", "drafter", "named"),
    [
        ("tiny-sdar", "ssd", "none | freedave | spot-sets"),
        ("tiny-sdar", "spot", "none | freedave | spot-sets"),
        ("tiny-llada", "blockspec", "none | freedave"),
        ("tiny-sdar-s", "spot-sets", "none | freedave"),
    ],
)
def test_only_drafters_that_can_decode_are_ways_out(spot: Spot, target: str, drafter: str, named: str) -> None:
    line = refused(spot, "decode", "--target", target, "--drafter", drafter, "--tau", 0.9, "x")
    assert f"another --drafter ({named})\n" in line
    assert ("no --tau (the rule standard) | another" in line) == (drafter != "spot-sets")
    for other in named.split(" | "):
        few = ["--max-new-tokens", 2, "--json", "x"]
        assert spot("decode", "--target", target, "--drafter", other, "--tau", 0.9, *few).code == 0


def test_set_drafters_by_the_standard_rule_need_a_tau_and_nothing_else(spot: Spot) -> None:
    line = refused(spot, "decode", "--target", "tiny-sdar", "--drafter", "spot-sets", "x")
    assert line.endswith("; ways out: --tau 0.9 (the rule threshold)\n")


def test_only_shipped_models_that_fit_are_offered(spot: Spot) -> None:
    assert "shipped" not in refused(spot, "decode", "--target", "tiny-sdar-s", *SETS)  # 96 wide, those shipped 192
    line = refused(spot, "decode", "--target", "tiny-dream", *SETS)
    assert "(shipped: sets-tiny-sdar | sets-tiny-llada2): --checkpoint NAME; ways out" in line
    few = ["--checkpoint", "sets-tiny-sdar", "--max-new-tokens", 2, "--json"]
    assert spot("decode", "--target", "tiny-dream", *few, *SETS).code == 0


def test_what_crossing_takes_away_comes_with_what_to_say_instead(spot: Spot) -> None:
    plan = ["plan", "acceptance", "grid.target=tiny-llada", "grid.tau=0.9"]
    told = " ".join(spot(*plan).out.replace("│", " ").split())
    instead = ("drafters.sets.cross_block=false", "drafters.sets.refresh=false")
    assert f"tiny-llada has no such cache: {' '.join(instead)}" in told
    with_one = spot(*plan, *instead, "drafters.sets.checkpoint=sets-tiny-sdar", "--json")
    assert json.loads(with_one.out)["dropped"] == []
    line = refused(spot, "decode", "--target", "tiny-llada", "--cross-block", "--refresh", *SETS)
    assert "; ways out: no --cross-block --refresh | another --drafter (none | freedave)\n" in line


@pytest.mark.parametrize(("target", "shape"), [("tiny-sdar", "spot-sets"), ("tiny-llada", "freedave")])
def test_by_default_a_threshold_is_drafted_for(spot: Spot, target: str, shape: str) -> None:
    """The same lines as with the drafter that the help names."""
    few = ["decode", "--target", target, "--tau", 0.9, "--max-new-tokens", 12, "--json", "def "]
    row, named = (json.loads(spot(*few, *more).out) for more in ((), ("--drafter", shape)))
    timed = dict.fromkeys((key for key in row if key.endswith("seconds")), 0)
    assert row | timed == named | timed
    assert row["counters"]["drafted"]
    assert "with --tau spot-sets where a set model is" in " ".join(spot("decode", "--help").out.split())


def test_a_checkpoint_without_a_drafter_is_a_set_model_under_a_threshold(spot: Spot) -> None:
    line = refused(spot, "decode", "--target", "tiny-sdar-s", "--checkpoint", "sets-tiny-sdar", "--tau", 0.9, "x")
    assert line.startswith("spot: spot-sets on tiny-sdar-s: its set model reads vectors 192 wide")


def test_a_tau_that_cannot_be_goes_by_the_name_that_was_typed(spot: Spot) -> None:
    line = refused(spot, "decode", "--target", "tiny-sdar", "--tau", 2, "x")
    assert line == "spot: --tau is 2.0: allowed is a number above 0 and below 1\n"


def test_most_commits_among_one_path_is_noted(spot: Spot) -> None:
    few = ["decode", "--target", "tiny-sdar", "--tau", 0.9, "--max-new-tokens", 2, "--max-commit", "x"]
    assert "note: --max-commit changes nothing with --acceptance exact" in spot(*few).err
    assert "--max-commit" not in spot(*few, "--acceptance", "product").err


def test_a_drafter_that_is_left_without_a_cell_is_noted(spot: Spot) -> None:
    plan = json.loads(spot("plan", "acceptance", "grid.commit=standard", "--json").out)
    assert {cell["drafter"] for cell in plan["cells"]} == {"none"}
    why = "spot-sets drafts for the commit rule threshold only"
    assert plan["notes"][-1] == f"drafter sets: no cell of it is left to run ({why})"
    whole = json.loads(spot("plan", "acceptance", "--json").out)
    assert not any("no cell of it" in note for note in whole["notes"])
