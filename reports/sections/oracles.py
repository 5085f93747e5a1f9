"""What should be predicted: oracles that know part of the target's future, beside the drafters that have to guess it.

Oracles are bounds and no methods. Every drafter is shown as a share of the joint bound, and the position oracle is held
against the token oracle, both paired by prompt. The bound itself is checked: it follows from block lengths and budget.
"""

from collections.abc import Iterable
from dataclasses import replace

from reports import marks
from reports.contests import JOINT, Contest, contests, duel, forwards_ratio, verdict
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Chart, Group, Head, Lines, Part, Point, SectionInfo, Table, Value, notes_of
from reports.oracle_findings import bound_lines, duel_lines
from reports.phrases import UNCORRECTED
from reports.text import TIMES, count, interval, no_interval, number, percent
from sweeps.aggregate import CellResult
from sweeps.statistics import Estimate

MOST_SETTINGS = 8
MOST_ROWS = 300  # of a setting
HEADS = (
    Head(name="Method", number=False),
    Head(name="D", meaning="budget: draft states verified beside the root"),
    Head(name="Prompts"),
    Head(name="NFE", unit="forwards/prompt", meaning="target forwards, mean over prompts"),
    Head(name="NFE reduction", unit=TIMES, meaning="draft-free NFE over NFE, the same prompts"),
    Head(name="Share of the joint bound", unit="%", meaning="joint oracle's NFE over NFE, the same prompts and budget"),
)
DUEL_HEADS = (
    Head(name="Task", number=False),
    Head(name="D"),
    Head(name="Prompts", meaning="decoded with both oracles"),
    Head(name="Position oracle (bound)", unit=f"NFE reduction, {TIMES}"),
    Head(name="Token oracle (bound)", unit=f"NFE reduction, {TIMES}"),
    Head(name="Token over position", unit="NFE ratio", meaning="above 1: the position oracle needs fewer forwards"),
    Head(name="Needs fewer", number=False, meaning="beyond the interval"),
)
PAPER = (
    ("position", "GSM8K", "8", "5.4"),
    ("position", "GSM8K", "20", "7.2"),
    ("position", "MBPP", "8", "5.7"),
    ("position", "MBPP", "20", "8.2"),
    ("token", "its tasks", "20", "3.4 to 6.5"),
)
WINNER = {1: "position oracle", -1: "token oracle", 0: "neither, beyond doubt"}
LEAD = (
    "An oracle was told the target's real future, recorded draft-free for the same prompt, seed and temperature: its "
    "numbers are bounds, not methods. The position oracle drafts the true next positions with stale tokens and stops "
    "at the first wrong one; the token oracle goes by stale confidence and fills in the true tokens; the joint oracle "
    "knows both. A method's share of the joint bound is its NFE reduction over the joint oracle's at the same budget. "
    f"{UNCORRECTED} {marks.LEAD}"
)


def info(frames: Frames) -> SectionInfo | None:
    """A group a setting that has oracles, and the paper's figures; None without oracles."""
    labels = labels_of(frames.results)
    settings = [
        (setting, contests(results, labels))
        for setting, results in labels.by_setting(frames.results)
        if any(result.cell.drafter.oracle and result.n for result in results)
    ]
    if not settings:
        return None
    groups = [
        Group(title=setting, parts=parts(setting, own, frames, labels), folded=place >= 3)
        for place, (setting, own) in enumerate(settings[:MOST_SETTINGS])
    ]
    more = max(0, len(settings) - MOST_SETTINGS)
    return SectionInfo(
        key="oracles",
        title="Oracles: what should be predicted",
        lead=LEAD,
        findings=notes_of(groups),
        groups=(*groups, Group(title="The paper's figures, for SDAR-8B (arXiv 2610.22543)", parts=(paper(),))),
        cuts=(f"{count(more, 'more setting')}; their numbers are in report-data/cells.csv",) if more else (),
    )


