"""Targets whose positions see the whole sequence: no cache, or an approximate one (LLaDA, Dream; arXiv 2505.22618).

The canvas is the prompt and a mask for every new token, in whole blocks; later blocks are visible masks. At a block's
start one forward over the whole canvas gives the keys and values that stay as they are while the block is filled; the
copies of a step bring their own ones for the rest. What is kept depends on committed blocks alone, never on the states
or the number of forwards, so that logits are a function of the block's state:

- `none`: nothing is kept, every copy is a whole canvas of its own;
- `prefix`: what lies before the block is kept, a copy is the block and everything behind it;
- `dual`: everything but the block is kept, a copy is the block alone.

In a shifted target position i is predicted at i - 1: a copy begins one position before the block, with a token that is
known. At position 0, which has none before it, the first state stands in for it, as in the published code; a prompt is
never empty there, so that nothing is ever read from it.

Shapes: N copies, L block width, W width of a copy, H hidden, C canvas, M kept positions.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.targets.caches import PrefixCache, copies_attention, refresh_attention
from workers.targets.layers import dense_attention
from workers.targets.loaded import LoadedTarget, check_block, check_width


class WholeSession:
    """One canvas. `cache` is empty until a block's first forward, and again after each commit."""

    def __init__(self, target: "WholeTarget", canvas_C: Tensor, *, start: int, block_length: int) -> None:
        self._target = target
        self._canvas_C = canvas_C
        self._start = start
        self._length = block_length
        self._positions = 0
        self._cache: PrefixCache | None = None

    @property
    def prefix_length(self) -> int:
        """Number of committed positions."""
        return self._start

    @property
    def positions(self) -> int:
        """Token positions forwarded so far; there is no prefill."""
        return self._positions

    @torch.inference_mode()
    def forward(self, blocks_NL: Tensor, behind_CL: Tensor | None = None) -> Tensor:
        """Hidden states `hidden_NLH` of N copies of the active block, each seeing the canvas and itself.

        The first forward of a block is the refresh; when it asks for anything but the block's first state alone, a
        forward over that state is made before it, and its positions are counted.
        """
        if behind_CL is not None:
            raise ValueError(
                "a copy of the next block needs block-causal attention: positions here see the whole canvas"
            )
        check_width(blocks_NL, self._length)
        blocks_NL = blocks_NL.to(self._canvas_C.device)
        first, last = self._own()
        kept_M = [*range(first), *range(last, len(self._canvas_C))]
        if kept_M and self._cache is None:
            untouched = self._canvas_C[self._start : self._start + self._length]
            hidden_1CH = self._refresh(kept_M)
            if torch.equal(blocks_NL, untouched[None]):
                return self._rows(hidden_1CH, 0)
        copies, width = len(blocks_NL), last - first
        ids_NW = self._canvas_C[first:last].repeat(copies, 1)
        ids_NW[:, self._start - first :][:, : self._length] = blocks_NL
        positions_W = torch.arange(first, last, device=ids_NW.device)
        self._positions += ids_NW.numel()
        if self._cache is None:
            hidden_NWH = self._target.body(ids_NW, positions_W, dense_attention(None))
        else:
            attend = copies_attention(self._cache, pending=0, copies=copies)
            hidden_NWH = self._target.body(ids_NW.flatten(), positions_W.repeat(copies), attend)
        return self._rows(hidden_NWH.view(copies, width, -1), first)

    def commit(self, block_L: Tensor) -> None:
        """Write a filled block on the canvas; the next `forward` is the next block's refresh."""
        check_block(block_L, self._length)
        if self._start >= len(self._canvas_C):
            raise ValueError(f"the sequence is full: {self._start} of {len(self._canvas_C)} positions are committed")
        stop = self._start + self._length
        self._canvas_C = torch.cat(
            (self._canvas_C[: self._start], block_L.to(self._canvas_C.device), self._canvas_C[stop:])
        )
        self._start, self._cache = stop, None

    def _own(self) -> tuple[int, int]:
        """First position and end of a copy."""
        kind, canvas = self._target.traits.cache, len(self._canvas_C)
        first = 0 if kind == "none" else max(0, self._start - self._target.shift)
        return first, (self._start + self._length if kind == "dual" else canvas)

    def _refresh(self, kept_M: list[int]) -> Tensor:
        """Hidden states of the canvas as it is; keys and values of the positions to keep go to a new cache."""
        device = self._canvas_C.device
        self._cache = self._target.new_cache(len(kept_M))
        self._positions += len(self._canvas_C)
        positions_C = torch.arange(len(self._canvas_C), device=device)
        attend = refresh_attention(self._cache, torch.tensor(kept_M, device=device))
        hidden_1CH: Tensor = self._target.body(self._canvas_C[None], positions_C, attend)
        self._cache.length = len(kept_M)
        return hidden_1CH

    def _rows(self, hidden_NWH: Tensor, first: int) -> Tensor:
        """The states that predict the block's positions, of copies that begin at position `first`."""
        begin = self._start - self._target.shift - first
        if begin < 0:
            hidden_NWH, begin = torch.cat((hidden_NWH[:, :1], hidden_NWH), dim=1), 0
        return hidden_NWH[:, begin : begin + self._length]


class WholeTarget(LoadedTarget):
    """A loaded whole-sequence checkpoint. Immutable; `shift` is 1 where a position is predicted at the one before."""

    shift = 0

    def start(self, prompt_ids: Sequence[int], *, block_length: int, max_new_tokens: int) -> WholeSession:
        """Lay out the canvas; nothing is forwarded yet.

        Raises ValueError when prompt plus new tokens pass `traits.max_positions`, an id is outside the vocabulary, or
        the prompt of a shifted target is empty.
        """
        total = self.checked_length(prompt_ids, max_new_tokens)
        if self.shift and not prompt_ids:
            raise ValueError(
                f"prompt is empty: {self.traits.family} predicts a position at the one before it, "
                "so the first token must be given"
            )
        canvas = [*prompt_ids, *[self.traits.mask_id] * (-(-total // block_length) * block_length - len(prompt_ids))]
        start = len(prompt_ids) // block_length * block_length
        return WholeSession(self, torch.tensor(canvas, device=self.device), start=start, block_length=block_length)


class ShiftedTarget(WholeTarget):
    """A whole-sequence target that predicts one ahead."""

    shift = 1
