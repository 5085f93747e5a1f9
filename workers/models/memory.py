"""How much memory a model that drafts takes, a pure function of its sizes, without torch: planning asks.

Counts what `encoder.py`, `set_model.py` and the scorers of `drafters` hold at once at their worst moment, as if every
position of the block were open. Everything is in float32 here, whatever the target's dtype is.

Shapes: D states asked about at once, L block length, V vocabulary, W model width, H the target's width, E projected
embeddings (0: an order model reads none), C candidates.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from workers.models.order_shapes import STALE_FEATURES, EncoderShape, column_sizes

VOCABULARY_CHUNK = 16_384  # tokens of a vocabulary that are projected at once (set_model.py)
FLOAT, WIDE = 4, 8  # bytes of a number in the model, and of what the host makes of it


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """Sizes of an order model or a set model. `hidden` (H), `candidate_width` (E) and `candidates` (C) are those of a
    set model, 0 for an order model.
    """

    parameters: int
    block_length: int
    layers: int
    width: int
    heads: int
    feedforward: int
    hidden: int = 0
    candidate_width: int = 0
    candidates: int = 0

    @classmethod
    def of(cls, config: EncoderShape, weight_shapes: Mapping[str, tuple[int, ...]]) -> "ModelSize":
        """The sizes that a model's configuration states."""
        return cls(
            parameters=sum(math.prod(shape) for shape in weight_shapes.values()),
            block_length=config.block_length,
            layers=config.layers,
            width=config.width,
            heads=config.heads,
            feedforward=config.feedforward,
            hidden=getattr(config, "hidden", 0),
            candidate_width=getattr(config, "candidate_width", 0),
            candidates=getattr(config, "candidates", 0),
        )

    def kept(self, vocabulary: int) -> int:
        """Bytes of weights and of the projected vocabulary."""
        return FLOAT * (self.parameters + vocabulary * self.candidate_width)

    def drafting(self, states: int) -> int:
        """Bytes that a round takes beside them: of the stale distribution, and of a batch of D states."""
        width, embedded, columns = self.width, self.candidate_width, len(column_sizes(self.block_length))
        stale = STALE_FEATURES + width + 2 * self.hidden + (self.candidates + 2) * embedded
        attention = 13 * width + 3 * self.heads * self.block_length  # with its copies of qkv, scaled and in rows
        between = 4 * width + 2 * self.feedforward
        answer = width + 2 * embedded + 5 * self.candidates
        encoder = width + 2 * embedded + max(attention, between, answer)
        host = WIDE * (5 * columns + 4 * (self.candidates + 1))  # path columns of the states, and what was answered
        return self.block_length * (FLOAT * stale + states * (FLOAT * encoder + host))

    def binding(self, vocabulary: int, item: int) -> int:
        """Bytes taken for a moment by projecting embeddings of `item` bytes a number, before anything is decoded."""
        if not self.hidden:
            return 0
        evened = item + (0 if item == FLOAT else FLOAT) + FLOAT  # as they are, in float32, and scaled
        return min(vocabulary, VOCABULARY_CHUNK) * (self.hidden * max(2 * item, evened) + FLOAT * self.candidate_width)
