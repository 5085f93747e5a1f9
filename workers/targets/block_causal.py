"""Targets whose positions see their own and earlier blocks: an exact prefix cache (SDAR, LLaDA2).

A forward over N copies of the active block reads the prefix once; a block that was just filled rides along in the same
forward.

Shapes: N copies, L block width, H hidden, M prefix, T positions of one forward, B sequences, S positions of one.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.targets.caches import PrefixCache, copies_attention, prefill_attention
from workers.targets.layers import Body, block_causal
from workers.targets.loaded import LoadedTarget, check_block, check_width


class BlockCausalSession:
    """One sequence: the prefix cache, and at most one filled block whose keys and values are still to be computed."""

    def __init__(self, body: Body, cache: PrefixCache, *, block_length: int) -> None:
        self._body = body
        self._cache = cache
        self._length = block_length
        self._pending_L: Tensor | None = None
        self._positions = cache.length

    @property
    def prefix_length(self) -> int:
        """Number of committed positions, the pending filled block included."""
        return self._cache.length + (0 if self._pending_L is None else self._length)

    @property
    def positions(self) -> int:
        """Token positions forwarded so far, prefill included."""
        return self._positions

    @torch.inference_mode()
    def forward(self, blocks_NL: Tensor) -> Tensor:
        """Hidden states `hidden_NLH` of N copies of the active block, each attending to the prefix and to itself
        only.
        """
        check_width(blocks_NL, self._length)
        copies, width = blocks_NL.shape
        device = self._body.embed_tokens.weight.device
        start, ids_T = self.prefix_length, blocks_NL.to(device).flatten()
        positions_T = torch.arange(start, start + width, device=device).repeat(copies)
        pending = 0
        if self._pending_L is not None:
            pending = width
            ids_T = torch.cat((self._pending_L.to(device), ids_T))
            positions_T = torch.cat((torch.arange(self._cache.length, start, device=device), positions_T))
        hidden_TH: Tensor = self._body(
            ids_T, positions_T, copies_attention(self._cache, pending=pending, copies=copies)
        )
        self._cache.length, self._pending_L = start, None
        self._positions += len(ids_T)
        hidden_NLH: Tensor = hidden_TH[pending:].view(copies, width, -1)
        return hidden_NLH

    def commit(self, block_L: Tensor) -> None:
        """Append a filled block to the prefix; its keys and values join the cache with the next `forward`."""
        if self._pending_L is not None:
            raise ValueError("a filled block is already waiting: forward between two commits")
        check_block(block_L, self._length)
        if self._cache.length + self._length > self._cache.capacity:
            raise ValueError(
                f"the sequence is full: {self._cache.length} of {self._cache.capacity} positions are committed"
            )
        self._pending_L = block_L.clone()


class BlockCausalTarget(LoadedTarget):
    """A loaded block-causal checkpoint. Immutable."""

    def start(self, prompt_ids: Sequence[int], *, block_length: int, max_new_tokens: int) -> BlockCausalSession:
        """Prefill the prompt's whole blocks under the block-causal mask; the rest opens the active block.

        Raises ValueError when prompt plus new tokens pass `traits.max_positions`, or an id is outside the vocabulary.
        """
        total = self.checked_length(prompt_ids, max_new_tokens)
        whole = len(prompt_ids) // block_length * block_length
        blocks = [i // block_length for i in range(whole)]
        capacity = -(-total // block_length) * block_length
        return self.open(prompt_ids[:whole], blocks, block_length=block_length, capacity=capacity)

    @torch.inference_mode()
    def open(
        self, prefix_ids: Sequence[int], block_ids: Sequence[int], *, block_length: int, capacity: int
    ) -> BlockCausalSession:
        """A session over a prefix with explicit block ids (non-decreasing), which need not be whole blocks.

        The active block begins right behind the prefix. `capacity` is the number of positions that can be committed.
        """
        cache, device = self.new_cache(max(capacity, len(prefix_ids))), self.device
        if prefix_ids:
            visible_11MM = block_causal(torch.tensor([block_ids], device=device))
            ids_M = torch.tensor(prefix_ids, device=device)
            self.body(ids_M, torch.arange(len(prefix_ids), device=device), prefill_attention(cache, visible_11MM))
            cache.length = len(prefix_ids)
        return BlockCausalSession(self.body, cache, block_length=block_length)
