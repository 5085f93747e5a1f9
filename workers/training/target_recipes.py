"""Recipes: every number that decides the weights of a shipped tiny target, in one frozen value.

A recipe plus its seed names a checkpoint: `train_target(recipe)` is a pure function of it on one machine with one
number of threads. The model card stores the recipe as JSON, so a checkpoint says how it was made.
"""

from dataclasses import dataclass, replace
from typing import Any

from workers.targets.shape import BodyShape, ExpertShape

FAMILIES: dict[str, dict[str, Any]] = {  # what their bodies have beside widths
    "sdar": {},
    "llada2": {"fused_qkv": True},
    "llada": {"qk_norm": False, "rotary_wide": True},
    "dream": {"qk_norm": False, "qkv_bias": True},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRecipe:
    """How to train one target of an architecture `family`, with a tokenizer that cuts `words` in its own way.

    Three phases: `warm_start` autoregressive steps, `steps` of block diffusion, and for whole-sequence families
    `whole_steps` on canvases with room for `new_tokens`, of which a share `behind` of the masks behind the open block
    is learned. Learning rates rise over `rise` steps in each, stay, and fall linearly to zero over the last `decay`
    share of the last phase. `copies` noisy copies share one clean copy of each example (canvases: `whole_batch` alone).
    `full_mask` is the share of blocks that are masked completely; the others draw their mask rate uniformly.
    `balance_rate` moves the bias of `experts` that work too often or too seldom.
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
    family: str = "sdar"
    words: str = "space before"
    whole_steps: int = 0
    whole_batch: int = 0
    new_tokens: int = 128
    behind: float = 0.0
    balance_rate: float = 0.0
    experts: ExpertShape | None = None

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"family: {self.family!r} is none of {', '.join(FAMILIES)}")
        whole = self.family in ("llada", "dream")
        if whole != (self.whole_steps > 0) or whole != (self.whole_batch > 0):
            raise ValueError(f"whole_steps, whole_batch: {self.family} needs {'some' if whole else 'none'}")
        if (self.experts is not None) != (self.family == "llada2"):
            raise ValueError(f"experts: {self.family} has {'none' if self.experts else 'some'}")
        for field in ("block_length", "examples_per_task", "batch", "copies", "steps", "rise"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field}: {getattr(self, field)} is not positive")
        if self.warm_start < 0:
            raise ValueError(f"warm_start: {self.warm_start} is negative")
        for field in ("full_mask", "decay", "behind"):
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
            rotary_dim=self.head_dim // 2 if self.family == "llada2" else 0,
            experts=self.experts,
            **FAMILIES[self.family],
        )

    @property
    def phases(self) -> tuple[tuple[str, int], ...]:
        """Name and steps of the phases."""
        return ("warm", self.warm_start), ("diffusion", self.steps), ("whole", self.whole_steps)


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

TINY_LLADA2 = replace(
    TINY_SDAR,
    name="tiny-llada2",
    seed=2,
    family="llada2",
    words="space behind",
    balance_rate=2e-3,
    experts=ExpertShape(count=8, chosen=2, groups=2, groups_kept=1, mlp=96, shared=1, scale=2.5, dense_layers=1),
)

TINY_LLADA = replace(
    TINY_SDAR,
    name="tiny-llada",
    seed=3,
    family="llada",
    words="blank before",
    kv_heads=4,
    warm_start=400,
    steps=600,
    whole_steps=800,
    whole_batch=64,
    behind=0.1,
)

TINY_DREAM = replace(TINY_LLADA, name="tiny-dream", seed=4, family="dream", words="blank behind", kv_heads=2)

RECIPES = {recipe.name: recipe for recipe in (TINY_SDAR, TINY_SDAR_S, TINY_LLADA2, TINY_LLADA, TINY_DREAM)}
