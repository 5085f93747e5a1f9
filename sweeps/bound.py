"""The fewest forwards that any drafter of a budget can take: arithmetic from block lengths, without a model.

A block's first forward goes alone, as nothing is known of it yet, and commits one position. A later round commits what
lies on its walk, at most the budget, and one more; a full state is never verified, which takes nothing from that.
"""

from math import ceil


def least_forwards(prompt_tokens: int, new_tokens: int, block_length: int, budget: int) -> int:
    """Forwards for `new_tokens` behind a prompt, which opens the first block (blocks are aligned to position 0)."""
    first, last = prompt_tokens, prompt_tokens + new_tokens
    forwards = 0
    while first < last:
        end = min(last, (first // block_length + 1) * block_length)
        forwards += 1 + ceil((end - first - 1) / (budget + 1))
        first = end
    return forwards
