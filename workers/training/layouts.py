"""How a trained body is written in its family's published layout: config fields, and the tensors' names and parts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from workers.targets import llada, llada2
from workers.targets.shape import BodyShape, Weight, same_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A family's layout. `about` says of the architecture what a card's reader should know; `shift` is 1 where a
    position is predicted at the one before.
    """

    name: str
    architecture: str
    about: str
    fields: Callable[[BodyShape, int], dict[str, Any]]
    weights: Callable[[BodyShape], Iterable[Weight]]
    shift: int = 0


def qwen_fields(shape: BodyShape, max_positions: int) -> dict[str, Any]:
    """The fields that families with Qwen's spelling share."""
    return {
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.mlp,
        "hidden_act": "silu",
        "attention_bias": False,
        "rms_norm_eps": shape.norm_eps,
        "rope_theta": shape.rope_theta,
        "max_position_embeddings": max_positions,
        "tie_word_embeddings": shape.tied,
    }


def sdar_fields(shape: BodyShape, max_positions: int) -> dict[str, Any]:
    """config.json of SDAR."""
    return {"model_type": "sdar", "dtype": "bfloat16", **qwen_fields(shape, max_positions)}


def dream_fields(shape: BodyShape, max_positions: int) -> dict[str, Any]:
    """config.json of Dream, whose head width follows from the others."""
    fields = qwen_fields(shape, max_positions)
    del fields["head_dim"], fields["attention_bias"]
    return {"model_type": "Dream", "dtype": "bfloat16", **fields, "use_mrope": False, "use_sliding_window": False}


def llada2_fields(shape: BodyShape, max_positions: int) -> dict[str, Any]:
    """config.json of LLaDA2."""
    experts = shape.experts
    assert experts is not None
    fields = qwen_fields(shape, max_positions)
    del fields["attention_bias"]
    return {
        "model_type": "llada2_moe",
        "dtype": "bfloat16",
        **fields,
        "first_k_dense_replace": experts.dense_layers,
        "moe_intermediate_size": experts.mlp,
        "n_group": experts.groups,
        "norm_head": False,
        "num_experts": experts.count,
        "num_experts_per_tok": experts.chosen,
        "num_shared_experts": experts.shared,
        "partial_rotary_factor": shape.rotary_dim / shape.head_dim,
        "routed_scaling_factor": experts.scale,
        "score_function": "sigmoid",
        "topk_group": experts.groups_kept,
        "use_bias": False,
        "use_qk_norm": True,
        "use_qkv_bias": False,
    }


def llada_fields(shape: BodyShape, max_positions: int) -> dict[str, Any]:
    """config.json of LLaDA."""
    return {
        "model_type": "llada",
        "dtype": "bfloat16",
        "activation_type": "silu",
        "alibi": False,
        "attention_layer_norm": False,
        "block_group_size": 1,
        "block_type": "llama",
        "d_model": shape.hidden,
        "embedding_size": shape.vocab_size,
        "include_bias": False,
        "include_qkv_bias": False,
        "input_emb_norm": False,
        "layer_norm_type": "rms",
        "max_sequence_length": max_positions,
        "mlp_hidden_size": shape.mlp,
        "n_heads": shape.heads,
        "n_kv_heads": shape.kv_heads,
        "n_layers": shape.layers,
        "rms_norm_eps": shape.norm_eps,
        "rope": True,
        "rope_full_precision": shape.rotary_wide,
        "rope_theta": shape.rope_theta,
        "scale_logits": False,
        "vocab_size": shape.vocab_size,
        "weight_tying": shape.tied,
    }


LAYOUTS = {
    "sdar": Layout(
        name="SDAR",
        architecture="SDARForCausalLM",
        about="a Qwen3 body with block-causal attention",
        fields=sdar_fields,
        weights=same_names,
    ),
    "llada2": Layout(
        name="LLaDA2",
        architecture="LLaDA2MoeModelLM",
        about="a mixture of experts with block-causal attention",
        fields=llada2_fields,
        weights=llada2.weights,
    ),
    "llada": Layout(
        name="LLaDA",
        architecture="LLaDAModelLM",
        about="a LLaMA body that attends to the whole sequence",
        fields=llada_fields,
        weights=llada.weights,
    ),
    "dream": Layout(
        name="Dream",
        architecture="DreamModel",
        about="a Qwen2 body that attends to the whole sequence and predicts one ahead",
        fields=dream_fields,
        weights=same_names,
        shift=1,
    ),
}


def published(weights: Iterable[Weight], state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The published tensors of a body's state, in bfloat16 (wide ones as they are)."""
    tensors = {}
    for weight in weights:
        assert not weight.more, f"{weight.name}: a tensor of several weights is read, not written"
        part = state[weight.into.removeprefix("model.")].narrow(weight.axis, weight.start, weight.shape[weight.axis])
        tensors[weight.name] = (part if weight.wide else part.bfloat16()).contiguous()
    return tensors
