"""LLaDA2.0 (inclusionAI/LLaDA2.0-*): block-causal mixture of experts with an exact prefix cache.

One projection makes queries, keys and values; per-head q/k norm; half of each head turns with the position. The first
layer's MLP is dense, the others route (`mlp.py`). LLaDA2.1 edits committed tokens and is no target.
"""

from collections.abc import Iterator
from pathlib import Path

from workers.targets.config import MOST_EXPERTS, MOST_LAYERS, CheckpointConfig, ConfigFile
from workers.targets.shape import BodyShape, ExpertShape, Weight
from workers.targets.tokens import token_facts

MASK = 156895  # of the published LLaDA2.0 models, whose config does not name it
NAMES = {
    "model.embed_tokens.": "model.word_embeddings.",
    ".self_attn.qkv_proj.": ".attention.query_key_value.",
    ".self_attn.o_proj.": ".attention.dense.",
    ".self_attn.q_norm.": ".attention.query_layernorm.",
    ".self_attn.k_norm.": ".attention.key_layernorm.",
    ".mlp.router.weight": ".mlp.gate.weight",
    ".mlp.router.bias": ".mlp.gate.expert_bias",
    ".mlp.shared.": ".mlp.shared_experts.",
}


def weights(shape: BodyShape) -> Iterator[Weight]:
    """The published tensors; each expert has its own, which is a part of the layer's wide one."""
    for into, size in shape.weights():
        layer, wide_mlp, projection = into.partition(".mlp.experts.")
        if wide_mlp and shape.experts:
            axis = 1 if projection.startswith("down_proj") else 0
            width = shape.experts.mlp
            part = (shape.hidden, width) if axis else (width, shape.hidden)
            for e in range(shape.experts.count):
                name = f"{layer}.mlp.experts.{e}.{projection}"
                yield Weight(name=name, shape=part, into=into, axis=axis, start=e * width)
        else:
            name = into
            for ours, theirs in NAMES.items():
                name = name.replace(ours, theirs)
            yield Weight(name=name, shape=size, into=into, wide=into.endswith("router.bias"))


def read(folder: Path) -> CheckpointConfig:
    """Config and tokenizer files of a checkpoint folder, checked."""
    file = ConfigFile.of(folder)
    file.only("hidden_act", "silu")
    file.only("score_function", "sigmoid")
    file.only("use_qk_norm", True, absent=False)
    for field in ("use_bias", "use_qkv_bias"):
        file.only(field, False, absent=False)
    file.only("norm_topk_prob", True)
    file.only("norm_head", False)
    file.only("moe_router_enable_expert_bias", True, None)
    file.full_attention()
    heads, head_dim = file.whole("num_attention_heads"), file.whole("head_dim")
    turned = int(head_dim * file.rotated_share(None))
    shape = file.body_shape(
        heads=heads,
        head_dim=head_dim,
        fused_qkv=True,
        rotary_dim=file.even(turned, "head_dim x partial_rotary_factor"),
        experts=expert_shape(file),
    )
    return CheckpointConfig(
        family="llada2",
        attention="block-causal",
        shifted=False,
        shape=shape,
        weights=tuple(weights(shape)),
        max_positions=file.positions("max_position_embeddings"),
        tokens=token_facts(folder, file.values, shape.vocab_size, published_mask=MASK),
        stored_dtype=file.stored_dtype(),
    )


def expert_shape(file: ConfigFile) -> ExpertShape:
    """The mixture's numbers. Raises ValueError naming the file where they cannot go together."""
    most = max(1, MOST_EXPERTS // file.whole("num_hidden_layers", most=MOST_LAYERS))
    numbers = {
        "count": file.whole("num_experts", most=most),
        "chosen": file.whole("num_experts_per_tok"),
        "groups": file.whole("n_group"),
        "groups_kept": file.whole("topk_group"),
        "mlp": file.whole("moe_intermediate_size"),
        "shared": file.whole("num_shared_experts", least=0),
        "dense_layers": file.whole("first_k_dense_replace", least=0),
    }
    scale = file.number("routed_scaling_factor")
    try:
        return ExpertShape(**numbers, scale=scale)
    except ValueError as error:
        raise ValueError(f"{file.path}: {error}") from None
