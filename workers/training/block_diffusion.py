"""Batches and mask of the block-diffusion objective: [clean copy; noisy copies] in one sequence.

The clean copy is block-causal, as the prefix is in decoding. A noisy copy of a block sees the clean blocks before it
and itself, as the active block does. Blocks are aligned to absolute position 0, prompts included, so the first noisy
block of an example begins with its prompt's last tokens; after the end token a block goes on with end tokens, so that
every block can be filled.

Shapes: B batch, S positions of an example, T positions of the joined sequence, C noisy copies, k blocks of L, W = L and
the shifted position before.
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
    rows: Bucket,
    *,
    block_length: int,
    copies: int,
    full_mask: float,
    mask_id: int,
    rng: torch.Generator,
    shift: int = 0,
) -> Batch:
    """Join the clean copy with `copies` noisy copies whose answer positions are masked at a rate drawn per block.

    A share `full_mask` of the blocks is masked completely. The last clean block is left out, since no position sees it.
    With `shift` 1 a position predicts the next one: a noisy block begins one clean position earlier.
    """
    ids_BS, start = rows.ids_BS, rows.start
    size, length = ids_BS.shape
    assert start >= shift, "a shifted block needs a position before it"
    noisy_BN = ids_BS[:, start:]
    answer_BN = torch.arange(start, length) >= rows.prompts_B[:, None]
    blocks = (length - start) // block_length
    rate_BCk1 = torch.rand((size, copies, blocks, 1), generator=rng)
    full_BCk1 = torch.rand((size, copies, blocks, 1), generator=rng) < full_mask
    draw_BCkL = torch.rand((size, copies, blocks, block_length), generator=rng)
    masked_BCN = ((draw_BCkL < rate_BCk1) | full_BCk1).flatten(2) & answer_BN[:, None]
    split = size, copies, blocks, block_length
    inputs_BCkL = torch.where(masked_BCN, mask_id, noisy_BN[:, None]).view(split)
    labels_BCkL = torch.where(masked_BCN, noisy_BN[:, None], -100).view(split)
    starts_k1 = torch.arange(start, length, block_length)[:, None]
    noisy_kW = starts_k1 + torch.arange(-shift, block_length)
    before_BCkw = ids_BS[:, noisy_kW[:, :shift]][:, None].expand(-1, copies, -1, -1)
    inputs_BCkW = torch.cat((before_BCkw, inputs_BCkL), dim=3)
    labels_BCkW = torch.cat((labels_BCkL, torch.full_like(before_BCkw, -100)), dim=3)
    clean_BS = ids_BS[:, : length - block_length]
    clean = torch.arange(length - block_length)
    return Batch(
        ids_BT=torch.cat((clean_BS, inputs_BCkW.flatten(1)), dim=1),
        labels_BT=torch.cat((torch.full_like(clean_BS, -100), labels_BCkW.flatten(1)), dim=1),
        positions_T=torch.cat((clean, noisy_kW.flatten().repeat(copies))),
        visible_TT=joined_mask(clean // block_length * block_length, noisy_kW, starts_k1 - shift, copies),
    )


def joined_mask(clean_starts_S: Tensor, noisy_kW: Tensor, noisy_starts_k1: Tensor, copies: int) -> Tensor:
    """`visible_TT`: a position sees its own block of its own copy, and the clean positions before that.

    `clean_starts_S` and `noisy_starts_k1` say where the block of a position begins.
    """
    clean, noisy = len(clean_starts_S), noisy_kW.numel()
    starts_T = torch.cat((clean_starts_S, noisy_starts_k1.expand_as(noisy_kW).flatten().repeat(copies)))
    copies_T = torch.cat((torch.zeros(clean), torch.arange(1, copies + 1).repeat_interleave(noisy)))
    clean_T = torch.cat((torch.arange(clean), torch.full((noisy * copies,), torch.inf)))
    same_TT = (copies_T[:, None] == copies_T) & (starts_T[:, None] == starts_T)
    return same_TT | (starts_T[:, None] > clean_T)


def causal_batch(rows: Bucket) -> Batch:
    """The clean copy alone, every answer position predicted at the one before: the warm start of shifted targets."""
    ids_BS = rows.ids_BS
    length = ids_BS.shape[1]
    places = torch.arange(length)
    labels_BS = torch.where(places >= rows.prompts_B[:, None], ids_BS, -100)
    return Batch(
        ids_BT=ids_BS[:, :-1],
        labels_BT=labels_BS[:, 1:],
        positions_T=places[:-1],
        visible_TT=places[:-1, None] >= places[:-1],
    )


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
