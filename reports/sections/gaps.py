"""What has no number: cells that are missing or incomplete, failures with their reasons, files that were unusable."""

from collections import Counter

from reports import marks
from reports.frames import Frames
from reports.labels import Labels
from reports.model import Group, Head, SectionInfo, Table, Value
from reports.text import visible
from reports.uncached import all_labels
from sweeps.aggregate import CellResult
from sweeps.merge import NO_ROWS

MOST_ROWS = 150


def info(frames: Frames) -> SectionInfo | None:
    """Tables of gaps, failures and unusable files; None when there is nothing to say."""
    labels = all_labels(frames)
    tables = [incomplete(frames, labels), failures(frames, labels), unusable(frames)]
    parts = tuple(table for table in tables if table is not None)
    if not parts:
        return None
    return SectionInfo(
        key="gaps",
        title="Missing and failed",
        lead="None of these enters a mean. Running the same command again runs what is missing.",
        groups=(Group(title="", parts=parts),),
        cuts=("all failures are in report-data/prompts.csv",) if any(table.omitted for table in parts) else (),
    )


def texts(*names: str) -> tuple[Head, ...]:
    """Heads of text columns."""
    return tuple(Head(name=name, number=False) for name in names)


def incomplete(frames: Frames, labels: Labels) -> Table | None:
    """Cells with fewer prompts than asked for, the emptiest first."""
    cells = [result for result in (*frames.results, *frames.references) if untold(result)]
    cells.sort(key=lambda result: result.n)
    heads = (
        *texts("Setting", "Task", "Method"),
        *(
            Head(name=name)
            for name in ("D", "Asked", "Decoded", "Failed", "Not run", "Timings failed", "Timings not run")
        ),
    )
    rows = tuple(
        (
            *(Value(names[result.cell_id]) for names in (labels.setting, labels.task)),
            marks.method(labels, result, counted=True),
            *(Value(text) for text in (labels.budget(result.cell), str(result.n_expected), str(result.n))),
            Value(str(result.n_failed), flag="alarm" if result.n_failed else ""),
            Value(str(result.n_missing), flag="warning" if result.n_missing else ""),
            Value(str(result.n_timing_failed), flag="alarm" if result.n_timing_failed else ""),
            Value(str(result.n_timing_missing), flag="warning" if result.n_timing_missing else ""),
        )
        for result in cells[:MOST_ROWS]
    )
    return table("Incomplete cells", heads, rows, len(cells))


def untold(result: CellResult) -> int:
    """Number of prompts and timings that were asked for and have no number."""
    return result.n_failed + result.n_missing + result.n_timing_failed + result.n_timing_missing


def failures(frames: Frames, labels: Labels) -> Table | None:
    """Failures grouped by reason, the most frequent first."""
    counted: Counter[tuple[str, str, str, str]] = Counter()
    where: dict[tuple[str, str, str, str], str] = {}
    own = {result.cell_id: result for result in (*frames.results, *frames.references)}
    cells = [(cell_id, cell_id) for cell_id in own]
    cells += [(study.cell_id, study.cell.baseline().cell_id) for study in frames.studies]  # shown as the draft-free one
    for cell_id, shown in cells:
        for (kind, _), failure in frames.rows.get(cell_id, NO_ROWS).failures.items():
            reason = (kind, failure.kind, visible(failure.type, 80), visible(failure.message))
            counted[reason] += 1
            name = marks.method(labels, own[shown], counted=True).text
            names = labels.setting[shown], labels.task[shown], name
            where.setdefault(reason, f"{', '.join(names)}, prompt {visible(failure.prompt_id, 60)}")
    rows = tuple(
        (Value(str(n)), *(Value(text) for text in reason), Value(where[reason]))
        for reason, n in counted.most_common(MOST_ROWS)
    )
    heads = (Head(name="Prompts"), *texts("Pass", "Kind", "Type", "Message", "First seen"))
    return table("Failures by reason", heads, rows, len(counted))


def unusable(frames: Frames) -> Table | None:
    """Files under results/ that are no result of this run."""
    rows = tuple((Value(visible(p.path.name)), Value(visible(p.reason))) for p in frames.problems[:MOST_ROWS])
    return table("Files that could not be used", texts("File", "Why"), rows, len(frames.problems))


def table(caption: str, heads: tuple[Head, ...], rows: tuple[tuple[Value, ...], ...], total: int) -> Table | None:
    """A table, where there are rows."""
    return Table(caption=caption, heads=heads, groups=(("", rows),), omitted=total - len(rows)) if rows else None
