"""Batches and mask of the block-diffusion objective: [clean copy; noisy copies] in one sequence.

The clean copy is block-causal, as the prefix is in decoding. A noisy copy of a block sees the clean blocks before it
and itself, as the active block does. Blocks are aligned to absolute position 0, prompts included, so the first noisy
block of an example begins with its prompt's last tokens; after the end token a block goes on with end tokens, so that
every block can be filled.

Shapes: B batch, S positions of an example, T positions of the joined sequence, C noisy copies.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Examples of one layout: the block that answers begin in begins at `start`; ids, and the prompt length of each."""

    start: int
    ids_BS: Tensor
    prompts_B: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One training batch. `labels_BT` is -100 where nothing is learned."""

    ids_BT: Tensor
    labels_BT: Tensor
    positions_T: Tensor
    visible_11TT: Tensor


def bucket(pairs: Iterable[tuple[Sequence[int], Sequence[int]]], *, block_length: int, end_id: int) -> list[Bucket]:
    """Group (prompt ids, answer ids) by layout; answers are closed and padded to whole blocks with the end token."""
    groups: dict[tuple[int, int], list[tuple[list[int], int]]] = {}
    for prompt, answer in pairs:
        ids = [*prompt, *answer, end_id]
        ids += [end_id] * (-len(ids) % block_length)
        groups.setdefault((len(prompt) // block_length, len(ids)), []).append((ids, len(prompt)))
    return [
        Bucket(
            start=first * block_length,
            ids_BS=torch.tensor([ids for ids, _ in rows]),
            prompts_B=torch.tensor([length for _, length in rows]),
        )
        for (first, _), rows in sorted(groups.items())
    ]


def batches(buckets: Sequence[Bucket], size: int, rng: torch.Generator) -> Iterator[Bucket]:
    """Endless batches of `size` rows, each from one bucket, buckets drawn by their number of rows; rows do not repeat
    within a pass.
    """
    weights = torch.tensor([float(len(b.prompts_B)) for b in buckets])
    queues: list[list[Tensor]] = [[] for _ in buckets]
    while True:
        which = int(torch.multinomial(weights, 1, generator=rng))
        chosen = buckets[which]
        if not queues[which]:
            order = torch.randperm(len(chosen.prompts_B), generator=rng)
            queues[which] = list(torch.split(order, size))
        rows = queues[which].pop()
        yield Bucket(start=chosen.start, ids_BS=chosen.ids_BS[rows], prompts_B=chosen.prompts_B[rows])


def noisy_batch(
    rows: Bucket, *, block_length: int, copies: int, full_mask: float, mask_id: int, rng: torch.Generator
) -> Batch:
    """Join the clean copy with `copies` noisy copies whose answer positions are masked at a rate drawn per block.

    The last clean block is left out, since no position sees it. A share `full_mask` of the blocks is masked completely.
    """
    ids_BS, prompts_B = rows.ids_BS, rows.prompts_B
    size, length = ids_BS.shape
    start = rows.start
    noisy_BN = ids_BS[:, start:]
    answer_BN = torch.arange(start, length) >= prompts_B[:, None]
    blocks = (length - start) // block_length
    rate_BCk1 = torch.rand((size, copies, blocks, 1), generator=rng)
    full_BCk1 = torch.rand((size, copies, blocks, 1), generator=rng) < full_mask
    draw_BCkL = torch.rand((size, copies, blocks, block_length), generator=rng)
    masked_BCN = ((draw_BCkL < rate_BCk1) | full_BCk1).flatten(2) & answer_BN[:, None]
    clean_BS = ids_BS[:, : length - block_length]
    inputs_BCN = torch.where(masked_BCN, mask_id, noisy_BN[:, None])
    labels_BCN = torch.where(masked_BCN, noisy_BN[:, None], -100)
    return Batch(
        ids_BT=torch.cat((clean_BS, inputs_BCN.flatten(1)), dim=1),
        labels_BT=torch.cat((torch.full_like(clean_BS, -100), labels_BCN.flatten(1)), dim=1),
        positions_T=torch.cat((torch.arange(length - block_length), torch.arange(start, length).repeat(copies))),
        visible_11TT=joined_mask(length, start, copies=copies, block_length=block_length),
    )


def joined_mask(length: int, start: int, *, copies: int, block_length: int) -> Tensor:
    """`visible_11TT` for a clean copy of `length - block_length` positions followed by noisy copies of `[start,
    length)`.
    """
    clean = torch.arange(length - block_length)
    noisy = torch.arange(start, length)
    blocks_T = torch.cat((clean, noisy.repeat(copies))) // block_length
    copy_T = torch.cat((torch.zeros_like(clean), torch.arange(1, copies + 1).repeat_interleave(len(noisy))))
    same_copy_TT = copy_T[:, None] == copy_T[None]
    same_block_TT = blocks_T[:, None] == blocks_T[None]
    earlier_clean_TT = (copy_T == 0)[None] & (blocks_T[:, None] > blocks_T[None])
    return ((same_copy_TT & same_block_TT) | earlier_clean_TT)[None, None]
