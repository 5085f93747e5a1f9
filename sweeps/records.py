"""What a worker hands back and the driver stores: one record a prompt, or a failure. All of it is plain JSON.

Counts are made where the thing happens and nowhere else. NFE counts target forwards over the active block; prefill and
extra key/value passes are counted apart. Times are seconds of a monotonic clock on the worker.
"""

from dataclasses import dataclass
from typing import Literal

from sweeps.study import StudyRecord

FinishReason = Literal["stop", "length"]
FailureKind = Literal["deterministic", "infrastructure"]
ItemKind = Literal["decode", "timing", "trace", "study"]
NO_STALE = "-"  # in `Drawn.agreed`: the token had no stale distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What one generation cost.

    `accepted[r]` is the number of draft states on round r's walk and `drafted[r]` the number verified beside the root.
    Each state on a walk, the root too, adds one step of the target: steps = rounds + all accepted. A round is one
    forward; `recomputes` counts the forwards of single states whose verdict was too close to be relied on
    (`verify_margin`), which are in `nfe` as well: nfe = rounds + recomputes, and both tuples have an entry a round.
    `positions` counts token positions forwarded (block copies, pending filled blocks, canvases; without prefill).
    `merged` counts orders that led to a draft state already found, `trimmed` drafts found and then not verified
    (`cost`).
    """

    nfe: int
    prefill_forwards: int
    prefill_positions: int
    kv_passes: int
    positions: int
    accepted: tuple[int, ...]
    drafted: tuple[int, ...]
    merged: int
    drafter_calls: int
    recomputes: int = 0
    trimmed: int = 0

    def __post_init__(self) -> None:
        if not (len(self.accepted) == len(self.drafted) == self.rounds):
            rows = f"{len(self.accepted)} accepted, {len(self.drafted)} drafted"
            more = f" with {self.recomputes} recomputes" if self.recomputes else ""
            raise ValueError(f"counters: {rows} rounds for nfe {self.nfe}{more}: all three must agree")

    @property
    def rounds(self) -> int:
        """Number of rounds: forwards that made progress (recomputes make none)."""
        return self.nfe - self.recomputes


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """How the tokens of a generation were drawn: one entry a commit, in commit order.

    `argmax` has "1" where the token is the noise-free best of the fresh distribution, else "0". `agreed` has "1" where
    the drafter's own draw from its stale distribution is the same token, "0" where not. `distances` are the total
    variations between stale and fresh tempered distribution at the position. At a block's first forward there is no
    stale distribution: "-" (`NO_STALE`) and None.
    """

    argmax: str
    agreed: str
    distances: tuple[float | None, ...]

    def __post_init__(self) -> None:
        if not len(self.argmax) == len(self.agreed) == len(self.distances):
            sizes = f"{len(self.argmax)}, {len(self.agreed)} and {len(self.distances)}"
            raise ValueError(f"drawn: argmax, agreed and distances have {sizes} commits: all three must agree")
        if not (set(self.argmax) <= set("01") and set(self.agreed) <= {*"01", NO_STALE}):
            raise ValueError(f"drawn: argmax {self.argmax[:20]!r} or agreed {self.agreed[:20]!r}: allowed are 0 1 -")
        known = [letter != NO_STALE for letter in self.agreed]
        if known != [distance is not None for distance in self.distances]:
            raise ValueError("drawn: a commit has a distance without a stale draw, or a stale draw without a distance")


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRecord:
    """One prompt, decoded once.

    `output_ids` are the tokens generated (all of them; `tokens_kept` cuts at the first stop id, which is not kept).
    `order[i]` is the output index of the i-th commit, `rounds[i]` the round that decided it, `margins[i]` how far
    the nearest other step was: the least of the gaps in log-odds between positions (and, under the threshold rule, of
    their distances to tau) and of those between the best and second best token score (an infinite one, where there was
    no rival, is stored as None). `steps[s]` is the number of commits of the target's s-th step, which in commit order
    follow each other in ascending position; rows of before there were several commits a step have none.
    `pieces[i]` is the text of output token i decoded alone, for display only; it may be left empty. `drawn` is None in
    rows that nobody watched.
    """

    prompt_id: str
    prompt_index: int
    prompt_tokens: int
    output_ids: tuple[int, ...]
    tokens_generated: int
    tokens_kept: int
    finish_reason: FinishReason
    text: str
    correct: bool | None
    score_reason: str
    order: tuple[int, ...]
    rounds: tuple[int, ...]
    margins: tuple[float | None, ...]
    counters: Counters
    steps: tuple[int, ...] = ()
    pieces: tuple[str, ...] = ()
    drawn: Drawn | None = None

    @property
    def step_sizes(self) -> tuple[int, ...]:
        """Commits of each step."""
        return self.steps or (1,) * len(self.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingRecord:
    """One prompt, timed: variant and draft-free alternate (ABBA) on one worker after a warm-up of every batch shape.

    The other side of a draft-free cell is draft-free decoding by the standard rule (`Cell.timed_beside`).
    `variant_seconds[r]` and `baseline_seconds[r]` belong to repeat r. The three parts of a variant's time are sums over
    its repeats, and so are the draft-free forwards' seconds; prefill is outside of all of them. These seconds and the
    other side's kept tokens are None in rows made before they were kept.
    """

    prompt_id: str
    prompt_index: int
    tokens_kept: int
    nfe: int
    baseline_nfe: int
    identical: bool
    variant_seconds: tuple[float, ...]
    baseline_seconds: tuple[float, ...]
    drafter_seconds: float
    forward_seconds: float
    walk_seconds: float
    baseline_forward_seconds: float | None = None
    baseline_tokens_kept: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why something has no number. `prompt_index` is -1 when the whole item failed."""

    kind: FailureKind
    type: str
    message: str
    traceback: str = ""
    prompt_index: int = -1
    prompt_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where and with what a record was made; never part of an identity."""

    host: str
    device: str
    threads: int
    code_digest: str
    versions: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """A piece of one cell for one worker: prompts `[first, last)`, decoded, timed, traced or studied (draft-free).

    `states`: its traces hold hidden states too, which a set model learns from.
    """

    item_id: str
    cell_id: str
    kind: ItemKind
    first: int
    last: int
    repeats: int = 1
    states: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """What a worker returns for an item: records, row failures, or one failure for all of it.

    `traces` holds one encoded trajectory a prompt (`workers.replay.trace`), in prompt order.
    """

    item_id: str
    cell_id: str
    kind: ItemKind
    first: int
    last: int
    generations: tuple[GenerationRecord, ...] = ()
    timings: tuple[TimingRecord, ...] = ()
    traces: tuple[bytes, ...] = ()
    studies: tuple[StudyRecord, ...] = ()
    failures: tuple[Failure, ...] = ()
    seconds: float = 0.0
    load_seconds: float = 0.0
    finished_at: float = 0.0
    attempt: int = 1
    provenance: Provenance | None = None
