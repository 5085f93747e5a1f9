"""Laws that counts obey when decoding is correct; each violation is an alarm, shown first in every report.

Each round reveals one commit and each accepted draft state one more, so generated tokens = rounds + accepted, where
rounds are NFE less the recomputes; draft-free decoding needs exactly one forward a token; a drafter can never need more
rounds than that (with `verify_margin` it may need more forwards); a timed pass repeats the decode pass exactly.
"""

from collections.abc import Iterator

from sweeps.cell import Cell
from sweeps.claims import claim_of
from sweeps.merge import Alarm, CellRows
from sweeps.records import GenerationRecord, TimingRecord


def count_alarms(cell: Cell, rows: CellRows, baseline: CellRows) -> Iterator[Alarm]:
    """Alarms of a cell's generations and timings. Sampling with independent noise may change outputs, not the laws."""
    for index, row in rows.generations.items():
        yield from generation_alarms(cell, row, baseline.generations.get(index))
    for index, timing in rows.timings.items():
        yield from timing_alarms(cell, timing, rows.generations.get(index), baseline.generations.get(index))


def generation_alarms(cell: Cell, row: GenerationRecord, draft_free: GenerationRecord | None) -> Iterator[Alarm]:
    """Alarms of one generation."""
    nfe, tokens, accepted = row.counters.nfe, row.tokens_generated, sum(row.counters.accepted)
    rounds = row.counters.rounds
    if tokens != rounds + accepted:
        message = f"prompt {row.prompt_index}: {tokens} tokens from {rounds} rounds and {accepted} accepted drafts"
        yield Alarm(kind="counts do not add up", message=message, prompt_id=row.prompt_id)
    if cell.is_baseline and nfe != tokens:
        message = f"prompt {row.prompt_index}: {nfe} forwards for {tokens} tokens without drafts"
        yield Alarm(kind="draft-free NFE differs from tokens", message=message, prompt_id=row.prompt_id)
    if row.counters.recomputes and not cell.drafter.verify_margin:
        message = f"prompt {row.prompt_index}: {row.counters.recomputes} recomputes without a margin to verify"
        yield Alarm(kind="counts do not add up", message=message, prompt_id=row.prompt_id)
    if draft_free is not None and row.output_ids == draft_free.output_ids and rounds > draft_free.counters.nfe:
        message = f"prompt {row.prompt_index}: {rounds} rounds, draft-free {draft_free.counters.nfe}"
        yield Alarm(kind="more forwards than draft-free", message=message, prompt_id=row.prompt_id)


def timing_alarms(
    cell: Cell, timing: TimingRecord, row: GenerationRecord | None, draft_free: GenerationRecord | None
) -> Iterator[Alarm]:
    """Alarms of one timed prompt against the decode passes of both sides."""
    sides = (("variant", timing.nfe, row), ("draft-free", timing.baseline_nfe, draft_free))
    for side, nfe, record in sides:
        if record is not None and record.counters.nfe != nfe:
            message = f"prompt {timing.prompt_index}, {side}: {record.counters.nfe} forwards decoded, {nfe} timed"
            yield Alarm(kind="NFE differs between passes", message=message, prompt_id=timing.prompt_id)
    same = row is not None and draft_free is not None and row.output_ids == draft_free.output_ids
    if same and not timing.identical and claim_of(cell).promises_identity:
        message = f"prompt {timing.prompt_index}: identical when decoded, not identical when timed"
        yield Alarm(kind="identity differs between passes", message=message, prompt_id=timing.prompt_id)
