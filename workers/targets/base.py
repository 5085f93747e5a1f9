"""The contract between a decoder and a target model.

A `Target` is loaded once and is immutable; a `Session` is its only mutable part: the key/value cache of one sequence.
A decoder needs three verbs: `start` a sequence, `forward` some copies of the active block, `commit` a filled block.
Hidden states and logits are apart, so that only the block states the walk visits pay for the output head.

Shapes: N block states, L block width, H hidden width, V vocabulary, X any leading shape.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTraits:
    """What a decoder, a claim and a record need to know about a loaded target.

    `exact_cache` is true when logits with the cache equal those without it: block-causal attention, or `cache` is
    `none`. Other kinds of cache (`prefix`, `dual`) are approximate.
    `weight_digest` is a sha256 over the weight files' content.
    """

    name: str
    family: str
    revision: str
    weight_digest: str
    parameters: int
    vocab_size: int
    mask_id: int
    stop_ids: tuple[int, ...]
    max_positions: int
    exact_cache: bool
    dtype: str
    device: str
    cache: str = "exact"

    @property
    def crosses(self) -> bool:
        """Whether a copy may carry a filled block and go on in the next one: block-causal attention, exact cache."""
        return self.cache == "exact"


class Session(Protocol):
    """The cache of one sequence. Positions `[0, prefix_length)` are committed; the active block begins there."""

    @property
    def prefix_length(self) -> int:
        """Number of committed positions, the pending filled block included."""

    @property
    def positions(self) -> int:
        """Token positions forwarded so far, prefill included: what the sequence has cost the target."""

    def forward(self, blocks_NL: Tensor, behind_CL: Tensor | None = None) -> Tensor:
        """Hidden states `hidden_NLH` of N copies of the active block; row i of a copy is what predicts its position i.

        A copy attends to itself and to what is cached of other blocks, never to another copy: changing one leaves the
        others' rows bit-equal. The cache is not copied N times. The first call after `commit` also computes what the
        cache lacks (no forward of its own). The result depends on committed blocks and the copy's state alone, never on
        what was forwarded before.

        With `behind_CL` the last C copies are of the block behind the active one: copy N - C + i attends to the prefix,
        to `behind_CL[i]`, a filled active block of its own, and to itself, as it would had that block been committed.
        Raises ValueError where the target cannot do that (`TargetTraits.crosses`).
        """

    def commit(self, block_L: Tensor) -> None:
        """Append a filled block (no mask ids); its keys and values join the cache with the next `forward`.

        Where blocks can be crossed, several may be appended between two forwards.
        """


class Target(Protocol):
    """A loaded target model."""

    @property
    def traits(self) -> TargetTraits:
        """Facts about the loaded weights."""

    def start(self, prompt_ids: Sequence[int], *, block_length: int, max_new_tokens: int) -> Session:
        """Prefill the prompt's whole blocks (`len(prompt_ids) // block_length`); the rest opens the active block.

        Raises ValueError when prompt plus new tokens pass `traits.max_positions`, or an id is outside the vocabulary.
        """

    def logits(self, hidden_XH: Tensor) -> Tensor:
        """Logits `logits_XV` in float32 or wider; the mask id and ids no tokenizer can emit are -inf."""

    def embed(self, ids_X: Tensor) -> Tensor:
        """Input embeddings `embedded_XH` of token ids, in the dtype and on the device of the weights."""

    def encode(self, prompt: str) -> list[int]:
        """Token ids of a user prompt in the target's chat template (exactly one beginning-of-sequence id)."""

    def decode(self, ids: Sequence[int]) -> str:
        """Text of generated ids, without special tokens."""
