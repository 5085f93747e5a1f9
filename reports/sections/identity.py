"""Every claim of identity, checked: how many generations equal draft-free ones, and each one that does not."""

from reports import marks
from reports.frames import Frames
from reports.labels import Labels
from reports.model import Group, Head, Part, SectionInfo, Table, Value
from reports.text import DASH, count, number, percent, visible
from reports.uncached import all_labels
from sweeps.aggregate import CellResult
from sweeps.identity import NEAR_TIE, Mismatch

MOST_ROWS = 200

HEADS = (
    Head(name="Setting", number=False),
    Head(name="Task", number=False),
    Head(name="Method", number=False),
    Head(name="D"),
    Head(name="Prompt", number=False),
    Head(name="First differing commit", meaning="counted from 0, in commit order"),
    Head(name="First differing token", meaning="index in the output"),
    Head(name="Margin there", unit="log-odds", meaning="the greater of both runs' margins; none: there was no rival"),
    Head(name="Class", number=False),
)

RATES = (
    Head(name="Setting", number=False),
    Head(name="Type", number=False, meaning="number type of the target"),
    Head(name="Task", number=False),
    Head(name="Method", number=False),
    Head(name="D"),
    Head(name="Compared", unit="prompts"),
    Head(name="Identical", unit="prompts"),
    Head(name="Identical", unit="%"),
    Head(name="Near-ties", unit="prompts"),
    Head(name="BUGs", unit="prompts"),
    Head(name="Largest margin", unit="log-odds", meaning="of the first differing commits"),
    Head(name="Made again", unit="verdicts/prompt", meaning="forwards of single states that verify_margin asked for"),
)


def info(frames: Frames) -> SectionInfo:
    """Mismatches, BUGs first, and alarms of contradicting counts."""
    labels = all_labels(frames)
    promised = [result for result in frames.results if result.claim_holds is not None]
    pairs = [(result, mismatch) for result in promised for mismatch in result.identity.mismatches]
    pairs.sort(key=lambda pair: pair[1].verdict != "BUG")
    alarms = [(result, alarm) for result in (*frames.results, *frames.references) for alarm in result.alarms]
    parts: list[Part] = []
    if promised:
        worst = sorted(promised, key=lambda result: (-result.identity.bugs, -result.identity.near_ties))
        rates = tuple(rate(result, labels) for result in worst[:MOST_ROWS])
        omitted = max(0, len(promised) - MOST_ROWS)
        parts.append(Table(caption="Match rate by cell", heads=RATES, groups=(("", rates),), omitted=omitted))
    if pairs:
        rows = tuple(row(result, mismatch, labels) for result, mismatch in pairs[:MOST_ROWS])
        omitted = max(0, len(pairs) - MOST_ROWS)
        parts.append(Table(caption="Mismatches", heads=HEADS, groups=(("", rows),), omitted=omitted))
    if alarms:
        heads = tuple(Head(name=name, number=False) for name in ("Cell", "Task", "Method", "Alarm", "What"))
        rows = tuple(
            (
                Value(result.cell_id),
                Value(labels.task[result.cell_id]),
                marks.method(labels, result),
                Value(alarm.kind, flag="alarm"),
                Value(visible(alarm.message)),
            )
            for result, alarm in alarms[:MOST_ROWS]
        )
        omitted = max(0, len(alarms) - MOST_ROWS)
        parts.append(Table(caption="Contradicting counts", heads=heads, groups=(("", rows),), omitted=omitted))
    compared = sum(result.identity.n_checked for result in promised)
    limits = ", ".join(f"{dtype} {limit:g}" for dtype, limit in NEAR_TIE.items())
    lead = (
        f"{count(compared, 'generation')} of {count(len(promised), 'cell')} that promise identity were compared with "
        f"draft-free ones token by token; {count(len(pairs), 'differs', 'differ')}. A near-tie has a margin that "
        f"rounding in a batch of another shape can flip (log-odds up to: {limits}; below T = 1 that over T, as the "
        f"scores are); anything else is a BUG. {marks.LEAD}"
    )
    groups = (Group(title="", parts=tuple(parts)),) if parts else ()
    cuts = ("all mismatches are in report-data/prompts.csv (column verdict)",) if len(pairs) > MOST_ROWS else ()
    return SectionInfo(key="identity", title="Identity, checked", lead=lead, groups=groups, cuts=cuts)


def rate(result: CellResult, labels: Labels) -> tuple[Value, ...]:
    """How one cell's promise was kept."""
    identity, cell_id = result.identity, result.cell_id
    margins = [mismatch.margin for mismatch in identity.mismatches if mismatch.margin is not None]
    return (
        Value(labels.setting[cell_id]),
        Value(result.cell.target.dtype),
        Value(labels.task[cell_id]),
        marks.method(labels, result),
        Value(labels.budget(result.cell)),
        Value(str(identity.n_checked)),
        Value(str(identity.n_identical)),
        Value(percent(identity.share).removesuffix(" %")),
        Value(str(identity.near_ties), flag="warning" if identity.near_ties else ""),
        Value(str(identity.bugs), flag="alarm" if identity.bugs else ""),
        Value(margin(max(margins)) if margins else DASH),
        Value(number(result.recomputes / result.n) if result.n else DASH),
    )


def row(result: CellResult, mismatch: Mismatch, labels: Labels) -> tuple[Value, ...]:
    """One mismatch."""
    cell_id = result.cell_id
    return (
        Value(labels.setting[cell_id]),
        Value(labels.task[cell_id]),
        marks.method(labels, result),
        Value(labels.budget(result.cell)),
        Value(visible(mismatch.prompt_id, 60)),
        Value(str(mismatch.step)),
        Value(str(mismatch.index)),
        Value(DASH if mismatch.margin is None else margin(mismatch.margin)),
        Value(mismatch.verdict or DASH, flag="alarm" if mismatch.verdict == "BUG" else "warning"),
    )


def margin(value: float) -> str:
    """A margin: small ones in powers of ten."""
    return f"{value:.1e}" if 0 < value < 0.01 else number(value, 2)
