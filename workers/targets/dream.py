"""Dream (Dream-org/Dream-v0-*-7B): a Qwen2.5 body that attends to the whole sequence and predicts one ahead.

The hidden state of position i - 1 predicts position i, as in the autoregressive model that it was made from. The
weights' names are Qwen2's; queries, keys and values have biases.
"""

from pathlib import Path

from workers.targets.config import CheckpointConfig, ConfigFile
from workers.targets.shape import same_names
from workers.targets.tokens import token_facts

TURN_END = "<|im_end|>"


def read(folder: Path) -> CheckpointConfig:
    """Config and tokenizer files of a checkpoint folder, checked."""
    file = ConfigFile.of(folder)
    file.only("hidden_act", "silu")
    file.only("use_mrope", False)
    file.full_attention()
    file.rotated_share()
    hidden = file.whole("hidden_size")
    heads = file.divisor("num_attention_heads", hidden)
    shape = file.body_shape(
        heads=heads,
        head_dim=file.even(hidden // heads, "hidden_size / num_attention_heads"),
        qk_norm=False,
        qkv_bias=True,
    )
    return CheckpointConfig(
        family="dream",
        attention="whole",
        shifted=True,
        shape=shape,
        weights=tuple(same_names(shape)),
        max_positions=file.positions("max_position_embeddings"),
        tokens=token_facts(folder, file.values, shape.vocab_size, ends=(TURN_END,)),
        stored_dtype=file.stored_dtype(),
    )
