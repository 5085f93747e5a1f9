"""What all loaded checkpoints share: body and head, logits, text, and the checks at the start of a sequence.

How positions attend, and what is cached, is a subclass's own (`block_causal.py`, `whole.py`).

Shapes: X any leading shape, L block width, H hidden, V vocabulary, B sequences, S positions of one.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812  (its usual name)
from torch import Tensor

from workers.targets.base import TargetTraits
from workers.targets.caches import PrefixCache
from workers.targets.layers import Body, dense_attention
from workers.targets.memory import HEAD_CHUNK
from workers.targets.text import ChatText


class LoadedTarget:
    """A checkpoint in memory. Immutable; `chat` says whether prompts go through a template (`template`) or in `raw`."""

    def __init__(
        self, *, body: Body, head_VH: Tensor, traits: TargetTraits, text: ChatText, absent_ids: Sequence[int], chat: str
    ) -> None:
        self.body = body
        self.chat = chat
        self.device = head_VH.device
        self._head_VH = head_VH
        self._traits = traits
        self._text = text
        self._never = torch.tensor(sorted({traits.mask_id, *absent_ids}), device=head_VH.device)

    @property
    def traits(self) -> TargetTraits:
        """Facts about the loaded weights."""
        return self._traits

    @torch.inference_mode()
    def dense(self, ids_BS: Tensor, visible_B1SS: Tensor | None) -> Tensor:
        """Hidden states `hidden_BSH` of whole sequences under any mask, without a cache (True where a query sees a
        key; None: everywhere).
        """
        positions_S = torch.arange(ids_BS.shape[1], device=self.device)
        hidden_BSH: Tensor = self.body(ids_BS, positions_S, dense_attention(visible_B1SS))
        return hidden_BSH

    @torch.inference_mode()
    def logits(self, hidden_XH: Tensor) -> Tensor:
        """Logits `logits_XV` in float32 or wider; the mask id and ids the tokenizer lacks are -inf.

        Products of half-precision weights are summed and kept in float32, since rounded logits tie. A CPU widens such
        a head part by part: the whole of it in float32 would be a second copy of the largest weight.
        """
        dtype = self._head_VH.dtype
        if dtype in (torch.float32, torch.float64):
            logits_XV = F.linear(hidden_XH, self._head_VH)
        elif self._head_VH.is_cuda:
            flat_TV = torch.mm(hidden_XH.flatten(0, -2), self._head_VH.T, out_dtype=torch.float32)
            logits_XV = flat_TV.view(*hidden_XH.shape[:-1], -1)
        else:
            wide_XH, parts = hidden_XH.float(), torch.split(self._head_VH, HEAD_CHUNK)
            logits_XV = hidden_XH.new_empty((*hidden_XH.shape[:-1], len(self._head_VH)), dtype=torch.float32)
            for part_XV, part_VH in zip(torch.split(logits_XV, HEAD_CHUNK, dim=-1), parts, strict=True):
                part_XV.copy_(F.linear(wide_XH, part_VH.float()))
        return logits_XV.index_fill_(-1, self._never, -torch.inf)

    @torch.inference_mode()
    def embed(self, ids_X: Tensor) -> Tensor:
        """Input embeddings `embedded_XH` of token ids, in the dtype and on the device of the weights."""
        embedded_XH: Tensor = self.body.embed_tokens(ids_X.to(self.device))
        return embedded_XH

    def encode(self, prompt: str) -> list[int]:
        """Token ids of a user prompt in the target's chat template (exactly one beginning-of-sequence id)."""
        return self._text.encode(prompt)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of generated ids, without special tokens."""
        return self._text.decode(ids)

    def checked_length(self, prompt_ids: Sequence[int], max_new_tokens: int) -> int:
        """Prompt plus new tokens. Raises ValueError when they do not fit, or an id is outside the vocabulary."""
        total = len(prompt_ids) + max_new_tokens
        if total > self._traits.max_positions:
            raise ValueError(
                f"prompt of {len(prompt_ids)} tokens plus {max_new_tokens} new tokens is {total} positions; "
                f"allowed are {self._traits.max_positions}"
            )
        wrong = [i for i in prompt_ids if not 0 <= i < self._traits.vocab_size]
        if wrong:
            raise ValueError(f"prompt id {wrong[0]} is outside the vocabulary of {self._traits.vocab_size}")
        return total

    def new_cache(self, capacity: int) -> PrefixCache:
        """An empty cache of `capacity` positions."""
        shape = self.body.shape
        return PrefixCache(
            layers=shape.layers,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            capacity=capacity,
            dtype=self._head_VH.dtype,
            device=self.device,
        )


def check_width(blocks_NL: Tensor, length: int) -> None:
    """Raise ValueError unless the copies have the session's block length."""
    if blocks_NL.shape[1] != length:
        raise ValueError(f"blocks have width {blocks_NL.shape[1]}; this session's block length is {length}")


def check_block(block_L: Tensor, length: int) -> None:
    """Raise ValueError unless a filled block has the session's block length."""
    if tuple(block_L.shape) != (length,):
        raise ValueError(f"block has shape {tuple(block_L.shape)}; this session's block length is {length}")
