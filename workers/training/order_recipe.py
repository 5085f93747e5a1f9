"""Everything that decides the weights of an order model, apart from its trajectories: one frozen value, kept in its
card.
"""

from dataclasses import dataclass

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
        for name in ("steps", "batch", "rise", "max_depth", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"order recipe: {name} is {getattr(self, name)!r}: allowed is a whole number from 1")
        if self.steps > MAX_STEPS:
            raise ValueError(f"order recipe: steps is {self.steps!r}: allowed is a whole number up to {MAX_STEPS}")
        for name in ("rate", "clip"):
            if not getattr(self, name) > 0:
                raise ValueError(f"order recipe: {name} is {getattr(self, name)!r}: allowed is a number above 0")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"order recipe: dropout is {self.dropout!r}: allowed is a share from 0 and below 1")
        if not 0 < self.held_out < 1:
            raise ValueError(f"order recipe: held_out is {self.held_out!r}: allowed is a share above 0 and below 1")
