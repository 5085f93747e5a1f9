"""`spot list` and help texts: every option of a drafter is explained, once; titles fit whatever target they are for."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from orchestrator.commands.decode import OWN, decode
from orchestrator.commands.shared import default_of
from sweeps.load import packaged
from sweeps.spec import DrafterSpec
from workers import catalog

Spot = Callable[..., Any]


def test_every_option_that_a_drafter_uses_is_explained(spot: Spot) -> None:
    used = {option for entry in catalog.DRAFTERS.values() for option in entry.uses}
    assert set(catalog.OPTIONS) == used
    lines = [line.split() for line in spot("list", "drafters").out.splitlines()]
    table = lines[lines.index(["option", "default", "meaning"]) + 1 :]
    assert {line[0]: " ".join(line[2:]) for line in table if line} == dict(catalog.OPTIONS)


def test_defaults_are_those_of_the_dataclass(spot: Spot) -> None:
    known = {field.name: field.default for field in fields(DrafterSpec)}
    for option in catalog.OPTIONS:
        shown, default = default_of(option), known[option]
        if isinstance(default, bool):
            assert shown == str(default).lower()
        elif isinstance(default, str):
            assert shown == (default or "none")
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
