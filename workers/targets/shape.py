"""The widths and constants of a Transformer body, apart from torch so that planning and recipes can speak of them.

One body serves every family: the options say where families differ. Weights have the names of Qwen3; a family whose
checkpoints name or cut them otherwise says so with `Weight`s.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertShape:
    """The mixture-of-experts layers: all but the first `dense_layers`, whose MLP is an ordinary one.

    `count` experts of width `mlp` in `groups` equal groups; of the `groups_kept` best groups the `chosen` best experts
    work, weighted by their scores' shares times `scale`. `shared` experts (one MLP of their joint width) always work.
    """

    count: int
    chosen: int
    groups: int
    groups_kept: int
    mlp: int
    shared: int
    scale: float
    dense_layers: int

    def __post_init__(self) -> None:
        if self.count % self.groups or self.count // self.groups < 2:
            raise ValueError(f"{self.count} experts in {self.groups} groups: allowed are equal groups of 2 or more")
        if not 1 <= self.groups_kept <= self.groups:
            raise ValueError(f"groups kept is {self.groups_kept}; allowed is 1 to {self.groups}")
        if not 1 <= self.chosen <= self.count // self.groups * self.groups_kept:
            raise ValueError(f"experts chosen is {self.chosen}; the groups kept have fewer")


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyShape:
    """Widths and constants of a body; `tied` says that the output head is the embedding.

    `qk_norm`: queries and keys are normed per head. `qkv_bias`: their projections and the values' have one.
    `fused_qkv`: the three are one. The first `rotary_dim` dimensions of a head turn with the position (0: all).
    `rotary_wide`: they turn in float32 or wider.
    """

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
    qk_norm: bool = True
    qkv_bias: bool = False
    fused_qkv: bool = False
    rotary_dim: int = 0
    rotary_wide: bool = False
    experts: ExpertShape | None = None

    def has_experts(self, layer: int) -> bool:
        """Whether the MLP of a layer is a mixture of experts."""
        return self.experts is not None and layer >= self.experts.dense_layers

    @property
    def projections(self) -> tuple[tuple[str, int], ...]:
        """Name and width of the projections that make queries, keys and values, in this order."""
        q_width, kv_width = self.heads * self.head_dim, self.kv_heads * self.head_dim
        if self.fused_qkv:
            return (("qkv_proj", q_width + 2 * kv_width),)
        return (("q_proj", q_width), ("k_proj", kv_width), ("v_proj", kv_width))

    def weights(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Name and shape of every weight, the head included when it is not tied."""
        yield EMBEDDING, (self.vocab_size, self.hidden)
        for i in range(self.layers):
            layer = f"model.layers.{i}"
            yield f"{layer}.input_layernorm.weight", (self.hidden,)
            for name, width in self.projections:
                yield f"{layer}.self_attn.{name}.weight", (width, self.hidden)
                if self.qkv_bias:
                    yield f"{layer}.self_attn.{name}.bias", (width,)
            yield f"{layer}.self_attn.o_proj.weight", (self.hidden, self.heads * self.head_dim)
            if self.qk_norm:
                yield f"{layer}.self_attn.q_norm.weight", (self.head_dim,)
                yield f"{layer}.self_attn.k_norm.weight", (self.head_dim,)
            yield f"{layer}.post_attention_layernorm.weight", (self.hidden,)
            if self.experts is None or not self.has_experts(i):
                yield from self._mlp(f"{layer}.mlp", self.mlp)
                continue
            yield f"{layer}.mlp.router.weight", (self.experts.count, self.hidden)
            yield f"{layer}.mlp.router.bias", (self.experts.count,)
            yield from self._mlp(f"{layer}.mlp.experts", self.experts.count * self.experts.mlp)
            if self.experts.shared:
                yield from self._mlp(f"{layer}.mlp.shared", self.experts.shared * self.experts.mlp)
        yield "model.norm.weight", (self.hidden,)
        if not self.tied:
            yield HEAD, (self.vocab_size, self.hidden)

    def _mlp(self, name: str, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        yield f"{name}.gate_proj.weight", (width, self.hidden)
        yield f"{name}.up_proj.weight", (width, self.hidden)
        yield f"{name}.down_proj.weight", (self.hidden, width)

    @property
    def parameters(self) -> int:
        """Number of weights; a tied head counts once."""
        return sum(prod(shape) for _, shape in self.weights())


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A tensor of a published checkpoint and the part of one of the body's weights that it is.

    It fills `into` along `axis` from `start` on; `wide` weights are kept in float32 or wider. A tensor that holds whole
    weights one behind the other along `axis` fills `into` and then those of `more`.
    """

    name: str
    shape: tuple[int, ...]
    into: str
    axis: int = 0
    start: int = 0
    wide: bool = False
    more: tuple[str, ...] = ()

    def pieces(self, sizes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, int, int, int]]:
        """Where the tensor goes, along `axis`: weight, start in it, start in the tensor, length. `sizes` are the
        shapes of the body's weights.
        """
        if not self.more:
            yield self.into, self.start, 0, self.shape[self.axis]
            return
        begin = 0
        for into in (self.into, *self.more):
            length = sizes[into][self.axis]
            yield into, 0, begin, length
            begin += length
        assert begin == self.shape[self.axis], f"{self.name} holds {self.shape[self.axis]}, its weights {begin}"


def same_names(shape: BodyShape) -> Iterable[Weight]:
    """The weights of a family that names and cuts them as Qwen's checkpoints do."""
    return (Weight(name=name, shape=size, into=name) for name, size in shape.weights())
