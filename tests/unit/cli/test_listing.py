"""`spot list` and help texts: every option of a drafter is explained, once; titles fit whatever target they are for."""

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from orchestrator.commands.decode import OWN, decode
from orchestrator.commands.shared import default_of
from sweeps.load import packaged, settings_there_are
from sweeps.spec import DrafterSpec
from workers import catalog

Spot = Callable[..., Any]


def test_every_option_that_a_drafter_uses_is_explained(spot: Spot) -> None:
    used = {option for entry in catalog.DRAFTERS.values() for option in entry.uses}
    assert set(catalog.OPTIONS) == used
    lines = [line.split() for line in spot("list", "drafters").out.splitlines()]
    table = lines[lines.index(["option", "default", "meaning"]) + 1 :]
    told = {line[0]: " ".join(line[1:]) for line in table if line}
    assert told == {name: f"{default_of(name)} {meaning}" for name, meaning in catalog.OPTIONS.items()}


def test_every_table_is_json_too_with_the_names_in_their_order(spot: Spot) -> None:
    def rows(what: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in spot("list", what, "--json").out.splitlines()]

    names = {"targets": catalog.TARGETS, "drafters": catalog.DRAFTERS, "sweeps": packaged()}
    for what, expected in {**names, "settings": settings_there_are()}.items():
        assert [next(iter(row.values())) for row in rows(what)] == list(expected)
    assert [row["task"] for row in rows("tasks")] == ["tiny-arith", "tiny-code", "humaneval", "jsonl:PATH"]
    shapes = {row["target"]: (row["parameters"], row["bytes"], row["caches"]) for row in rows("targets")}
    assert shapes["sdar-8b-b32"] == (8_190_735_360, 16_381_470_720, ["exact"])  # bfloat16: two bytes each
    assert shapes["tiny-dream"] == (1_767_168, 7_068_672, ["dual", "prefix", "none"])  # float32: four
    spot_row = next(row for row in rows("drafters") if row["drafter"] == "spot")
    assert spot_row["options"]["budget"] == {"default": "8", "meaning": catalog.OPTIONS["budget"]}


@pytest.mark.parametrize("kind", ["spot", "spiffy"])
def test_what_is_shipped_for_drafters_is_listed_by_the_name_that_works(spot: Spot, kind: str) -> None:
    rows = [json.loads(line) for line in spot("list", "drafters", "--json").out.splitlines()]
    (shipped,) = [row["shipped_checkpoints"] for row in rows if row["drafter"] == kind]
    there_are = sorted(path.name for path in (catalog.ZOO / "drafters").glob(f"{kind}-*"))
    assert sorted(shipped) == there_are
    table = spot("list", "drafters").out
    assert all(f"{name}," in table or f"{name} " in table for name in there_are)


def test_defaults_are_those_of_the_dataclass(spot: Spot) -> None:
    known = {field.name: field.default for field in fields(DrafterSpec)}
    for option in catalog.OPTIONS:
        shown, default = default_of(option), known[option]
        if isinstance(default, bool):
            assert shown == str(default).lower()
        elif isinstance(default, str):
            assert shown == (default or "not given")
        else:
            assert float(shown) == default


def test_decode_explains_its_options_in_the_same_words() -> None:
    helps = {parameter.name: getattr(parameter, "help", "") for parameter in decode.params}
    for option in OWN:
        assert catalog.OPTIONS[option][1:] in helps[option]
        assert f"(default {default_of(option)})" in helps[option]


@pytest.mark.parametrize("name", packaged())
def test_titles_name_no_target(spot: Spot, name: str) -> None:
    (line,) = [line for line in spot("list", "sweeps").out.splitlines() if line.split()[0] == name]
    assert line.split()[1:]
    assert not any(target.partition("-")[0] in line.lower().split() for target in catalog.TARGETS)
    assert not any(target in line for target in catalog.TARGETS)


def test_the_study_says_which_sweep_it_is_and_how_to_plan_it(spot: Spot) -> None:
    assert "sweep order_study" in spot("study", "--help").out
    text = " ".join(spot("study", "order", "--help").out.split())
    assert "spot plan order_study shows what that would run" in text
    assert "sweep order_study" in text
