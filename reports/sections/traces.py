"""Drill-down: the order in which a prompt's positions were committed, as a grid of blocks and the same as text."""

from reports import marks
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Commit, Group, SectionInfo, Trace
from reports.text import count, visible
from sweeps.aggregate import CellResult
from sweeps.records import GenerationRecord

MOST_TRACES = 12
MOST_TOKENS = 256
MOST_BYTES = 400_000
BYTES_A_TOKEN = 120
SHADES = 8


def info(frames: Frames) -> SectionInfo | None:
    """The first decoded prompt of a selection of cells: one of each setting and task in turn, within a size budget."""
    labels = labels_of(frames.results)
    able = [result for result in frames.results if frames.rows.get(result.cell_id) and result.n]
    chosen: list[tuple[CellResult, GenerationRecord]] = []
    size = 0
    for result in spread(able, labels):
        record = next(iter(frames.rows[result.cell_id].generations.values()))
        size += BYTES_A_TOKEN * min(len(record.order), MOST_TOKENS)
        if len(chosen) == MOST_TRACES or size > MOST_BYTES:
            break
        chosen.append((result, record))
    if not chosen:
        return None
    traces = tuple(trace_of(result, record, labels) for result, record in chosen)
    left = len(able) - len(chosen)
    return SectionInfo(
        key="traces",
        title="Commit order",
        lead="Each box is a position of the output, a row a block. The number says which forward committed it, counted "
        "from 1 in each block; stronger colour means later. Boxes with the same number were committed by one forward.",
        groups=tuple(Group(title=trace.title, parts=(trace,), folded=place > 0) for place, trace in enumerate(traces)),
        cuts=(f"traces of {count(left, 'more cell')}; `spot decode` shows any prompt",) if left > 0 else (),
    )


def spread(results: list[CellResult], labels: Labels) -> list[CellResult]:
    """The results in turns: of each setting and task the one with the fewest forwards, then the next; bounds last."""
    seen: dict[tuple[str, str], int] = {}
    placed = []
    for order, result in enumerate(sorted(results, key=place_of)):
        key = labels.setting[result.cell_id], labels.task[result.cell_id]
        seen[key] = seen.get(key, -1) + 1
        placed.append((seen[key], order, result))
    return [result for _, _, result in sorted(placed, key=lambda place: place[:2])]


def place_of(result: CellResult) -> tuple[bool, float]:
    """Where a cell stands among others: methods by their forwards, then oracles."""
    return result.cell.drafter.oracle, -(result.nfe_reduction.value or 0)


def trace_of(result: CellResult, record: GenerationRecord, labels: Labels) -> Trace:
    """The trace of one generation."""
    cell_id, length = result.cell_id, result.cell.decode.block_length
    offset = record.prompt_tokens % length
    shown = min(len(record.output_ids), MOST_TOKENS)
    places = {index: number for number, index in enumerate(record.order)}
    blocks: list[tuple[Commit | None, ...]] = []
    for first in range(-offset, shown, length):
        indexes = [index for index in range(first, min(first + length, shown)) if index >= 0]
        rounds = [record.rounds[places[index]] for index in indexes]
        base, span = min(rounds), max(1, max(rounds) - min(rounds))
        commits = [
            Commit(
                text=piece(record, index),
                round=round_ - base + 1,
                number=places[index] + 1,
                shade=(round_ - base) * (SHADES - 1) // span,
            )
            for index, round_ in zip(indexes, rounds, strict=True)
        ]
        blocks.append((*(None,) * (offset if first < 0 else 0), *commits))
    cut = len(record.output_ids) - shown
    note = f"{count(record.tokens_generated, 'token')} in {count(record.counters.nfe, 'forward')}"
    names = (labels.setting[cell_id], labels.task[cell_id], marks.method(labels, result, counted=True).text)
    budget = "" if result.cell.is_baseline else f", D = {labels.budget(result.cell)}"
    return Trace(
        title=f"{', '.join(names)}{budget}: prompt {visible(record.prompt_id, 60)}",
        note=f"{note}; {count(cut, 'more token')} not shown" if cut else note,
        blocks=tuple(blocks),
        text=as_text(record, places),
    )


def piece(record: GenerationRecord, index: int) -> str:
    """The text of one output token, or its id where the text was not kept."""
    text = record.pieces[index] if index < len(record.pieces) else f"#{record.output_ids[index]}"
    return visible(text, 12).replace("\n", "\u21b5").replace("\t", "\u21e5")


def as_text(record: GenerationRecord, places: dict[int, int]) -> str:
    """One line a round: what it committed, as position and token."""
    by_round: dict[int, list[str]] = {}
    for index in record.order[:MOST_TOKENS]:
        line = by_round.setdefault(record.rounds[places[index]], [])
        line.append(f"{index}:{piece(record, index)!r}")
    return "\n".join(f"forward {round_ + 1}: {'  '.join(line)}" for round_, line in sorted(by_round.items()))
