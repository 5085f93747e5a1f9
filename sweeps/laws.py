"""Laws that counts obey when decoding is correct; each violation is an alarm, shown first in every report.

Each round reveals one step of the target and each accepted draft state one more, so steps = rounds + accepted, where
rounds are NFE less the recomputes. Under the standard rule a step is one token, under the threshold rule one or more;
draft-free decoding needs exactly one forward a step; a drafter can never need more rounds than that (with
`verify_margin` it may need more forwards), nor fewer than its budget and options allow (`bound.py`); a timed pass
repeats the decode pass exactly.
"""

from collections.abc import Iterator

from sweeps.bound import fewest_rounds
from sweeps.cell import Cell
from sweeps.claims import claim_of
from sweeps.merge import Alarm, CellRows
from sweeps.records import GenerationRecord, TimingRecord


def count_alarms(cell: Cell, rows: CellRows, baseline: CellRows, beside: CellRows) -> Iterator[Alarm]:
    """Alarms of a cell's generations and timings. Sampling with independent noise may change outputs, not the laws.

    `beside` are the rows of the cell that this one is timed beside (`Cell.timed_beside`).
    """
    for index, row in rows.generations.items():
        yield from generation_alarms(cell, row, baseline.generations.get(index))
    for index, timing in rows.timings.items():
        yield from timing_alarms(cell, timing, rows.generations.get(index), beside.generations.get(index))


def generation_alarms(cell: Cell, row: GenerationRecord, draft_free: GenerationRecord | None) -> Iterator[Alarm]:
    """Alarms of one generation."""
    nfe, tokens, accepted = row.counters.nfe, row.tokens_generated, sum(row.counters.accepted)
    rounds, sets = row.counters.rounds, cell.decode.commit == "threshold"
    steps, made = (len(row.step_sizes), "steps") if sets else (tokens, "tokens")
    if steps != rounds + accepted:
        message = f"prompt {row.prompt_index}: {steps} {made} from {rounds} rounds and {accepted} accepted drafts"
        yield Alarm(kind="counts do not add up", message=message, prompt_id=row.prompt_id)
    if cell.is_baseline and nfe != steps:
        message = f"prompt {row.prompt_index}: {nfe} forwards for {steps} {made} without drafts"
        yield Alarm(kind=f"draft-free NFE differs from {made}", message=message, prompt_id=row.prompt_id)
    elif sets and rounds < (least := fewest_rounds(cell, row)):
        message = f"prompt {row.prompt_index}: {rounds} rounds for {steps} {made}, {least} is the least there can be"
        yield Alarm(kind="fewer forwards than can be", message=message, prompt_id=row.prompt_id)
    if row.steps and not is_partition(row, most=tokens if sets else 1):
        message = f"prompt {row.prompt_index}: {tokens} tokens in {len(row.steps)} steps of {sum(row.steps)} commits"
        yield Alarm(kind="counts do not add up", message=message, prompt_id=row.prompt_id)
    if row.counters.recomputes and not cell.drafter.verify_margin:
        message = f"prompt {row.prompt_index}: {row.counters.recomputes} recomputes without a margin to verify"
        yield Alarm(kind="counts do not add up", message=message, prompt_id=row.prompt_id)
    if draft_free is not None and same_steps(row, draft_free, sets) and rounds > draft_free.counters.nfe:
        message = f"prompt {row.prompt_index}: {rounds} rounds, draft-free {draft_free.counters.nfe}"
        yield Alarm(kind="more forwards than draft-free", message=message, prompt_id=row.prompt_id)


def is_partition(row: GenerationRecord, *, most: int) -> bool:
    """Whether the steps are the tokens generated, each step with 1 to `most` of them."""
    return sum(row.steps) == row.tokens_generated and all(1 <= size <= most for size in row.steps)


def same_steps(row: GenerationRecord, draft_free: GenerationRecord, sets: bool) -> bool:
    """Whether two generations took the same way, so that their forwards may be compared.

    A way of the standard rule has a step for each token. Under the threshold rule an output does not tell the steps:
    other draws (independent noise, `confidence: sampled`) or rounding may have filled it in fewer of them.
    """
    same = row.output_ids == draft_free.output_ids
    return same and (not sets or (row.order, row.step_sizes) == (draft_free.order, draft_free.step_sizes))


def timing_alarms(
    cell: Cell, timing: TimingRecord, row: GenerationRecord | None, other: GenerationRecord | None
) -> Iterator[Alarm]:
    """Alarms of one timed prompt against the decode passes of both sides."""
    against = "the other side" if cell.is_baseline else "draft-free"
    sides = (("variant", timing.nfe, row), (against, timing.baseline_nfe, other))
    for side, nfe, record in sides:
        if record is not None and record.counters.nfe != nfe:
            message = f"prompt {timing.prompt_index}, {side}: {record.counters.nfe} forwards decoded, {nfe} timed"
            yield Alarm(kind="NFE differs between passes", message=message, prompt_id=timing.prompt_id)
    same = row is not None and other is not None and row.output_ids == other.output_ids
    if same and not timing.identical and claim_of(cell).promises_identity:
        message = f"prompt {timing.prompt_index}: identical when decoded, not identical when timed"
        yield Alarm(kind="identity differs between passes", message=message, prompt_id=timing.prompt_id)
