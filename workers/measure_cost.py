"""Measuring a cost curve: forwards of every number of states over every prefix in turn, and the drafter at work.

All shapes are warmed up first and then visited in a shuffled order, once a repeat, so that a machine that drifts slows
all of them alike. A forward is timed as the decoder books it: from the states of a tree to hidden states. With one CPU
thread its CPU seconds are counted, which are those of the wall clock on an idle machine and stay so on a busy one.

Shapes: N block states, M prefix length, D budget.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import torch

from sweeps.checks import check
from sweeps.spec import MAX_BLOCK, MAX_BUDGET, DecodeSpec
from workers.decoding.active import open_block
from workers.decoding.loop import decode
from workers.decoding.seen import Seen
from workers.decoding.state import BlockState, Commit
from workers.decoding.tally import Stopwatch
from workers.decoding.tree import DraftTree
from workers.decoding.verify import verify
from workers.drafters.base import Drafter
from workers.drafters.none import NoDrafter
from workers.models.cost_curve import DrafterCost, ForwardCost, Timing
from workers.targets.base import Session, Target

MAX_REPEATS, MAX_THREADS = 10_000, 1024  # more is a slip of the keyboard
BLOCKS = 2  # blocks that a timed decode fills
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostGrid:
    """What to measure: numbers of states (from 1), prefix lengths (whole blocks), `repeats` of each.

    `threads` is what torch was given.
    """

    states: tuple[int, ...]
    prefixes: tuple[int, ...]
    block_length: int
    repeats: int
    threads: int = 1

    def __post_init__(self) -> None:
        for name, least in (("states", 1), ("prefixes", 0)):
            values = getattr(self, name)
            ok = bool(values) and list(values) == sorted(set(values)) and values[0] >= least
            check(ok, f"measure cost: {name}", values, f"ascending whole numbers from {least}")
        check(1 <= self.block_length <= MAX_BLOCK, "measure cost: block_length", self.block_length, f"1 to {MAX_BLOCK}")
        most = MAX_BUDGET + 1
        check(
            self.states[-1] <= most,
            "measure cost: states",
            self.states,
            f"up to {most}, the root and {most - 1} drafts",
        )
        check(self.states[0] == 1, "measure cost: states", self.states, "a list that begins with 1, the root alone")
        whole = all(prefix % self.block_length == 0 for prefix in self.prefixes)
        check(whole, "measure cost: prefixes", self.prefixes, f"multiples of the block length, {self.block_length}")
        allowed = f"a whole number from 3 to {MAX_REPEATS}"
        check(3 <= self.repeats <= MAX_REPEATS, "measure cost: repeats", self.repeats, allowed)
        allowed = f"a whole number from 1 to {MAX_THREADS}"
        check(1 <= self.threads <= MAX_THREADS, "measure cost: threads", self.threads, allowed)


def measure_forwards(
    target: Target, ids: Sequence[int], grid: CostGrid, progress: Progress = lambda done, total: None
) -> tuple[ForwardCost, ...]:
    """Seconds of a forward for every pair of the grid. `ids` (any number, repeated) make prefixes and blocks."""
    now = clock_of(target, grid.threads)
    sessions = {prefix: session_of(target, ids, prefix, grid.block_length) for prefix in grid.prefixes}
    trees = {count: tree_of(target, ids, count, grid.block_length) for count in grid.states}
    pairs = [(prefix, count) for prefix in grid.prefixes for count in grid.states]
    seconds: dict[tuple[int, int], list[float]] = {pair: [] for pair in pairs}
    with torch.inference_mode():
        for repeat in range(-2, grid.repeats):  # the first two warm up
            for prefix, count in random.Random(repeat).sample(pairs, len(pairs)):
                began = now()
                verify(sessions[prefix], trees[count], target.traits.device)
                taken = now() - began
                if repeat >= 0:
                    seconds[prefix, count].append(taken)
            progress(repeat + 3, grid.repeats + 2)
    return tuple(
        ForwardCost(states=count, prefix=prefix, time=timing_of(seconds[prefix, count])) for prefix, count in pairs
    )


def measure_drafter(
    target: Target,
    drafters: Sequence[Drafter],
    prompts: Sequence[Sequence[int]],
    grid: CostGrid,
    progress: Progress = lambda done, total: None,
) -> tuple[DrafterCost, ...]:
    """Seconds of each drafter a round, its stale distribution included: every one of them asked in turn, in every state
    that draft-free decoding of `prompts` (T = 0) passes through, until each was asked `repeats` times a prompt.
    """
    now = clock_of(target, grid.threads)
    spec = DecodeSpec(max_new_tokens=BLOCKS * grid.block_length, block_length=grid.block_length)
    seconds: list[list[float]] = [[] for _ in drafters]
    for done, ids in enumerate(prompts):
        asked = 0

        def ask(seen: Seen) -> None:
            nonlocal asked
            if seen.stale is None or seen.known is None or len(seen.state.open) < 2 or asked > grid.repeats:
                return
            asked += 1
            began = now()
            seen.fresh()
            stale = now() - began
            for place, drafter in random.Random(asked).sample(list(enumerate(drafters)), len(drafters)):
                began = now()
                drafter.propose(seen.state, (seen.known.commit.position,), seen.stale)
                if asked > 1:  # the first one warms up
                    seconds[place].append(now() - began + stale)

        decode(target, NoDrafter(), ids, spec=spec, seed=0, watch=ask)
        progress(done + 1, len(prompts))
    pairs = zip(drafters, seconds, strict=True)
    return tuple(DrafterCost(budget=drafter.budget, time=timing_of(taken)) for drafter, taken in pairs if taken)


def clock_of(target: Target, threads: int) -> Callable[[], float]:
    """Seconds, once the device has finished what it was given."""
    if target.traits.device == "cpu" and threads == 1:
        return time.thread_time
    return Stopwatch(target.traits.device).now


def session_of(target: Target, ids: Sequence[int], prefix: int, block_length: int) -> Session:
    """A sequence with `prefix` positions in its cache."""
    prompt = [ids[place % len(ids)] for place in range(prefix)]
    return target.start(prompt, block_length=block_length, max_new_tokens=block_length)


def tree_of(target: Target, ids: Sequence[int], states: int, block_length: int) -> DraftTree:
    """A tree of so many half-filled states; what they hold differs, as experts of a mixture are chosen by it."""
    empty = open_block([], block_length, block_length, target.traits.mask_id)
    made = tuple(half_filled(empty, ids, number) for number in range(states))
    return DraftTree(states=made, parents=(-1,) * states, steps=((),) * states, masses=(1.0,) * states)


def half_filled(state: BlockState, ids: Sequence[int], number: int) -> BlockState:
    """Every other position filled."""
    for position in state.open[number % 2 :: 2]:
        state = state.fill(Commit(position, ids[(position + number) % len(ids)]))
    return state


def timing_of(seconds: Sequence[float]) -> Timing:
    """Median and quartiles."""
    if len(seconds) < 2:
        return Timing(seconds=seconds[0], low=seconds[0], high=seconds[0])
    low, _, high = quantiles(seconds, n=4, method="inclusive")
    return Timing(seconds=median(seconds), low=low, high=high)
