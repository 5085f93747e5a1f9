"""Everything that decides the weights of an order model, apart from its trajectories: one frozen value, kept in its
card.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MAX_STEPS = 10_000_000  # some four thousand times the default: more is a slip of the keyboard


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRecipe:
    """How to train one order model.

    An example is a step, and a virtual prefix of 0 .. `max_depth` - 1 further commits beyond the known one; depths
    are drawn evenly among those its block still allows. `rate` rises over `rise` steps and falls along a cosine to
    zero. `dropout` acts on what each sub-layer adds; `confidence_weight` weighs the second head's loss. `held_out` is
    the share of prompts kept for validation (at least one), `evaluate_every` steps their loss is taken.
    """

    seed: int = 0
    steps: int = 2400
    batch: int = 256
    rate: float = 2e-3
    rise: int = 100
    weight_decay: float = 0.02
    dropout: float = 0.1
    confidence_weight: float = 1.0
    clip: float = 1.0
    max_depth: int = 10
    held_out: float = 0.1
    evaluate_every: int = 300

    def __post_init__(self) -> None:
        check_recipe(
            "order recipe", self, whole=("steps", "batch", "rise", "max_depth", "evaluate_every"), shares=("dropout",)
        )


def check_recipe(what: str, recipe: Any, *, whole: Sequence[str], shares: Sequence[str]) -> None:
    """Raise ValueError naming the field of a recipe that no training can have; `whole` and `shares` are its own."""

    def check(condition: bool, name: str, allowed: str) -> None:
        if not condition:
            raise ValueError(f"{what}: {name} is {getattr(recipe, name)!r}: allowed is {allowed}")

    for name in whole:
        check(not getattr(recipe, name) < 1, name, "a whole number from 1")
    check(recipe.steps <= MAX_STEPS, "steps", f"a whole number up to {MAX_STEPS}")
    for name in ("rate", "clip"):
        check(getattr(recipe, name) > 0, name, "a number above 0")
    for name in shares:
        check(0 <= getattr(recipe, name) < 1, name, "a share from 0 and below 1")
    check(0 < recipe.held_out < 1, "held_out", "a share above 0 and below 1")
