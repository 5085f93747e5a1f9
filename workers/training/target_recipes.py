"""Recipes: every number that decides the weights of a shipped tiny target, in one frozen value.

A recipe plus its seed names a checkpoint: `train_target(recipe)` is a pure function of it on one machine with one
number of threads. The model card stores the recipe as JSON, so a checkpoint says how it was made.
"""

from dataclasses import dataclass, replace

from workers.targets.shape import BodyShape


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRecipe:
    """How to train one block-diffusion target.

    `copies` noisy copies share one clean copy of each example. `warm_start` is the number of autoregressive steps that
    come first; learning rates rise over `rise` steps, stay, and fall linearly to zero over the last `decay` share of
    the steps. `full_mask` is the share of blocks that are masked completely; the others draw their mask rate uniformly.
    """

    name: str
    seed: int
    block_length: int
    tasks: tuple[str, ...]
    examples_per_task: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp: int
    max_positions: int
    warm_start: int
    steps: int
    batch: int
    copies: int
    full_mask: float
    muon_rate: float
    adam_rate: float
    rise: int
    decay: float

    def __post_init__(self) -> None:
        for field in ("block_length", "examples_per_task", "batch", "copies", "steps", "rise"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field}: {getattr(self, field)} is not positive")
        if self.warm_start < 0:
            raise ValueError(f"warm_start: {self.warm_start} is negative")
        for field in ("full_mask", "decay"):
            if not 0.0 <= getattr(self, field) <= 1.0:
                raise ValueError(f"{field}: {getattr(self, field)} is not in 0..1")

    def shape(self, vocab_size: int) -> BodyShape:
        """Model shape for a tokenizer of `vocab_size` ids; the head is tied."""
        return BodyShape(
            vocab_size=vocab_size,
            hidden=self.hidden,
            layers=self.layers,
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            mlp=self.mlp,
            norm_eps=1e-6,
            rope_theta=10_000.0,
            tied=True,
        )


TINY_SDAR = TargetRecipe(
    name="tiny-sdar",
    seed=0,
    block_length=32,
    tasks=("tiny-arith", "tiny-code"),
    examples_per_task=40_000,
    hidden=192,
    layers=4,
    heads=4,
    kv_heads=2,
    head_dim=48,
    mlp=512,
    max_positions=1024,
    warm_start=500,
    steps=700,
    batch=32,
    copies=2,
    full_mask=0.15,
    muon_rate=3e-3,
    adam_rate=3e-3,
    rise=30,
    decay=0.5,
)

TINY_SDAR_S = replace(  # a quarter of the parameters, as the 1.7B model beside the 8B one
    TINY_SDAR, name="tiny-sdar-s", seed=1, hidden=96, head_dim=24, mlp=240, warm_start=800, steps=1400
)

RECIPES = {recipe.name: recipe for recipe in (TINY_SDAR, TINY_SDAR_S)}
