"""Weights of a small model to and from its directory (see `stored`): float16 safetensors, float32 in memory."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import nn

from workers.models.plain import plain
from workers.models.stored import CONFIG_FILE, WEIGHTS_FILE, C, Kind, digest_of, inspect_stored

M = TypeVar("M", bound=nn.Module)


def save_model(model: nn.Module, config: Any, path: Path) -> str:
    """Write weights (float16) and configuration into the directory `path`; returns the checkpoint's digest."""
    path.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().cpu().half().contiguous() for name, tensor in model.state_dict().items()}
    weights = save_tensors(tensors)
    settings = replace(config, digest="")
    sealed = replace(settings, digest=digest_of(settings, weights))
    (path / WEIGHTS_FILE).write_bytes(weights)
    (path / CONFIG_FILE).write_bytes(json.dumps(plain(sealed), indent=2).encode() + b"\n")
    return str(sealed.digest)


def read_weights(model: nn.Module, path: Path) -> None:
    """Fill a model with the weights in the directory `path`, whose names and shapes were checked."""
    tensors = load_tensors((path / WEIGHTS_FILE).read_bytes())
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})


def load_model(make: Callable[[C], M], path: str | Path, kind: Kind[C], *, block_length: int, device: str) -> M:
    """What `make` makes of the configuration in the directory `path`, with its weights in float32, to be asked only.

    Raises ValueError when a file is missing, foreign or altered, or the model was trained for another block length.
    """
    stored = inspect_stored(Path(path), kind)
    made_for = stored.config.block_length
    if made_for != block_length:
        raise ValueError(f"{kind.noun} {path}: block_length is {made_for}: allowed is the decoder's {block_length}")
    model = make(stored.config)
    read_weights(model, stored.path)
    return model.to(device).eval()
