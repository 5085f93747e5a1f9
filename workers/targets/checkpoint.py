"""Weights from safetensors into a body: each key consumed exactly once, straight to its place, dtype and device.

The body's memory is allocated once; a stored tensor is copied into its part of it and let go, so that loading holds the
model and one tensor.
"""

from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from workers.targets.config import CheckpointConfig
from workers.targets.files import weight_files
from workers.targets.layers import Body
from workers.targets.shape import EMBEDDING, HEAD


def load_body(
    folder: Path, config: CheckpointConfig, *, dtype: torch.dtype, device: torch.device
) -> tuple[Body, Tensor]:
    """The body and its head `[vocab, hidden]` (the embedding itself when tied). Keys and shapes were checked by
    `facts_of`; the stored head of a tied checkpoint is not read.
    """
    with torch.device("meta"):
        body = Body(config.shape)
    places = {weight.name: weight for weight in config.weights}
    wide = torch.promote_types(dtype, torch.float32)
    kept_wide = {into for weight in config.weights if weight.wide for into in (weight.into, *weight.more)}
    sizes = dict(config.shape.weights())
    state = {
        name: torch.empty(size, dtype=wide if name in kept_wide else dtype, device=device)
        for name, size in sizes.items()
    }
    for file in weight_files(folder):
        with safe_open(str(file), framework="pt", device=str(device)) as stored:
            for key in stored.keys():  # noqa: SIM118  (not a mapping)
                if key not in places:  # the head of a tied checkpoint
                    continue
                place = places.pop(key)
                tensor = stored.get_tensor(key)
                for into, start, begin, length in place.pieces(sizes):
                    part = state[into].narrow(place.axis, start, length)
                    part.copy_(tensor.narrow(place.axis, begin, length))
    assert not places, "check_weights lets no checkpoint with missing tensors through"
    head = state.pop(HEAD, state[EMBEDDING])
    body.load_state_dict({key.removeprefix("model."): value for key, value in state.items()}, strict=True, assign=True)
    return body.eval().requires_grad_(False), head
