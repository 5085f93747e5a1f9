"""What is shipped in the zoo fits together: weights, tasks and recipe are those that the cards speak of."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from workers.catalog import TARGETS, ZOO, resolve
from workers.models.facts import inspect_order_model
from workers.targets.inspect import inspect_checkpoint
from workers.training.order_card import read_card
from workers.training.order_recipe import OrderRecipe
from workers.training.target_recipes import RECIPES, TargetRecipe

SHIPPED = sorted(name for name, entry in TARGETS.items() if Path(entry.path).is_absolute())


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_target_is_the_one_its_card_describes(name: str) -> None:
    card = json.loads((ZOO / name / "card.json").read_text(encoding="utf-8"))
    facts = inspect_checkpoint(ZOO / name)
    assert facts.weight_digest == card["weight_digest"]
    assert facts.parameters == card["parameters"]
    assert msgspec.convert(card["recipe"], TargetRecipe, strict=True) == RECIPES[name]
    tasks = {
        "tiny-arith": resolve("workers.tasks.tiny_arith:TinyArith"),
        "tiny-code": resolve("workers.tasks.tiny_code:TinyCode"),
    }
    assert {row["task"] for row in card["held_out"]} == set(tasks)
    for row in card["held_out"]:
        assert row["data_digest"] == tasks[row["task"]]().data_digest
        assert row["correct"]["value"] >= 0.85


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_drafter_is_the_one_its_card_describes(name: str) -> None:
    folder = Path(TARGETS[name].artifacts["order_model"])
    card, facts = read_card(folder), inspect_order_model(folder)
    assert card.digest == facts.digest
    assert set(card.targets.values()) == {inspect_checkpoint(ZOO / name).weight_digest}
    assert card.recipe == replace(OrderRecipe(), steps=card.recipe.steps)
    most = 0.75 if name == "tiny-sdar" else 0.85  # a third of the steps and half the prompts
    for depth in (1, 2, 3, 4):
        row = card.totals()[depth]
        assert 1 - row.order_model.value <= most * (1 - row.stale_confidence.value)


def test_the_zoo_is_small() -> None:
    assert sum(path.stat().st_size for path in ZOO.rglob("*") if path.is_file()) < 40_000_000
