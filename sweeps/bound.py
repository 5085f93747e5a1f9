"""The fewest forwards that any drafter of a budget can take: arithmetic from block lengths, without a model.

Under the threshold rule one step may fill a block, so that only its first forward is sure: one a block. Under the
standard rule a block's first forward goes alone, as nothing is known of it yet, and commits one position. A later round
commits what lies on its walk, at most the budget, and one more; a full state is never verified, which takes nothing
from that.
"""

from math import ceil

from sweeps.cell import Cell
from sweeps.records import GenerationRecord


def least_forwards(prompt_tokens: int, new_tokens: int, block_length: int, budget: int) -> int:
    """Forwards by the standard rule for `new_tokens` behind a prompt, which opens the first block (blocks are aligned
    to position 0).
    """
    first, last = prompt_tokens, prompt_tokens + new_tokens
    forwards = 0
    while first < last:
        end = min(last, (first // block_length + 1) * block_length)
        forwards += 1 + ceil((end - first - 1) / (budget + 1))
        first = end
    return forwards


def blocks(prompt_tokens: int, new_tokens: int, block_length: int) -> int:
    """Blocks that hold any of `new_tokens` behind a prompt: the fewest forwards by whatever commit rule."""
    return -(-(prompt_tokens + new_tokens) // block_length) - prompt_tokens // block_length if new_tokens else 0


def fewest_forwards(cell: Cell, row: GenerationRecord) -> int:
    """The fewest forwards in which any drafter of the cell's budget and options could have made a generation."""
    prompt, tokens, length = row.prompt_tokens, row.tokens_generated, cell.decode.block_length
    if cell.decode.commit == "standard":
        return tokens if cell.is_baseline else least_forwards(prompt, tokens, length, cell.drafter.budget)
    return blocks(prompt, tokens, length)
