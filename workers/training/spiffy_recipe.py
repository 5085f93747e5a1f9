"""What decides a draft graph apart from its trajectories."""

from dataclasses import dataclass

from sweeps.checks import check
from sweeps.spec import MAX_BUDGET


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiffyRecipe:
    """`budget_max` nodes at most; `held_out` is the share of each task's prompts that is judged and not counted."""

    budget_max: int = 64
    held_out: float = 0.25

    def __post_init__(self) -> None:
        allowed = f"a whole number from 1 to {MAX_BUDGET}"
        check(1 <= self.budget_max <= MAX_BUDGET, "spiffy recipe: budget_max", self.budget_max, allowed)
        check(0 < self.held_out < 1, "spiffy recipe: held_out", self.held_out, "a share above 0 and below 1")