def parts(setting: str, own: tuple[Contest, ...], frames: Frames, labels: Labels) -> tuple[Part, ...]:
    """Sentences, the duel, the picture and the table of one setting."""
    lines = [*duel_lines(own, frames), *bound_lines(own, frames)]
    made: list[Part] = [Lines(lines=tuple(lines))] if lines else []
    duels = tuple(row for contest in own if (row := duel_row(contest, frames)) is not None)
    if duels:
        made.append(Table(caption=f"Position against token: {setting}", heads=DUEL_HEADS, groups=(("", duels),)))
    points = tuple(point for contest in own for point in points_of(contest, frames, labels))
    if points:
        several = len({point.x for point in points}) > 1
        chart = Chart(
            title=f"Share of the joint bound: {setting}",
            x="budget D" if several else "method",
            y="% of the joint bound",
            points=points,
            shape="lines" if several else "dots",
            series=labels.methods,
            baseline=100.0,
            digits=1,
        )
        made.append(chart)
    return (*made, table(setting, own, frames, labels))


def table(setting: str, own: tuple[Contest, ...], frames: Frames, labels: Labels) -> Table:
    """Every drafter and oracle, by task and budget, the fewest forwards last."""
    groups, left = [], MOST_ROWS
    for task in dict.fromkeys(contest.task for contest in own):
        rows = []
        for contest in sorted((c for c in own if c.task == task), key=lambda c: c.budget):
            ranked = sorted(contest.results, key=lambda r: (r.nfe_reduction.value or 0, labels.method[r.cell_id]))
            rows += [row(result, contest, frames, labels) for result in ranked]
        if left > 0:
            groups.append((task, tuple(rows[:left])))
        left -= len(rows)
    caption = f"Drafters and bounds: {setting}"
    return Table(caption=caption, heads=HEADS, groups=tuple(groups), omitted=max(0, -left))


def row(result: CellResult, contest: Contest, frames: Frames, labels: Labels) -> tuple[Value, ...]:
    """One cell beside the joint bound."""
    part, joint = share(result, contest, frames), contest.oracle(JOINT)
    bound = [joint] if joint else []
    return (
        marks.method(labels, result, counted=True),
        Value(str(contest.budget)),
        marks.prompts(result),
        Value(number(result.nfe.value, 1), interval(result.nfe, 1)),
        Value(number(result.nfe_reduction.value), interval(result.nfe_reduction)),
        Value("100.0")
        if result is joint
        else Value(percent(part.value).removesuffix(" %") + marks.broken(*bound), interval(part, 1, 100)),
    )


def points_of(contest: Contest, frames: Frames, labels: Labels) -> Iterable[Point]:
    """The shares of a contest as marks; the joint oracle is the rule at 100 %."""
    for result in contest.results:
        part = share(result, contest, frames)
        joint = contest.oracle(JOINT)
        if part.value is not None and joint is not None and result is not joint:
            low, high = (None if end is None else 100 * end for end in (part.low, part.high))
            method = labels.method[result.cell_id]
            yield Point(
                facet=contest.task,
                series=method,
                x=contest.budget,
                y=100 * part.value,
                low=low,
                high=high,
                mark=marks.mark(result) if marks.is_broken(result) else marks.broken(joint) + marks.mark(result),
            )


def share(result: CellResult, contest: Contest, frames: Frames) -> Estimate:
    """The joint oracle's NFE over a cell's, paired; an interval ends at 1, which nothing can pass."""
    joint = contest.oracle(JOINT)
    estimate = forwards_ratio(frames, [(joint, result)] if joint else [])
    if estimate.value is None or estimate.value > 1 or estimate.high is None:
        return estimate
    return replace(estimate, high=min(estimate.high, 1.0))


def duel_row(contest: Contest, frames: Frames) -> tuple[Value, ...] | None:
    """Position against token oracle in one contest."""
    pairs = duel(contest)
    if not pairs:
        return None
    token, position = pairs[0]
    ratio = forwards_ratio(frames, pairs)
    return (
        Value(contest.task),
        Value(str(contest.budget)),
        Value(str(ratio.n)),
        *(Value(number(r.nfe_reduction.value) + marks.mark(r), interval(r.nfe_reduction)) for r in (position, token)),
        Value(number(ratio.value), interval(ratio)),
        Value(WINNER[verdict(ratio)] if ratio.has_interval else no_interval([ratio])),
    )


def paper() -> Table:
    """What the paper reports, to compare shapes with."""
    heads = (
        Head(name="Oracle", number=False),
        Head(name="Task", number=False),
        Head(name="D"),
        Head(name="NFE reduction", unit=TIMES),
    )
    rows = tuple(tuple(Value(text) for text in texts) for texts in PAPER)
    caption = "Oracles in the paper: fewer forwards than draft-free decoding"
    return Table(caption=caption, heads=heads, groups=(("", rows),))
