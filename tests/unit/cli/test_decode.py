"""`spot decode`: single prompts, the grid of rounds, JSON lines; the same output as the naive reference decoder."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.show_decode import grid, harmless, rounds_as_text
from sweeps.spec import DecodeSpec, TargetSpec
from tests.costs import curve_of
from tests.tiny_checkpoints import on_target
from workers.decode_one import GridBlock, GridCell
from workers.decoding.noise import sample_seed
from workers.decoding.reference import reference
from workers.models.cost_curve import write_cost_curve
from workers.targets.inspect import inspect_checkpoint
from workers.targets.load import load

Spot = Callable[..., Any]


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("drafter", ["none", "ssd", "spot"])
def test_ids_file_gives_what_the_reference_gives(
    spot: Spot, models: Path, tmp_path: Path, drafter: str, temperature: float
) -> None:
    prompts = [[3, 4, 5], [], [3, 4, 5], list(range(3, 43))]
    file = tmp_path / "ids.jsonl"
    file.write_text("".join(json.dumps({"ids": ids}) + "\n\n" for ids in prompts))
    options = ["--checkpoint", models / "order"] if drafter == "spot" else []
    ended = spot(
        *[
            "decode",
            *on_target(models),
            "--drafter",
            drafter,
            "--ids-file",
            file,
            "--json",
        ],
        *["--max-new-tokens", 12, "--temperature", temperature, "--seed", 5, *options],
    )
    assert ended.code == 0
    target = load(TargetSpec(name="x", path=str(models / "target")), device="cpu")
    spec = DecodeSpec(max_new_tokens=12, temperature=temperature)
    rows = lines(ended.out)
    assert [row["prompt_ids"] for row in rows] == prompts
    for index, (ids, row) in enumerate(zip(prompts, rows, strict=True)):
        expected = reference(target, ids, spec=spec, seed=sample_seed(5, str(index)))
        assert row["output_ids"] == list(expected.output_ids)
        assert row["order"] == list(expected.order)
        assert sorted(row["order"]) == list(range(len(row["output_ids"])))
        assert len(row["counters"]["accepted"]) == row["counters"]["nfe"] == max(row["rounds"]) + 1
    assert (rows[0]["output_ids"] == rows[2]["output_ids"]) == (temperature == 0)  # equal prompts draw differently


def test_a_prompt_that_cannot_be_decoded_is_named_and_the_others_go_on(
    spot: Spot, models: Path, tmp_path: Path
) -> None:
    file = tmp_path / "ids.jsonl"
    file.write_text('{"ids": [3]}\n{"ids": [99999]}\n{"ids": [4]}\n')
    command = ["decode", *on_target(models), "--drafter", "none", "--ids-file", file, "--max-new-tokens", 2]
    ended = spot(*command, "--json")
    assert ended.code == 1
    rows = lines(ended.out)
    assert [row["index"] for row in rows] == [0, 1, 2]
    assert "99999 is outside the vocabulary" in rows[1]["error"]
    assert "prompt 1: prompt id 99999 is outside the vocabulary" in spot(*command).out


def test_a_json_line_says_which_cell_made_it(spot: Spot, models: Path, tmp_path: Path) -> None:
    """Enough to tell it from lines of any other command: what was asked, and the digests of what was loaded."""
    file = tmp_path / "ids.jsonl"
    file.write_text('{"ids": [3]}\n{"ids": [99999]}\n')
    command = ["decode", *on_target(models), "--ids-file", file, "--max-new-tokens", 12, "--json", "--ignore-eos"]
    own = ["--checkpoint", models / "order", "--budget", 5, "--gamma", 0.01, "--verify-margin", 0.5]
    drawn = ["--temperature", 0.5, "--noise", "independent", "--confidence", "sampled", "--seed", 7]
    made, failed = lines(spot(*command, *own, *drawn).out)
    cell = made["cell"]
    assert "error" in failed
    assert failed["cell"] == cell  # a failure names it too
    facts = load(TargetSpec(name="x", path=str(models / "target")), device="cpu").traits
    assert (cell["target"]["digest"], cell["target"]["dtype"]) == (facts.weight_digest, "float32")
    assert cell["target"]["path"] == str(models / "target")
    assert cell["decode"] == {
        "max_new_tokens": 12,
        "block_length": 32,
        "temperature": 0.5,
        "noise": "independent",
        "confidence": "sampled",
        "ignore_eos": True,
        "commit": "standard",
        "tau": 1.0,
    }
    drafter = cell["drafter"]
    assert [drafter[name] for name in ("kind", "budget", "gamma", "verify_margin")] == ["spot", 5, 0.01, 0.5]
    assert drafter["checkpoint"] == str(models / "order")
    assert drafter["digest"] == json.loads((models / "order" / "config.json").read_text())["digest"]
    assert cell["seed"] == 7
    other = lines(spot(*command, *own, *drawn[:-1], 8).out)[0]["cell"]
    assert other["cell_id"] != cell["cell_id"]
    assert {**other, "cell_id": cell["cell_id"], "seed": 7} == cell


def test_text_is_shown_block_by_block(spot: Spot, models: Path) -> None:
    ended = spot("decode", *on_target(models), "--drafter", "ssd", "--max-new-tokens", 40, "the word")
    assert ended.code == 0
    assert "5 prompt tokens, 40 generated" in ended.out
    assert "positions 0 to 31: rounds 1 to " in ended.out
    assert "positions 32 to 44: rounds " in ended.out
    assert ended.out.isprintable() or not set(ended.out) - {"\n"} & set(map(chr, range(32)))


def test_verdicts_by_a_hair_are_made_again_and_change_nothing(spot: Spot, models: Path) -> None:
    command = ["decode", *on_target(models), "--drafter", "ssd", "--max-new-tokens", 12, "--json", "hello"]
    (plain,), (careful,) = lines(spot(*command).out), lines(spot(*command, "--verify-margin", "1e6").out)
    assert plain["counters"]["recomputes"] == 0 < careful["counters"]["recomputes"]
    assert plain["output_ids"] == careful["output_ids"]


def test_confidence_is_that_of_the_target_rule(spot: Spot, models: Path) -> None:
    command = ["decode", *on_target(models), "--drafter", "none", "--max-new-tokens", 24, "--json"]
    sampled = lines(spot(*command, "--temperature", 1, "--confidence", "sampled", "hello").out)[0]
    target = load(TargetSpec(name="x", path=str(models / "target")), device="cpu")
    spec = DecodeSpec(max_new_tokens=24, temperature=1.0, confidence="sampled")
    expected = reference(target, sampled["prompt_ids"], spec=spec, seed=sample_seed(0, "0"))
    assert sampled["order"] == list(expected.order)
    assert sampled["output_ids"] == list(expected.output_ids)
    assert lines(spot(*command, "--temperature", 1, "hello").out)[0]["order"] != sampled["order"]


def test_a_cost_curve_is_used_and_a_missing_one_says_how_to_measure_it(
    spot: Spot, models: Path, tmp_path: Path
) -> None:
    command = ["decode", *on_target(models), "--checkpoint", models / "order", "--budget", 20, "--json"]
    command += ["--max-new-tokens", 24, "hello"]
    file, digest = tmp_path / "cost.json", inspect_checkpoint(models / "target").weight_digest
    prices = curve_of(lambda states, prefix: 10.0**states, target="rand", target_digest=digest, block_length=32)
    write_cost_curve(file, replace(prices, dtype="float32"))
    (plain,), (dear,) = lines(spot(*command).out), lines(spot(*command, "--cost", file).out)
    assert plain["output_ids"] == dear["output_ids"]
    assert dear["counters"]["trimmed"] > 0 == plain["counters"]["trimmed"]
    assert sum(dear["counters"]["drafted"]) < sum(plain["counters"]["drafted"])
    ended = spot(*command, "--cost", "./nowhere")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "cost './nowhere' is not there" in ended.err
    assert f"measure one: spot measure cost --target {models / 'target'} --dtype float32" in ended.err


BAD: list[tuple[list[str], str]] = [
    (["--drafter", "spo", "x"], "unknown drafter 'spo': allowed are none, ssd,"),
    (["--drafter", "ssd", "--gamma", "0.1", "x"], "ssd does not use it; it uses budget"),
    (["--drafter", "none", "--verify-margin", "0.1", "x"], "drafters.none.verify_margin: none does not use it"),
    (["--drafter", "ssd", "--verify-margin", "-1", "x"], "verify_margin is -1.0: allowed is a finite number from 0"),
    (["--drafter", "ssd", "--cost", "tiny-sdar-cpu", "x"], "ssd does not use it; it uses budget, verify_margin"),
    (["--drafter", "none", "--confidence", "best", "x"], "'best' is not one of 'top1', 'sampled'"),
    (["--drafter", "ssd", "--budget", "0", "x"], "budget is 0: allowed is a whole number from 1 to 4096"),
    (["--drafter", "none", "--temperature", "nan", "x"], "grid.temperature is nan"),
    (["--drafter", "none", "--temperature", "-1", "x"], "grid.temperature is -1.0"),
    (["--drafter", "none", "--max-new-tokens", "2048", "x"], "can never fit"),
    (["--drafter", "spot", "x"], "no order model is known for"),
    (["--drafter", "spot", "x"], "another target (shipped: spot-tiny-sdar | spot-tiny-sdar-s | spot-tiny-llada2 | "),
    (["--drafter", "spot", "x"], ": --checkpoint NAME; ways out: another --drafter (none | ssd | freedave | blockspec"),
    (
        ["--checkpoint", "spot-tiny-sdar", "--block-length", "16", "x"],
        "for blocks of 32; ways out: another --block-len",
    ),
    (["--drafter", "none", "--max-new-tokens", "2048", "x"], "ways out: another --max-new-tokens\n"),
    (["--drafter", "none"], "give either TEXT or --ids-file"),
    (["--drafter", "none", "--ids-file", "absent.jsonl"], "absent.jsonl"),
]


@pytest.mark.parametrize(("arguments", "expected"), BAD)
def test_bad_input_is_one_line(
    spot: Spot, models: Path, arguments: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = spot("decode", *on_target(models), *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert expected in ended.err


@pytest.mark.parametrize(
    "line", ["[1, 2]", '{"ids": "12"}', '{"ids": [1.0]}', '{"ids": [true]}', '{"ids": [-1]}', '{"ids": ', "{}"]
)
def test_bad_line_of_an_ids_file_is_named(spot: Spot, models: Path, tmp_path: Path, line: str) -> None:
    file = tmp_path / "ids.jsonl"
    file.write_text('{"ids": [3]}\n' + line + "\n")
    ended = spot("decode", *on_target(models), "--drafter", "none", "--ids-file", file)
    assert (ended.code, ended.out) == (2, "")
    assert f"{file}:2: " in ended.err


def cell(text: str, number: int | None, commit: int | None = None, *, kept: bool = True) -> GridCell:
    return GridCell(token=1, text=text, commit=commit, round=number, kept=kept)


BLOCK = GridBlock(
    start=32, cells=(cell("the", None), cell(" a\n", 6, 10), cell("\x1b[2J", 5, 9), cell("x", 6, 11, kept=False))
)


def test_grid_has_a_round_beside_every_token_and_no_control_characters() -> None:
    (row,) = grid(BLOCK, 6, 7)
    assert row.plain.split() == ["-", "the", "7", "␣a⏎", "6", "·[2J", "7", "x"]
    styles = [str(span.style) for span in row.spans]
    assert len({style.split(" strike")[0] for style in styles[1:]}) == 2  # two rounds, two colours
    assert "strike" in styles[-1]


def test_text_lists_the_commits_of_each_round_in_their_order() -> None:
    assert list(rounds_as_text(BLOCK)) == ["  round 6: 34 '\\x1b[2J'", "  round 7: 33 ' a\\n'  35 'x'"]


def test_text_cannot_act_on_a_terminal() -> None:
    assert harmless("a\x1b[31m\tb\n\x07é数") == "a\N{REPLACEMENT CHARACTER}[31m\tb\n\N{REPLACEMENT CHARACTER}é数"
