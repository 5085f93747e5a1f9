"""SDAR (JetLM/SDAR-*-Chat-b*): a Qwen3 body with block-causal attention and an exact prefix cache.

Logits at position i predict position i. The weights' names are Qwen3's.
"""

from pathlib import Path

from workers.targets.config import CheckpointConfig, ConfigFile
from workers.targets.shape import same_names
from workers.targets.tokens import token_facts


def read(folder: Path) -> CheckpointConfig:
    """Config and tokenizer files of a checkpoint folder, checked."""
    file = ConfigFile.of(folder)
    file.only("hidden_act", "silu")
    file.only("attention_bias", False, None)
    file.full_attention()
    file.rotated_share()
    heads = file.whole("num_attention_heads")
    shape = file.body_shape(heads=heads, head_dim=file.even(file.whole("head_dim"), "head_dim"))
    return CheckpointConfig(
        family="sdar",
        attention="block-causal",
        shifted=False,
        shape=shape,
        weights=tuple(same_names(shape)),
        max_positions=file.positions("max_position_embeddings"),
        tokens=token_facts(folder, file.values, shape.vocab_size),
        stored_dtype=file.stored_dtype(),
    )
