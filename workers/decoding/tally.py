"""What one decode call writes down while it runs: commits, counters and where the time went.

The only mutable thing of a decode call beside the target's session; `Generation` is what remains of it.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from sweeps.records import Counters, FinishReason
from workers.decoding.acceptance import Step
from workers.decoding.rule import Verdict
from workers.decoding.tree import DraftTree
from workers.decoding.walk import Walk

Part = Literal["drafter", "forward", "walk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One decoded prompt.

    `output_ids`, `order`, `rounds`, `steps`, `margins` and `tokens_kept` are those of `GenerationRecord`, except that
    an infinite margin is `inf` here. `seconds` is the whole call after prefill; drafter, forward and walk seconds are
    parts of it.
    """

    prompt_tokens: int
    output_ids: tuple[int, ...]
    tokens_kept: int
    finish_reason: FinishReason
    order: tuple[int, ...]
    rounds: tuple[int, ...]
    steps: tuple[int, ...]
    margins: tuple[float, ...]
    counters: Counters
    seconds: float
    prefill_seconds: float
    drafter_seconds: float
    forward_seconds: float
    walk_seconds: float


@dataclass(slots=True)
class Stopwatch:
    """Seconds of each part, on a monotonic clock that waits for the device before it is read."""

    device: str
    parts: dict[Part, float] = field(default_factory=lambda: {"drafter": 0.0, "forward": 0.0, "walk": 0.0})
    prefill: float = 0.0
    began: float = 0.0
    last: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.last = self.now()

    def now(self) -> float:
        """Seconds now, once the device has finished what it was given."""
        if self.device.startswith("cuda"):
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def prefilled(self) -> None:
        """End the prefill: decoding begins now."""
        now = self.now()
        self.prefill, self.began, self.last = now - self.began, now, now

    def lap(self, part: Part) -> None:
        """Book the time since the last lap on `part`."""
        now = self.now()
        self.parts[part] += now - self.last
        self.last = now


@dataclass(slots=True)
class Tally:
    """Counters and commits in the making."""

    prompt_tokens: int
    prefilled: int
    positions: int = 0
    merged: int = 0
    drafter_calls: int = 0
    recomputes: int = 0
    trimmed: int = 0
    accepted: list[int] = field(default_factory=list)
    drafted: list[int] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)

    @property
    def turn(self) -> int:
        """Index of the round in the making."""
        return len(self.drafted)

    @property
    def nfe(self) -> int:
        """Target forwards so far: one a round, and one for each verdict that was made again."""
        return self.turn + self.recomputes

    def step(self, start: int, verdict: Verdict, step: Step) -> None:
        """Book a step in the block at absolute position `start`, decided in the round in the making."""
        self.order += [start + commit.position - self.prompt_tokens for commit in step]
        self.rounds += [self.turn] * len(step)
        self.steps.append(len(step))
        self.margins += [verdict.margin] * len(step)

    def round(self, tree: DraftTree, walked: Walk, forwarded: int) -> None:
        """Book a finished round: a forward, its walk and, where that ended in doubt, a second forward.

        `forwarded` is the number of token positions that the session has forwarded by now, prefill included.
        """
        self.accepted.append(walked.accepted)
        self.drafted.append(tree.drafts)
        self.positions = forwarded - self.prefilled
        self.merged += tree.merged
        self.drafter_calls += tree.calls
        self.recomputes += walked.doubtful
        self.trimmed += tree.trimmed

    def counters(self) -> Counters:
        """The counters. No pass is ever made for keys and values alone: a block's first forward computes what the cache
        lacks.
        """
        return Counters(
            nfe=self.nfe,
            prefill_forwards=int(self.prefilled > 0),
            prefill_positions=self.prefilled,
            kv_passes=0,
            positions=self.positions,
            accepted=tuple(self.accepted),
            drafted=tuple(self.drafted),
            merged=self.merged,
            drafter_calls=self.drafter_calls,
            recomputes=self.recomputes,
            trimmed=self.trimmed,
        )


def finished(output: Sequence[int], stops: frozenset[int], tally: Tally, clock: Stopwatch) -> Generation:
    """The generation of `output`: all tokens generated, of which those before the first stop id are kept."""
    first_stop = next((index for index, token in enumerate(output) if token in stops), None)
    return Generation(
        prompt_tokens=tally.prompt_tokens,
        output_ids=tuple(output),
        tokens_kept=len(output) if first_stop is None else first_stop,
        finish_reason="length" if first_stop is None else "stop",
        order=tuple(tally.order),
        rounds=tuple(tally.rounds),
        steps=tuple(tally.steps),
        margins=tuple(tally.margins),
        counters=tally.counters(),
        seconds=clock.now() - clock.began,
        prefill_seconds=clock.prefill,
        drafter_seconds=clock.parts["drafter"],
        forward_seconds=clock.parts["forward"],
        walk_seconds=clock.parts["walk"],
    )
