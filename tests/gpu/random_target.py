"""A block-causal target of any shape with random bfloat16 weights, made on the device: its cost without its files."""

import torch
from torch import Tensor

from sweeps.spec import MAX_BLOCK
from tests.gpu.setting import Setting
from workers.targets.base import TargetTraits
from workers.targets.block_causal import BlockCausalTarget
from workers.targets.layers import Body
from workers.targets.shape import BodyShape

STD = 0.02


def random_target(name: str, shape: BodyShape, setting: Setting) -> BlockCausalTarget:
    """The target, its head untied; it cannot encode text. Norms are ones, all else is normal with a small deviation."""
    state: dict[str, Tensor] = {}
    for key, size in shape.weights():
        weight = torch.empty(size, dtype=torch.bfloat16, device=setting.device)
        state[key.removeprefix("model.")] = weight.fill_(1.0) if "norm" in key else weight.normal_(std=STD)
    head_VH = state.pop("lm_head.weight")
    with torch.device("meta"):
        body = Body(shape)
    body.load_state_dict(state, strict=True, assign=True)
    body.eval().requires_grad_(False)
    traits = TargetTraits(
        name=f"{name} (random weights)",
        family="random",
        revision="",
        weight_digest="",
        parameters=shape.parameters,
        vocab_size=shape.vocab_size,
        mask_id=shape.vocab_size - 1,
        stop_ids=(),
        max_positions=64 * MAX_BLOCK,
        exact_cache=True,
        dtype="bfloat16",
        device=setting.device,
    )
    return BlockCausalTarget(
        body=body,
        head_VH=head_VH,
        traits=traits,
        text=None,  # type: ignore[arg-type]  # nobody encodes
        absent_ids=(),
        chat="raw",
    )
