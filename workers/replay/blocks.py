"""From a prompt and a list of steps back to the block states they passed through.

The same rule as the decoder's: blocks are aligned to absolute position 0, the first active block may open with prompt
tokens, positions behind the requested number of new tokens stay masked and are never filled.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sweeps.spec import DecodeSpec
from workers.decoding.state import BlockState, Commit


@dataclass(frozen=True, slots=True)
class Step:
    """A state that was forwarded: its block begins at absolute position `start`; `fill_order` was filled before."""

    start: int
    state: BlockState
    fill_order: tuple[int, ...]


def steps_of(
    prompt_ids: Sequence[int], taken: Sequence[Sequence[Commit]], *, mask_id: int, decode: DecodeSpec
) -> tuple[Step, ...]:
    """The state before each step (its commits). Raises ValueError when one cannot follow those before it."""
    length, end = decode.block_length, len(prompt_ids) + decode.max_new_tokens
    start = len(prompt_ids) // length * length
    step = first_step(start, prompt_ids[start:], mask_id=mask_id, length=length, end=end)
    steps: list[Step] = []
    for number, commits in enumerate(taken):
        if step.state.full:
            start += length
            step = first_step(start, (), mask_id=mask_id, length=length, end=end)
        positions = tuple(commit.position for commit in commits)
        for position in positions:
            if position not in step.state.open or positions.count(position) > 1:
                raise ValueError(f"trace: step {number} fills position {position}: open is {step.state.open}")
        steps.append(step)
        step = Step(start, step.state.fill(*commits), (*step.fill_order, *positions))
    return tuple(steps)


def first_step(start: int, given: Sequence[int], *, mask_id: int, length: int, end: int) -> Step:
    """A block that begins at `start` with `given` tokens; positions from the absolute position `end` on stay masked."""
    tokens = (*given, *(mask_id for _ in range(length - len(given))))
    return Step(start, BlockState(tokens, tuple(range(len(given), min(length, end - start)))), ())
