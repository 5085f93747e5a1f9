"""The widths and constants of a Qwen3 body, apart from torch so that planning and recipes can speak of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyShape:
    """Widths and constants of a Qwen3 body; `tied` says that the output head is the embedding."""

    vocab_size: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp: int
    norm_eps: float
    rope_theta: float
    tied: bool

    def weights(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Published name and shape of every weight, the head included when it is not tied."""
        q_width, kv_width = self.heads * self.head_dim, self.kv_heads * self.head_dim
        yield "model.embed_tokens.weight", (self.vocab_size, self.hidden)
        for i in range(self.layers):
            layer = f"model.layers.{i}"
            yield f"{layer}.input_layernorm.weight", (self.hidden,)
            yield f"{layer}.self_attn.q_proj.weight", (q_width, self.hidden)
            yield f"{layer}.self_attn.k_proj.weight", (kv_width, self.hidden)
            yield f"{layer}.self_attn.v_proj.weight", (kv_width, self.hidden)
            yield f"{layer}.self_attn.o_proj.weight", (self.hidden, q_width)
            yield f"{layer}.self_attn.q_norm.weight", (self.head_dim,)
            yield f"{layer}.self_attn.k_norm.weight", (self.head_dim,)
            yield f"{layer}.post_attention_layernorm.weight", (self.hidden,)
            yield f"{layer}.mlp.gate_proj.weight", (self.mlp, self.hidden)
            yield f"{layer}.mlp.up_proj.weight", (self.mlp, self.hidden)
            yield f"{layer}.mlp.down_proj.weight", (self.hidden, self.mlp)
        yield "model.norm.weight", (self.hidden,)
        if not self.tied:
            yield "lm_head.weight", (self.vocab_size, self.hidden)

    @property
    def parameters(self) -> int:
        """Number of weights; a tied head counts once."""
        return sum(prod(shape) for _, shape in self.weights())
