"""Everything that decides the weights of a set model, apart from its trajectories: one frozen value, on its card."""

from dataclasses import dataclass

from workers.models.order_shapes import DEPTH_CAP
from workers.training.order_recipe import check_recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRecipe:
    """How to train one set model, or to fit its input layer to another target.

    An example is a step (the known one), 0 .. `max_depth` - 1 further steps as drafted, and the step after these;
    depths are drawn evenly among those its block still allows (deeper ones than the default share its last row of the
    path table). `rate` rises over `rise` steps and falls along a cosine
    to zero. `dropout` acts on what each sub-layer adds. A position's tokens weigh 1 where the step fills it and
    `other_weight` where it stays open. `held_out` is the share of prompts kept for validation (at least one). `width`
    and `layers` are the model's; `calibrate_from` is the digest of the model whose other weights are kept ("": none,
    all are trained).
    """

    seed: int = 0
    steps: int = 3000
    batch: int = 128
    rate: float = 2e-3
    rise: int = 100
    weight_decay: float = 0.02
    dropout: float = 0.1
    other_weight: float = 0.1
    clip: float = 1.0
    max_depth: int = DEPTH_CAP
    held_out: float = 0.1
    evaluate_every: int = 250
    width: int = 256
    layers: int = 4
    calibrate_from: str = ""

    def __post_init__(self) -> None:
        whole = ("steps", "batch", "rise", "max_depth", "evaluate_every", "width", "layers")
        check_recipe("set recipe", self, whole=whole, shares=("dropout", "other_weight"))
