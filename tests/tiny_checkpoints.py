"""Small random checkpoints on disk, for tests: a folder in the published layout and the knobs that break it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from workers.targets.shape import BodyShape
from workers.training.tiny_tokenizer import save_tokenizer, train_tokenizer

BEGIN, END, MASK = 0, 1, 2
PADDED = 3
"""Rows of the embedding behind the last id of the tokenizer."""


def write_checkpoint(
    folder: Path,
    *,
    config: Mapping[str, Any] | None = None,
    weights: Callable[[dict[str, Tensor]], None] | None = None,
    tied: bool = True,
) -> Path:
    """`tiny-rand`: 2 layers, hidden 32, vocabulary about 300, random weights, seed 0; `config` entries override
    (`...` drops one).
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer(["the word and the other word, 12 + 34"], limit=300)
    save_tokenizer(tokenizer, folder)
    shape = BodyShape(
        vocab_size=len(tokenizer) + PADDED,
        hidden=32,
        layers=2,
        heads=4,
        kv_heads=2,
        head_dim=8,
        mlp=48,
        norm_eps=1e-6,
        rope_theta=1e4,
        tied=tied,
    )
    rng = torch.Generator().manual_seed(0)
    tensors = {name: torch.randn(size, generator=rng) * 0.2 for name, size in shape.weights()}
    if weights:
        weights(tensors)
    save_file(tensors, str(folder / "model.safetensors"))
    values: dict[str, Any] = {
        "architectures": ["SDARForCausalLM"],
        "model_type": "sdar",
        "block_size": 999,
        "vocab_size": shape.vocab_size,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "intermediate_size": 48,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e4,
        "max_position_embeddings": 64,
        "tie_word_embeddings": tied,
        "mask_token_id": MASK,
        "eos_token_id": END,
        "dtype": "float32",
    }
    values |= config or {}
    write_json(folder / "config.json", {key: value for key, value in values.items() if value is not ...})
    return folder


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Overwrite a JSON file."""
    path.write_text(json.dumps(value), encoding="utf-8")


def edit_json(path: Path, **entries: Any) -> None:
    """Set entries of a JSON file; `...` drops one."""
    value = (json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}) | entries
    write_json(path, {key: item for key, item in value.items() if item is not ...})
