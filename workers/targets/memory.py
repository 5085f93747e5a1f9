"""How much memory a target and one sequence of it take, part by part: a pure function of shapes, without torch.

Counts what the code of `layers.py`, `mlp.py`, `caches.py` and `decoding/rule.py` holds at once at its worst moment, so
that a refusal before loading can say where the memory goes. What torch itself and its allocator take comes on top.

Shapes: T positions forwarded together, M keys they see in the cache, L block length, V vocabulary.
"""

from dataclasses import dataclass, fields, replace

from workers.models.memory import ModelSize
from workers.targets.shape import BodyShape

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
PROMPT_TOKENS = 512  # what a prompt is taken to have before it is known
EXPERT_CHUNK = 512  # positions whose expert activations are held at once (mlp.py)
HEAD_CHUNK = 16384  # rows of a half-precision head that are widened at once on a CPU (loaded.py)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceSize:
    """What is decoded at once: one prompt, its new tokens, and `states` (1 + D) copies of the block a forward.

    `cache` is the kind of cache (`exact`, `dual`, `prefix`, `none`); `sampled` says that tokens are drawn (T > 0);
    `crosses` that a draft may go on in the next block, with a filled block in front; `judges_all` that every state may
    be judged, not only those on one walk; `model` has the sizes of the model that drafts (None: there is none).
    """

    block_length: int
    max_new_tokens: int
    states: int = 1
    cache: str = "exact"
    sampled: bool = False
    crosses: bool = False
    judges_all: bool = False
    prompt_tokens: int = PROMPT_TOKENS
    model: ModelSize | None = None

    @property
    def canvas(self) -> int:
        """Positions of prompt and new tokens, in whole blocks."""
        return -(-(self.prompt_tokens + self.max_new_tokens) // self.block_length) * self.block_length

    @property
    def forwarded(self) -> int:
        """Positions of a verification forward, at most: every copy, and a filled block (or the position before).

        The root never crosses; two filled blocks come along only where nothing is drafted.
        """
        if self.cache == "exact":
            drafts = (2 if self.crosses else 1) * (self.states - 1)
            return (1 + drafts + 1) * self.block_length
        behind = self.canvas - self.prompt_tokens // self.block_length * self.block_length
        width = {"dual": self.block_length, "prefix": behind, "none": self.canvas}[self.cache]
        return self.states * (width + (self.cache != "none"))

    @property
    def judged(self) -> int:
        """Rows of logits that are kept at once, at most: of the verdict that a round begins with, and of all that it
        makes. On a walk each state has fewer open positions than the one before, until it crosses.
        """
        if self.judges_all:
            return (1 + self.states) * self.block_length
        walk = sum(self.block_length - accepted for accepted in range(min(self.states, self.block_length)))
        return self.block_length * (2 if self.crosses else 1) + walk

    @property
    def dense(self) -> int:
        """Positions of the largest forward that attends to itself alone: the prompt's, or the whole canvas."""
        if self.cache == "exact":
            return self.prompt_tokens
        return self.canvas * (self.states if self.cache == "none" else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Bytes by what they are for. `logits` are those of one state at a time, and the verdicts of a whole walk;
    `drafter` is a model that drafts, the vocabulary as it reads it, and what it takes of a batch of states.
    """

    weights: int
    cache: int
    activations: int
    logits: int
    drafter: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return sum(getattr(self, part.name) for part in fields(self))

    def __str__(self) -> str:
        """`18.1 GB (weights 16.4, cache 0.11, ...)`, in units of 10^9 bytes."""
        sizes = {part.name: getattr(self, part.name) for part in fields(self)}
        parts = (f"{name} {gigabytes(size)}" for name, size in sizes.items() if size or name != "drafter")
        return f"{gigabytes(self.total)} GB ({', '.join(parts)})"


def gigabytes(count: float) -> str:
    """Bytes in units of 10^9, to three digits, as people compare them."""
    value = count / 1e9
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def memory_need(shape: BodyShape, dtype: str, sequence: SequenceSize, *, gpu: bool) -> MemoryNeed:
    """What decoding one sequence takes at most, with the weights; bytes."""
    size = BYTES[dtype]
    kept = 0 if sequence.cache == "none" else sequence.canvas
    verified = 0 if sequence.cache == "none" else sequence.forwarded
    need = MemoryNeed(
        weights=shape.parameters * size,
        cache=2 * shape.layers * shape.kv_heads * shape.head_dim * kept * size,
        activations=max(
            forward_bytes(shape, dtype, verified, keys=sequence.canvas, gpu=gpu),
            forward_bytes(shape, dtype, sequence.dense, keys=0, gpu=gpu),
        ),
        logits=logits_bytes(shape, dtype, sequence, gpu=gpu),
    )
    if sequence.model is None:
        return need
    decoding = need.total - need.weights
    return replace(need, drafter=drafter_bytes(shape, size, sequence.states - 1, sequence.model, decoding))


def drafter_bytes(shape: BodyShape, item: int, states: int, model: ModelSize, decoding: int) -> int:
    """A model that drafts up to `states` at once, beside what `decoding` takes. An upper bound: an allocator may keep
    what drafting took while the target forwards. Of what reading the vocabulary takes only what goes beyond all that
    counts, because nothing is decoded then.
    """
    held = model.drafting(states)
    return model.kept(shape.vocab_size) + max(held, model.binding(shape.vocab_size, item) - decoding)


def forward_bytes(shape: BodyShape, dtype: str, positions: int, *, keys: int, gpu: bool) -> int:
    """Activations of a forward at the worst moment of a layer; `keys` of a cache (0: they attend to one another)."""
    size, wide = BYTES[dtype], max(4, BYTES[dtype])
    query, pair = shape.heads * shape.head_dim, (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    stream, normed = shape.hidden * size, shape.hidden * size
    norm = 2 * shape.hidden * wide + normed
    if keys:  # scores of the cache, all scores, their softmax, and that in the dtype (or a widened copy before it)
        scores = shape.heads * keys * (2 * size + wide + (0 if size == wide else size if gpu else wide))
        attention = normed + (pair + query) * size + scores
    else:  # keys and values once for every query head
        attention = normed + (pair + 4 * query) * size
    shared = experts.shared * experts.mlp if (experts := shape.experts) else 0
    inner = normed + 3 * max(shape.mlp, shared) * size
    held = positions * (2 * stream + max(norm, attention, inner))
    if experts is None:
        return held
    chunk = min(positions, EXPERT_CHUNK)
    routed = chunk * 3 * experts.count * experts.mlp * size + experts.count * shape.hidden * wide
    return max(held, positions * (2 * stream + 2 * normed) + routed)


def logits_bytes(shape: BodyShape, dtype: str, sequence: SequenceSize, *, gpu: bool) -> int:
    """Logits in float32 of one state, what judging it makes of them in float64, and what the walk's verdicts keep."""
    kept = sequence.judged * shape.vocab_size * (16 if sequence.sampled else 8)
    judged = sequence.block_length * shape.vocab_size * (4 + 3 * 8 + (4 * 8 if sequence.sampled else 0))
    widened = 0 if gpu or BYTES[dtype] >= 4 else min(HEAD_CHUNK, shape.vocab_size) * shape.hidden * 4
    return kept + judged + widened
