"""Weights from safetensors into a body: each key consumed exactly once, straight to its dtype and device."""

import warnings
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from workers.targets.files import weight_files
from workers.targets.layers import Body
from workers.targets.shape import BodyShape

HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


def load_body(folder: Path, shape: BodyShape, *, dtype: torch.dtype, device: torch.device) -> tuple[Body, Tensor]:
    """The body and its head `[vocab, hidden]` (the embedding itself when tied). Keys and shapes were checked by
    `facts_of`.

    A tied checkpoint that stores another head than its embedding gets a warning, and the embedding is used.
    """
    with torch.device("meta"):
        body = Body(shape)
    state: dict[str, Tensor] = {}
    for file in weight_files(folder):
        with safe_open(str(file), framework="pt", device=str(device)) as stored:
            for key in stored.keys():  # noqa: SIM118  (not a mapping)
                # A copy: tensors of a mapped file lie at odd addresses, and products then round differently.
                state[key] = stored.get_tensor(key).to(dtype, copy=True)
    head = state.pop(HEAD, None)
    embedding = state[EMBEDDING]
    if shape.tied:
        if head is not None and not torch.equal(head, embedding):
            warnings.warn(
                f"{folder}: tie_word_embeddings is true but {HEAD} differs; the embedding is used", stacklevel=2
            )
        head = embedding
    assert head is not None, "check_weights lets no untied checkpoint without a head through"
    body.load_state_dict({key.removeprefix("model."): value for key, value in state.items()}, strict=True, assign=True)
    return body.eval().requires_grad_(False), head
