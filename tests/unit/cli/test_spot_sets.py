"""spot-sets on the command line: what the reference gives, blocks that share a round, and what is refused with why."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweeps.spec import DecodeSpec, TargetSpec
from tests.drafters import artifact
from tests.tiny_checkpoints import on_target, write_checkpoint
from workers.decoding.noise import sample_seed
from workers.decoding.reference import reference
from workers.targets.load import load

Spot = Callable[..., Any]
TAU, LENGTH = 0.006, 4
PROMPTS = [[10, 17, 24], [31, 38, 45, 52, 59]]


@pytest.fixture
def command(models: Path, tmp_path: Path) -> list[object]:
    """Decodes two prompts by a set model that is not trained, in blocks of 4."""
    file = tmp_path / "ids.jsonl"
    file.write_text("".join(json.dumps({"ids": ids}) + "\n" for ids in PROMPTS))
    made = artifact("set_model", LENGTH, "threshold", 32)
    options = ["--drafter", "spot-sets", "--checkpoint", made, "--tau", TAU, "--block-length", LENGTH]
    return [
        "decode",
        "--target",
        models / "target",
        *options,
        "--ids-file",
        file,
        "--max-new-tokens",
        14,
        "--ignore-eos",
    ]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("switches", [[], ["--cross-block"], ["--cross-block", "--refresh"]])
def test_decode_gives_what_the_reference_gives(
    spot: Spot, models: Path, command: list[object], switches: list[str], temperature: float
) -> None:
    ended = spot(*command, *switches, "--temperature", temperature, "--json")
    assert ended.code == 0, ended.err
    target = load(TargetSpec(name="x", path=str(models / "target")), device="cpu")
    rule: dict[str, Any] = {"commit": "threshold", "tau": TAU, "ignore_eos": True, "temperature": temperature}
    spec = DecodeSpec(max_new_tokens=14, block_length=LENGTH, **rule)
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert [row["prompt_ids"] for row in rows] == PROMPTS
    for index, row in enumerate(rows):
        expected = reference(target, PROMPTS[index], spec=spec, seed=sample_seed(0, str(index)))
        assert (row["output_ids"], row["order"]) == (list(expected.output_ids), list(expected.order))
        assert (row["claim"], row["acceptance"]) == ("lossless", "exact")
        assert (row["cross_block"], row["refresh"]) == ("--cross-block" in switches, "--refresh" in switches)
        assert row["counters"]["drafter_calls"] > 0


def test_a_round_that_crosses_is_shown_in_both_of_its_blocks(spot: Spot, command: list[object]) -> None:
    """By the rounds of the JSON lines, position by position."""
    rows = [json.loads(line) for line in spot(*command, "--cross-block", "--json").out.splitlines()]
    shown = spot(*command, "--cross-block").out.split("14 generated")[1:]
    crossing = 0
    for row, text in zip(rows, shown, strict=True):
        first, told = len(row["prompt_ids"]), dict[int, int]()
        for block in text.split("\npositions ")[1:]:
            start, end, low, high = map(int, re.match(r"(\d+) to (\d+): rounds (\d+) to (\d+)", block).groups())  # type: ignore[union-attr]
            own = {}
            for number, places in re.findall(r"^  round (\d+): (.*)$", block, flags=re.MULTILINE):
                own |= {int(place): int(number) for place in re.findall(r"(?:^|  )(\d+) ['\"]", places)}
            assert (min(own.values()), max(own.values())) == (low, high)
            assert all(start <= place <= end for place in own)
            crossing += low in told.values()
            told |= own
        assert told == {first + at: turn + 1 for at, turn in zip(row["order"], row["rounds"], strict=True)}
    assert crossing > 0


def refused(spot: Spot, *arguments: object) -> str:
    ended = spot(*arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    return str(ended.err)


def test_what_cannot_be_is_one_line_that_says_why(
    spot: Spot, models: Path, command: list[object], tmp_path: Path
) -> None:
    del command[command.index("--tau") : command.index("--tau") + 2]
    assert "drafts for the commit rule threshold only; ways out: --tau 0.9 (the rule threshold)" in refused(
        spot, *command
    )
    command += ["--tau", TAU]
    assert "refresh is True: allowed is false without cross_block" in refused(spot, *command, "--refresh")
    assert "cross_block is True: allowed is false with a verify_margin" in refused(
        spot, *command, "--cross-block", "--verify-margin", 0.1
    )
    other = write_checkpoint(tmp_path / "llada", family="llada")
    at = command.index("--target") + 1
    command[at] = other
    assert "cross_block needs block-causal attention with an exact cache" in refused(spot, *command, "--cross-block")
    command[at] = models / "target"
    command[command.index("--checkpoint") + 1] = artifact("set_model", LENGTH, "threshold", 64)
    reason = refused(spot, *command)
    assert "its set model reads vectors 64 wide, and those of " in reason
    assert "are 32 wide: fit it to" in reason
    assert re.search("spot train sets .*--task jsonl:TRAIN.jsonl --calibrate-from /.*, then --checkpoint runs/", reason)


def test_without_a_set_model_it_says_how_to_make_one(spot: Spot, models: Path) -> None:
    ended = refused(spot, "decode", *on_target(models), "--drafter", "spot-sets", "--tau", 0.9, "word")
    assert "no set model is known for" in ended
    assert "spot train sets" in ended


def test_a_plan_names_settings_and_drops_what_cannot_run(spot: Spot, sweep: Path, tmp_path: Path) -> None:
    made = artifact("set_model", 32, "threshold", 32)
    whole = write_checkpoint(tmp_path / "llada", family="llada")
    drafters = f"drafters={{sets: {{kind: spot-sets, checkpoint: {made}, cross_block: true, refresh: true}}}}"
    targets = [f"targets.whole.path={whole}", "grid.target=[rand,whole]"]
    axes = ["grid.drafter=[none,sets]", "grid.commit=[standard,threshold]", "grid.acceptance=[exact,product]"]
    plan = json.loads(spot("plan", sweep, drafters, *targets, *axes, "grid.budget=4", "--json").out)
    cells = [cell for cell in plan["cells"] if cell["drafter"] == "sets"]
    assert [(cell["target"], cell["acceptance"], cell["claim"]) for cell in cells] == [
        ("rand", "exact", "lossless"),
        ("rand", "product", "lossy"),
    ]
    assert all(cell["cross_block"] and cell["refresh"] for cell in cells)
    reasons = " ".join(gone["reason"] for gone in plan["dropped"])
    assert "cross_block needs block-causal attention with an exact cache, and whole has no such cache" in reasons
    assert "spot-sets drafts for the commit rule threshold only" in reasons


def test_a_misspelt_switch_names_the_nearest(spot: Spot, sweep: Path) -> None:
    for key, value, message in (
        ("cros_block", "true", "did you mean cross_block?"),
        ("refresh", "yes please", "drafters.sets.refresh is 'yes please': allowed is true or false"),
        ("hedge", "0.5", "drafters.sets.hedge: spot-sets does not use it; it uses budget, gamma, checkpoint"),
        ("cost", "tiny-sdar-cpu", "drafters.sets.cost: spot-sets does not use it"),
    ):
        drafters = f"drafters={{sets: {{kind: spot-sets, {key}: {value}}}}}"
        assert message in refused(spot, "plan", sweep, drafters, "grid.drafter=[none,sets]", "grid.commit=threshold")
