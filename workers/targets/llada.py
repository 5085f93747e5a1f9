"""LLaDA (GSAI-ML/LLaDA-8B-*): a LLaMA body in OLMo's spelling that attends to the whole sequence.

Logits at position i predict position i. `ff_proj` is the gate; inside a block `ff_out` is the MLP's last projection,
outside it is the output head.
"""

from collections.abc import Iterator
from pathlib import Path

from workers.targets.config import MOST_LAYERS, CheckpointConfig, ConfigFile
from workers.targets.shape import BodyShape, Weight
from workers.targets.tokens import token_facts

TURN_END = "<|eot_id|>"
OUTER = {
    "model.embed_tokens.weight": "model.transformer.wte.weight",
    "model.norm.weight": "model.transformer.ln_f.weight",
    "lm_head.weight": "model.transformer.ff_out.weight",
}
INNER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "q_proj",
    "self_attn.k_proj": "k_proj",
    "self_attn.v_proj": "v_proj",
    "self_attn.o_proj": "attn_out",
    "post_attention_layernorm": "ff_norm",
    "mlp.gate_proj": "ff_proj",
    "mlp.up_proj": "up_proj",
    "mlp.down_proj": "ff_out",
}


def weights(shape: BodyShape) -> Iterator[Weight]:
    """The published tensors."""
    for name, size in shape.weights():
        if name in OUTER:
            yield Weight(name=OUTER[name], shape=size, into=name)
        else:
            layer, inner = name.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
            yield Weight(name=f"model.transformer.blocks.{layer}.{INNER[inner]}.weight", shape=size, into=name)


def read(folder: Path) -> CheckpointConfig:
    """Config and tokenizer files of a checkpoint folder, checked."""
    file = ConfigFile.of(folder)
    file.only("block_type", "llama", absent=False)
    file.only("activation_type", "silu", absent=False)
    file.only("layer_norm_type", "rms", absent=False)
    file.only("rope", True, absent=False)
    for field in ("alibi", "attention_layer_norm", "include_bias", "scale_logits", "input_emb_norm"):
        file.only(field, False)
    for field in ("include_qkv_bias", "bias_for_layer_norm", "multi_query_attention"):
        file.only(field, False, None)
    file.only("block_group_size", 1)
    file.full_attention()
    file.rotated_share()
    for field in ("clip_qkv", "sliding_window"):
        file.only(field, None)
    hidden = file.whole("d_model")
    heads = file.divisor("n_heads", hidden)
    rows = "embedding_size" if file.values.get("embedding_size") is not None else "vocab_size"
    shape = BodyShape(
        vocab_size=file.whole(rows),
        hidden=hidden,
        layers=file.whole("n_layers", most=MOST_LAYERS),
        heads=heads,
        kv_heads=heads if file.present("n_kv_heads") is None else file.divisor("n_kv_heads", heads),
        head_dim=file.even(hidden // heads, "d_model / n_heads"),
        mlp=file.whole("mlp_hidden_size"),
        norm_eps=file.number("rms_norm_eps"),
        rope_theta=file.rope_theta(),
        tied=file.flag("weight_tying"),
        qk_norm=False,
        rotary_wide=file.flag("rope_full_precision"),
    )
    return CheckpointConfig(
        family="llada",
        attention="whole",
        shifted=False,
        shape=shape,
        weights=tuple(weights(shape)),
        max_positions=file.positions("max_sequence_length"),
        tokens=token_facts(folder, file.values, shape.vocab_size, ends=(TURN_END,)),
        stored_dtype=file.stored_dtype(),
        head=OUTER["lm_head.weight"],
    )
