"""Whether the timings can be relied on: repeats, how much they vary, and where the time went."""

from reports import marks
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Group, Head, SectionInfo, Table, Value
from reports.text import number, percent
from sweeps.aggregate import CellResult
from sweeps.timings import MAX_CV, MIN_PROMPTS, MIN_REPEATS

MOST_ROWS = 400

HEADS = (
    Head(name="Task", number=False),
    Head(name="Method", number=False),
    Head(name="D"),
    Head(name="Prompts", meaning="timed on both sides"),
    Head(name="Repeats", meaning="fewest of any prompt"),
    Head(name="CV", unit="%", meaning="pooled coefficient of variation of the variant's repeats"),
    Head(name="CV draft-free", unit="%"),
    Head(name="Draft-free tokens/s", meaning="measured beside this cell"),
    Head(name="Drafter", unit="% of time"),
    Head(name="Forward", unit="% of time"),
    Head(name="Walk", unit="% of time"),
    Head(name="Gate", number=False),
)


def info(frames: Frames) -> SectionInfo | None:
    """One table a setting; None when nothing was timed."""
    labels = labels_of(frames.results)
    timed = [result for result in frames.results if result.throughput.ratio.n]
    if not timed:
        return None
    timed.sort(key=lambda result: not result.throughput.doubts)
    groups = tuple(
        Group(title=setting, parts=(table(setting, results, labels),), folded=place >= 2)
        for place, (setting, results) in enumerate(labels.by_setting(timed[:MOST_ROWS]))
    )
    lead = (
        f"Variant and draft-free alternate on one worker after a warm-up. Gates: {MIN_REPEATS} repeats, {MIN_PROMPTS} "
        f"prompts, repeats within {MAX_CV:.0%}. Doubtful cells come first. Prefill is outside of all times. "
        + marks.LEAD
    )
    cuts = (f"{len(timed) - MOST_ROWS:,} more cells, in report-data/cells.csv",) if len(timed) > MOST_ROWS else ()
    return SectionInfo(key="timing", title="Timing quality", lead=lead, groups=groups, cuts=cuts)


def table(setting: str, results: list[CellResult], labels: Labels) -> Table:
    """The table of one setting."""
    rows = tuple(row(result, labels) for result in results)
    return Table(caption=f"Timing: {setting}", heads=HEADS, groups=(("", rows),))


def row(result: CellResult, labels: Labels) -> tuple[Value, ...]:
    """One cell."""
    timing, cell_id = result.throughput, result.cell_id
    doubts = "; ".join(timing.doubts)
    left = result.n_timing_failed + result.n_timing_missing
    return (
        Value(labels.task[cell_id]),
        marks.method(labels, result),
        Value(labels.budget(result.cell)),
        Value(f"{timing.ratio.n}, {left} not timed", flag="warning") if left else Value(str(timing.ratio.n)),
        Value(str(timing.repeats)),
        Value(bare(timing.cv)),
        Value(bare(timing.cv_draft_free)),
        Value(number(timing.tokens_per_s_draft_free.value, 1)),
        Value(bare(timing.drafter_share)),
        Value(bare(timing.forward_share)),
        Value(bare(timing.walk_share)),
        Value(f"† {doubts}", flag="warning") if doubts else Value("passed ✓", flag="good"),
    )


def bare(share: float | None) -> str:
    """A percentage without its sign, which the head shows."""
    return percent(share).removesuffix(" %")
