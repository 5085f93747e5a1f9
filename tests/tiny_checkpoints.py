"""Small random checkpoints on disk, for tests: folders in the published layouts and the knobs that break them."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from workers.targets import llada, llada2
from workers.targets.shape import BodyShape, ExpertShape, Weight, same_names
from workers.training.tiny_tokenizer import save_tokenizer, train_tokenizer

BEGIN, END, MASK = 0, 1, 2
PADDED = 3
"""Rows of the embedding behind the last id of the tokenizer."""

QWEN = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e4,
    "rope_scaling": None,
    "use_sliding_window": False,
    "max_position_embeddings": 64,
    "mask_token_id": MASK,
    "eos_token_id": END,
    "dtype": "float32",
}
EXPERTS = ExpertShape(count=8, chosen=3, groups=4, groups_kept=2, mlp=12, shared=1, scale=2.5, dense_layers=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a family's checkpoints look: config fields as published, options of the shape, names of tensors."""

    config: Mapping[str, Any]
    shape: Mapping[str, Any]
    weights: Callable[[BodyShape], Iterable[Weight]]
    size_field: str = "vocab_size"
    tied_field: str = "tie_word_embeddings"
    norm: str = "model.norm.weight"


LAYOUTS = {
    "sdar": Layout(
        config={
            **QWEN,
            "architectures": ["SDARForCausalLM"],
            "model_type": "sdar",
            "head_dim": 8,
            "attention_bias": False,
        },
        shape={"kv_heads": 2},
        weights=same_names,
    ),
    "llada2": Layout(
        config={
            **QWEN,
            "architectures": ["LLaDA2MoeModelLM"],
            "model_type": "llada2_moe",
            "head_dim": 8,
            "first_k_dense_replace": 1,
            "moe_intermediate_size": 12,
            "n_group": 4,
            "norm_head": False,
            "num_experts": 8,
            "num_experts_per_tok": 3,
            "num_shared_experts": 1,
            "partial_rotary_factor": 0.5,
            "routed_scaling_factor": 2.5,
            "score_function": "sigmoid",
            "topk_group": 2,
            "use_bias": False,
            "use_qk_norm": True,
            "use_qkv_bias": False,
        },
        shape={"kv_heads": 2, "fused_qkv": True, "rotary_dim": 4, "experts": EXPERTS},
        weights=llada2.weights,
    ),
    "llada": Layout(
        config={
            "architectures": ["LLaDAModelLM"],
            "model_type": "llada",
            "activation_type": "silu",
            "alibi": False,
            "attention_dropout": 0.0,
            "attention_layer_norm": False,
            "bias_for_layer_norm": False,
            "block_group_size": 1,
            "block_type": "llama",
            "d_model": 32,
            "include_bias": False,
            "include_qkv_bias": False,
            "input_emb_norm": False,
            "layer_norm_type": "rms",
            "layer_norm_with_affine": True,
            "max_sequence_length": 64,
            "mlp_hidden_size": 48,
            "mlp_ratio": 4,
            "multi_query_attention": None,
            "n_heads": 4,
            "n_kv_heads": 4,
            "n_layers": 2,
            "rms_norm_eps": 1e-6,
            "rope": True,
            "rope_full_precision": True,
            "rope_theta": 1e4,
            "scale_logits": False,
            "mask_token_id": MASK,
            "eos_token_id": END,
            "dtype": "float32",
        },
        shape={"kv_heads": 4, "qk_norm": False, "rotary_wide": True},
        weights=llada.weights,
        size_field="embedding_size",
        tied_field="weight_tying",
        norm="model.transformer.ln_f.weight",
    ),
    "dream": Layout(
        config={**QWEN, "architectures": ["DreamModel"], "model_type": "Dream", "use_mrope": False},
        shape={"kv_heads": 2, "qk_norm": False, "qkv_bias": True},
        weights=same_names,
    ),
}


def write_checkpoint(
    folder: Path,
    *,
    family: str = "sdar",
    config: Mapping[str, Any] | None = None,
    weights: Callable[[dict[str, Tensor]], None] | None = None,
    tied: bool = True,
) -> Path:
    """`tiny-rand`: 2 layers, hidden 32, vocabulary about 300, random weights, seed 0; `config` entries override
    (`...` drops one).
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, layout = train_tokenizer(["the word and the other word, 12 + 34"], limit=300), LAYOUTS[family]
    save_tokenizer(tokenizer, folder)
    shape = BodyShape(
        vocab_size=len(tokenizer) + PADDED,
        hidden=32,
        layers=2,
        heads=4,
        head_dim=8,
        mlp=48,
        norm_eps=1e-6,
        rope_theta=1e4,
        tied=tied,
        **layout.shape,
    )
    rng = torch.Generator().manual_seed(0)
    tensors = {weight.name: torch.randn(weight.shape, generator=rng) * 0.2 for weight in layout.weights(shape)}
    if weights:
        weights(tensors)
    save_file(tensors, str(folder / "model.safetensors"))
    values = {**layout.config, "vocab_size": shape.vocab_size, layout.size_field: shape.vocab_size}
    values |= {layout.tied_field: tied, **(config or {})}
    write_json(folder / "config.json", {key: value for key, value in values.items() if value is not ...})
    return folder


def cut_in_shards(folder: Path) -> tuple[Path, Path]:
    """Cut the single file of a checkpoint into two shards with an index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    files = (folder / "model-00001-of-00002.safetensors", folder / "model-00002-of-00002.safetensors")
    parts = (names[: len(names) // 2], names[len(names) // 2 :])
    for file, part in zip(files, parts, strict=True):
        save_file({name: tensors[name] for name in part}, str(file))
    mapping = {name: file.name for file, part in zip(files, parts, strict=True) for name in part}
    edit_json(folder / "model.safetensors.index.json", weight_map=mapping)
    return files


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Overwrite a JSON file."""
    path.write_text(json.dumps(value), encoding="utf-8")


def edit_json(path: Path, **entries: Any) -> None:
    """Set entries of a JSON file; `...` drops one."""
    value = (json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}) | entries
    write_json(path, {key: item for key, item in value.items() if item is not ...})


def on_target(models: Path) -> tuple[object, ...]:
    """The options that name the target of the command line's tests, whose block length is in no table."""
    return "--target", models / "target", "--block-length", 32
