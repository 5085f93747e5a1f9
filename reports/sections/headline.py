"""The paper's table: method by task for each setting; forwards and throughput always in columns of their own."""

from reports import marks
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Group, Head, SectionInfo, Table, Value
from reports.phrases import UNCORRECTED
from reports.shown import shown
from reports.text import DASH, TIMES, count, significant
from reports.uncached import LEAD
from reports.winners import is_lossy, nfe_winners, throughput_winners
from sweeps.aggregate import CellResult
from sweeps.statistics import ALIKE, FEWEST

MOST_ROWS = 1200
FOLD_FROM = 6
NOT_PROMISED = (
    " Not promised: that claim speaks of the distribution of outputs, or of nothing, but not of each token, so outputs "
    "that differ from draft-free are no failure."
)
BOUNDS = " (bound): an oracle, which was told the target's real future; no method, and never bold."

LOSSY = " Lossy: the output may be another than the target's own; such methods compete for bold with each other only."

HEADS = (
    Head(name="Method", number=False),
    Head(name="D", meaning="budget: draft states verified beside the root"),
    Head(name="Prompts", meaning="decoded prompts, of those asked for"),
    Head(name="NFE", unit="forwards/prompt", meaning="target forwards, mean over prompts"),
    Head(name="NFE reduction", unit=TIMES, meaning="draft-free NFE over NFE, the same prompts"),
    Head(name="Tokens/s", meaning="kept tokens over median seconds"),
    Head(name="Throughput ratio", unit=TIMES, meaning="tokens/s over draft-free tokens/s, interleaved"),
    Head(name="Correct", unit="%", meaning="right answers; Wilson interval"),
    Head(name="Claim", number=False, meaning="what the output may claim to be"),
    Head(name="Identical", meaning="generations equal to draft-free, token by token, of those compared"),
)


def info(frames: Frames) -> SectionInfo:
    """One table a setting, its rows grouped by task."""
    labels = labels_of(frames.results)
    best = nfe_winners(frames, labels), throughput_winners(frames, labels)
    seeds = len({result.cell.seed for result in frames.results}) > 1
    groups: list[Group] = []
    left = MOST_ROWS
    settings = list(labels.by_setting(frames.results))
    for setting, results in settings:
        shown = results[: max(0, left)]
        left -= len(results)
        if shown:
            table = table_of(setting, shown, labels, best, seeds, omitted=len(results) - len(shown))
            groups.append(Group(title=setting, parts=(table,), folded=len(settings) >= FOLD_FROM and bool(groups)))
    cuts = (
        (f"{count(-left, 'row')} of {len(frames.results):,} not shown; all are in report-data/cells.csv",)
        if left < 0
        else ()
    )
    unpromised = any(identical(result).text.startswith("not promised") for result in frames.results)
    return SectionInfo(
        key="results",
        title="Results",
        lead="NFE counts target forwards; it is not a time. Ranges are 95 % intervals over prompts; means and ratios "
        f"have none from fewer than {FEWEST} prompts, nor where fewer than {ALIKE} all agree. Bold: better than "
        f"every rival at the same budget, beyond its interval; methods with equal counts tie: none is bold. "
        f"{UNCORRECTED} A throughput ratio is of runs side by side, not "
        "the quotient of two rows, which were timed at other moments. † the timing failed a gate (see Timing quality). "
        + marks.LEAD
        + (NOT_PROMISED if unpromised else "")
        + (LEAD if any(result.agreement is not None for result in frames.results) else "")
        + (LOSSY if any(map(is_lossy, frames.results)) else "")
        + (BOUNDS if any(result.cell.drafter.oracle for result in frames.results) else ""),
        groups=tuple(groups),
        cuts=cuts,
    )


def table_of(
    setting: str,
    results: list[CellResult],
    labels: Labels,
    best: tuple[set[str], set[str]],
    seeds: bool,
    *,
    omitted: int,
) -> Table:
    """The table of one setting."""
    tasks = dict.fromkeys(labels.task[result.cell_id] for result in results)
    heads = (*HEADS[:1], Head(name="Seed"), *HEADS[1:]) if seeds else HEADS
    groups = tuple(
        (task, tuple(row(r, labels, best, seeds) for r in results if labels.task[r.cell_id] == task)) for task in tasks
    )
    return Table(caption=f"Results: {setting}", heads=heads, groups=groups, omitted=omitted)


def row(result: CellResult, labels: Labels, best: tuple[set[str], set[str]], seeds: bool) -> tuple[Value, ...]:
    """The row of one cell."""
    cell, rate = result.cell, result.throughput.tokens_per_s
    own = cell.is_baseline
    values = (
        marks.method(labels, result, counted=True),
        *((Value(str(cell.seed)),) if seeds else ()),
        Value(labels.budget(cell)),
        marks.prompts(result),
        shown(result.nfe, digits=1),
        Value(DASH) if own else shown(result.nfe_reduction, best=result.cell_id in best[0]),
        marks.doubted(shown(rate, digits=significant(rate.value)), result),
        Value(DASH) if own else throughput(result, best=result.cell_id in best[1]),
        shown(result.correct, 1, 100),
        marks.claim(result),
        identical(result),
    )
    return values


def throughput(result: CellResult, *, best: bool) -> Value:
    """The throughput ratio, marked where its timing failed a gate."""
    return marks.doubted(shown(result.throughput.ratio, best=best), result)


def identical(result: CellResult) -> Value:
    """How many generations are equal to draft-free, flagged when a promise is broken."""
    identity = result.identity
    if result.cell.is_baseline:
        return Value("reference")
    if not identity.n_checked:
        return Value("not checked", flag="warning")
    text = f"{identity.n_identical}/{identity.n_checked}"
    if result.claim_holds is None:
        return Value(f"not promised ({text})")
    return Value(f"{text} ✓", flag="good") if result.claim_holds else Value(f"{text} ✗", flag="alarm")
