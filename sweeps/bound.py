"""The fewest forwards that any drafter of a budget can take: arithmetic from block lengths, without a model.

A block's first forward goes alone, as nothing is known of it yet, and commits one position. A later round commits what
lies on its walk, at most the budget, and one more; a full state is never verified, which takes nothing from that.
"""

from math import ceil

from sweeps.records import GenerationRecord


def least_forwards(row: GenerationRecord, block_length: int, budget: int) -> int:
    """Forwards for the tokens of `row`, its prompt opening the first block (blocks are aligned to position 0)."""
    first, last = row.prompt_tokens, row.prompt_tokens + row.tokens_generated
    forwards = 0
    while first < last:
        end = min(last, (first // block_length + 1) * block_length)
        forwards += 1 + ceil((end - first - 1) / (budget + 1))
        first = end
    return forwards
