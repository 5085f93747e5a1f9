"""Targets whose positions see their own and earlier blocks: an exact prefix cache (SDAR, LLaDA2).

A forward over N copies of the active block reads the prefix once; blocks that were filled since the last one ride along
in the same forward.

Shapes: N copies, C of them of the next block, P pending blocks, B blocks of one forward, L block width, H hidden, M
prefix, T positions of one forward.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.targets.caches import PrefixCache, copies_attention, prefill_attention
from workers.targets.layers import Body, block_causal
from workers.targets.loaded import LoadedTarget, check_block, check_width


class BlockCausalSession:
    """One sequence: the prefix cache, and the filled blocks whose keys and values are still to be computed."""

    def __init__(self, body: Body, cache: PrefixCache, *, block_length: int) -> None:
        self._body = body
        self._cache = cache
        self._length = block_length
        self._device = body.embed_tokens.weight.device
        self._pending_PL = torch.empty((0, block_length), dtype=torch.int64, device=self._device)
        self._positions = cache.length

    @property
    def prefix_length(self) -> int:
        """Number of committed positions, the pending filled blocks included."""
        return self._cache.length + self._pending_PL.numel()

    @property
    def positions(self) -> int:
        """Token positions forwarded so far, prefill included."""
        return self._positions

    @torch.inference_mode()
    def forward(self, blocks_NL: Tensor, behind_CL: Tensor | None = None) -> Tensor:
        """Hidden states `hidden_NLH` of N copies of the active block, each attending to the prefix and to itself
        only.

        With `behind_CL` the last C copies are of the block behind, and attend to a filled active block of their own as
        well; that is forwarded beside the other copies of the active block, and its hidden states are dropped.
        """
        check_width(blocks_NL, self._length)
        blocks_NL, behind_CL = blocks_NL.to(self._device), self._checked(behind_CL, len(blocks_NL))
        pending, copies, crossing = len(self._pending_PL), len(blocks_NL), len(behind_CL)
        active_NL, next_CL = torch.cat((blocks_NL[: copies - crossing], behind_CL)), blocks_NL[copies - crossing :]
        ids_BL = torch.cat((self._pending_PL, active_NL, next_CL))
        start, length = self.prefix_length, self._length
        starts = [*range(self._cache.length, start, length), *[start] * copies, *[start + length] * crossing]
        positions_BL = torch.tensor(starts, device=self._device)[:, None] + torch.arange(length, device=self._device)
        attend = copies_attention(self._cache, pending=pending * length, copies=copies, crossing=crossing)
        hidden_TH: Tensor = self._body(ids_BL.flatten(), positions_BL.flatten(), attend)
        self._cache.length, self._pending_PL = start, self._pending_PL[:0]
        self._positions += ids_BL.numel()
        hidden_NLH: Tensor = hidden_TH.view(*ids_BL.shape, -1)[pending:]
        return torch.cat((hidden_NLH[: copies - crossing], hidden_NLH[copies:])) if crossing else hidden_NLH

    def _checked(self, behind_CL: Tensor | None, copies: int) -> Tensor:
        """The filled blocks in front of copies of the next one, none or at most as many as there are copies."""
        if behind_CL is None:
            return self._pending_PL[:0]
        check_width(behind_CL, self._length)
        if len(behind_CL) > copies:
            raise ValueError(f"{len(behind_CL)} filled blocks in front of {copies} copies: allowed is one for each")
        return behind_CL.to(self._device)

    def commit(self, block_L: Tensor) -> None:
        """Append a filled block to the prefix; its keys and values join the cache with the next `forward`."""
        check_block(block_L, self._length)
        if self.prefix_length + self._length > self._cache.capacity:
            raise ValueError(
                f"the sequence is full: {self.prefix_length} of {self._cache.capacity} positions are committed"
            )
        self._pending_PL = torch.cat((self._pending_PL, block_L[None].to(self._device)))


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
