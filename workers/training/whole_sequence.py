"""Batches of the whole-sequence objective: canvases as block-by-block decoding shows them.

One block of each canvas is being filled: what lies before it is clean, its own answer positions are masked at a rate
drawn per canvas, and everything behind it is masked. Every position sees every other. The masks of the open block are
what decoding asks for; a share of those behind it is learned too, which costs nothing and makes up for the few labels.

Shapes: B batch, C positions of a canvas.
"""

import torch

from workers.training.block_diffusion import Batch, Bucket


def whole_batch(
    rows: Bucket,
    *,
    block_length: int,
    new_tokens: int,
    full_mask: float,
    behind: float,
    mask_id: int,
    end_id: int,
    rng: torch.Generator,
    shift: int = 0,
) -> Batch:
    """Canvases with room for `new_tokens` behind the prompt, in whole blocks; missing ids are end tokens.

    A share `full_mask` of the canvases has its open block masked completely, and a share `behind` of the masks behind
    it is learned. With `shift` 1 a position predicts the next one.
    """
    size, length = rows.ids_BS.shape
    room = -(-(int(rows.prompts_B.max()) + new_tokens) // block_length) * block_length
    canvas = max(length, room)
    ids_BC = torch.cat((rows.ids_BS, torch.full((size, canvas - length), end_id)), dim=1)
    blocks = (length - rows.start) // block_length
    first_B1 = rows.start + block_length * torch.randint(blocks, (size, 1), generator=rng)
    places = torch.arange(canvas)
    open_BC = (places >= first_B1) & (places < first_B1 + block_length)
    behind_BC = places >= first_B1 + block_length
    rate_B1 = torch.rand((size, 1), generator=rng)
    full_B1 = torch.rand((size, 1), generator=rng) < full_mask
    drawn_BC = (torch.rand((size, canvas), generator=rng) < rate_B1) | full_B1
    answer_BC = places >= rows.prompts_B[:, None]
    asked_BC = open_BC & drawn_BC & answer_BC
    also_BC = behind_BC & (torch.rand((size, canvas), generator=rng) < behind)
    labels_BC = torch.where(asked_BC | also_BC, ids_BC, -100)
    if shift:
        labels_BC = torch.cat((labels_BC[:, shift:], torch.full((size, shift), -100)), dim=1)
    return Batch(
        ids_BT=torch.where(asked_BC | behind_BC, mask_id, ids_BC),
        labels_BT=labels_BC,
        positions_T=places,
        visible_TT=torch.ones((canvas, canvas), dtype=torch.bool),
    )
