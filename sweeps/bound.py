"""The fewest forwards that any drafter of a budget can take: arithmetic from steps, without a model.

A block's first forward goes alone, as nothing is known of it yet, and takes one step. A later round takes a step in
each state on its walk: the root and at most the budget. A full state is never verified, which takes nothing from that.

With cross-block drafts a round may also fill a block and take the first step of the next one, in place of that block's
forward of its own; the crossing state is one more on the walk. So all rounds of a block together take its steps left
and one more. Crossing is never worse: it costs at most one round, which the next block's first forward would have been.
To draft the first round of a block instead (draft refresh) takes a crossing draft that the walk did not go to; a walk
that has a draft to spare could have crossed, which is one step more in as many rounds. A block that a crossing step
fills wholly leaves nothing known of the block behind it, which then begins alone.

Under the standard rule each token is a step. Under the threshold rule one step may fill a block: the fewest forwards by
whatever drafter are then one a block, also with cross-block drafts and refresh, since every block is begun in a round
of its own: a round that begins a second one was drafted by a round which began none.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from math import ceil

from sweeps.cell import Cell
from sweeps.records import GenerationRecord


def steps_floor(steps: Sequence[int], budget: int, *, cross_block: bool = False) -> int:
    """Forwards for blocks that take so many steps each, in order."""
    if not (cross_block and budget):
        return sum(1 + ceil((count - 1) / (budget + 1)) for count in steps)
    crossed = [*steps[:-1], *(count - 1 for count in steps[-1:])]  # the first forward of all takes one step alone
    return bool(steps) + sum(ceil(count / (budget + 1)) for count in crossed)


def least_forwards(
    prompt_tokens: int, new_tokens: int, block_length: int, budget: int, *, cross_block: bool = False
) -> int:
    """Forwards by the standard rule for `new_tokens` behind a prompt, which opens the first block (blocks are aligned
    to position 0).
    """
    first, last = prompt_tokens, prompt_tokens + new_tokens
    steps = []
    while first < last:
        end = min(last, (first // block_length + 1) * block_length)
        steps.append(end - first)
        first = end
    return steps_floor(steps, budget, cross_block=cross_block)


def blocks(prompt_tokens: int, new_tokens: int, block_length: int) -> int:
    """Blocks that hold any of `new_tokens` behind a prompt: the fewest forwards by whatever commit rule."""
    return -(-(prompt_tokens + new_tokens) // block_length) - prompt_tokens // block_length if new_tokens else 0


def fewest_forwards(cell: Cell, row: GenerationRecord) -> int:
    """The fewest forwards in which any drafter of the cell's budget and options could have made a generation."""
    prompt, tokens, length = row.prompt_tokens, row.tokens_generated, cell.decode.block_length
    if cell.decode.commit == "threshold":
        return blocks(prompt, tokens, length)
    budget = 0 if cell.is_baseline else cell.drafter.budget
    return least_forwards(prompt, tokens, length, budget, cross_block=cell.drafter.cross_block)


def fewest_rounds(cell: Cell, row: GenerationRecord) -> int:
    """The fewest rounds that take the very steps of a generation, at the cell's budget and options."""
    firsts = [first for first in accumulate(row.step_sizes[:-1], initial=0) if first < len(row.order)]
    counted = Counter((row.prompt_tokens + row.order[first]) // cell.decode.block_length for first in firsts)
    budget = 0 if cell.is_baseline else cell.drafter.budget
    steps = [counted[block] for block in sorted(counted)]
    return max(fewest_forwards(cell, row), steps_floor(steps, budget, cross_block=cell.drafter.cross_block))
