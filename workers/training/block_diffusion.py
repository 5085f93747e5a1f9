"""Batches and mask of the block-diffusion objective: [clean copy; noisy copies] in one sequence.

The clean copy is block-causal, as the prefix is in decoding. A noisy copy of a block sees the clean blocks before it
and itself, as the active block does. Blocks are aligned to absolute position 0, prompts included, so the first noisy
block of an example begins with its prompt's last tokens; after the end token a block goes on with end tokens, so that
every block can be filled.

Shapes: B batch, S positions of an example, T positions of the joined sequence, C noisy copies.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.targets.layers import Attend


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Examples of one layout: the block that answers begin in begins at `start`; ids, and the prompt length of each."""

    start: int
    ids_BS: Tensor
    prompts_B: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One training batch: the clean copy, then the noisy copies. `labels_BT` is -100 where nothing is learned."""

    ids_BT: Tensor
    labels_BT: Tensor
    positions_T: Tensor
    visible_TT: Tensor


def bucket(pairs: Iterable[tuple[Sequence[int], Sequence[int]]], *, block_length: int, end_id: int) -> list[Bucket]:
    """Group (prompt ids, answer ids) by layout; answers are closed and padded to whole blocks with the end token.

    Every tenth example goes on for one more block of end tokens: what comes when decoding does not stop at the end.
    """
    groups: dict[tuple[int, int], list[tuple[Tensor, int]]] = {}
    for number, (prompt, answer) in enumerate(pairs):
        ids = [*prompt, *answer, end_id]
        ids += [end_id] * (-len(ids) % block_length + (0 if number % 10 else block_length))
        groups.setdefault((len(prompt) // block_length, len(ids)), []).append((torch.tensor(ids), len(prompt)))
    return [
        Bucket(
            start=first * block_length,
            ids_BS=torch.stack([ids for ids, _ in rows]),
            prompts_B=torch.tensor([length for _, length in rows]),
        )
        for (first, _), rows in sorted(groups.items())
    ]


def draw(buckets: Sequence[Bucket], size: int, rng: torch.Generator) -> Bucket:
    """`size` different rows (or all there are) of one bucket; buckets are drawn by their number of rows."""
    weights = torch.tensor([float(len(rows.prompts_B)) for rows in buckets])
    chosen = buckets[int(torch.multinomial(weights, 1, generator=rng))]
    rows = torch.randperm(len(chosen.prompts_B), generator=rng)[:size]
    return Bucket(start=chosen.start, ids_BS=chosen.ids_BS[rows], prompts_B=chosen.prompts_B[rows])


def noisy_batch(
    rows: Bucket, *, block_length: int, copies: int, full_mask: float, mask_id: int, rng: torch.Generator
) -> Batch:
    """Join the clean copy with `copies` noisy copies whose answer positions are masked at a rate drawn per block.

    A share `full_mask` of the blocks is masked completely. The last clean block is left out, since no position sees it.
    """
    ids_BS, start = rows.ids_BS, rows.start
    size, length = ids_BS.shape
    noisy_BN = ids_BS[:, start:]
    answer_BN = torch.arange(start, length) >= rows.prompts_B[:, None]
    blocks = (length - start) // block_length
    rate_BCk1 = torch.rand((size, copies, blocks, 1), generator=rng)
    full_BCk1 = torch.rand((size, copies, blocks, 1), generator=rng) < full_mask
    draw_BCkL = torch.rand((size, copies, blocks, block_length), generator=rng)
    masked_BCN = ((draw_BCkL < rate_BCk1) | full_BCk1).flatten(2) & answer_BN[:, None]
    inputs_BCN = torch.where(masked_BCN, mask_id, noisy_BN[:, None])
    labels_BCN = torch.where(masked_BCN, noisy_BN[:, None], -100)
    clean_BS = ids_BS[:, : length - block_length]
    ids_BT = torch.cat((clean_BS, inputs_BCN.flatten(1)), dim=1)
    labels_BT = torch.cat((torch.full_like(clean_BS, -100), labels_BCN.flatten(1)), dim=1)
    clean, noisy = torch.arange(length - block_length), torch.arange(start, length)
    positions_T = torch.cat((clean, noisy.repeat(copies)))
    copies_T = torch.cat((torch.zeros_like(clean), torch.arange(1, copies + 1).repeat_interleave(len(noisy))))
    return Batch(
        ids_BT=ids_BT,
        labels_BT=labels_BT,
        positions_T=positions_T,
        visible_TT=joined_mask(positions_T, copies_T, block_length=block_length),
    )


def joined_mask(positions_T: Tensor, copies_T: Tensor, *, block_length: int) -> Tensor:
    """`visible_TT`: a position sees its own block of its own copy (0 is the clean one), and the clean blocks before
    it.
    """
    blocks_T = positions_T // block_length
    same_TT = (copies_T[:, None] == copies_T) & (blocks_T[:, None] == blocks_T)
    earlier_TT = (copies_T == 0) & (blocks_T[:, None] > blocks_T)
    return same_TT | earlier_TT


def bfloat16_attention(visible_TT: Tensor) -> Attend:
    """Masked attention in bfloat16, written out: with its gradient it takes half the time of the fused CPU kernel."""
    bias_TT = torch.zeros(visible_TT.shape, dtype=torch.bfloat16).masked_fill(~visible_TT, -1e9)

    def attend(_layer: int, q_BThd: Tensor, k_BTkd: Tensor, v_BTkd: Tensor) -> Tensor:
        heads, width = q_BThd.shape[2:]
        group = heads // k_BTkd.shape[2]
        q_BhTd = (q_BThd * width**-0.5).bfloat16().transpose(1, 2)
        k_BhTd = k_BTkd.bfloat16().transpose(1, 2).repeat_interleave(group, dim=1)
        v_BhTd = v_BTkd.bfloat16().transpose(1, 2).repeat_interleave(group, dim=1)
        weights_BhTT = torch.softmax(q_BhTd @ k_BhTd.transpose(2, 3) + bias_TT, dim=-1, dtype=torch.bfloat16)
        return (weights_BhTT @ v_BhTd).transpose(1, 2)

    return attend
