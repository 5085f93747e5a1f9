"""What stale distributions foretell: tokens mostly, positions badly, and what the order model makes of it.

The shape of Figure 2 of arXiv 2610.22543: shares against the commit's index in its block, one commit ahead, and against
the look-ahead. The paper's own numbers stand beside ours under their name.
"""

from reports import marks
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Chart, Group, Head, Level, Lines, Part, Point, SectionInfo, Table, Value, notes_of
from reports.phrases import UNCORRECTED
from reports.shown import shown
from reports.text import count, interval, no_interval, number, percent, visible
from sweeps.order_study import OrderStudy, StudyShares
from sweeps.statistics import Estimate
from sweeps.study import TOPS

MOST_SETTINGS = 6
MOST_INDEX = 64
DRAWN, ARGMAX = "token: stale draw", "token: stale argmax"
MODEL, CONFIDENCE = "position: order model", "position: stale confidence"
SERIES = (ARGMAX, MODEL, CONFIDENCE, DRAWN)
PAPER = (
    "The paper (SDAR-8B, blocks of 32): the token is the stale argmax 92 % of the time at the first commit and over "
    "90 % after; the position is the one of highest stale confidence 22 % of the time overall and 3 % by block "
    "commit 9; its order model is right 75 % of the time."
)
LEAD = (
    "A stale distribution is the one that an earlier forward left. Look-ahead k asks it for the commit k steps later, "
    "the k true commits in between being filled in: is the token its argmax (above T = 0 also: its draw), is the "
    "position the one it is surest of, does the order model name that position? Everything is measured on draft-free "
    "trajectories. Commits that leave no choice, because one position is open, are in no share. Commits of one prompt "
    "depend on each other: intervals (95 %) take prompts as units, each counted once where they do not differ at all. "
    f"{UNCORRECTED}"
)
SHARE_HEADS = (
    Head(name="k", meaning="look-ahead: commits between the stale state and the one asked for"),
    Head(name="Prompts"),
    Head(name="Commits", meaning="asked for: those with at least two open positions"),
    Head(name="Token is argmax", unit="%"),
    Head(
        name="Token is draw",
        unit="%",
        meaning="the stale draw (with coupled noise the shared one); at T = 0 the argmax",
    ),
    Head(name="Surest position", unit="%", meaning="the most confident stale position that is still open is next"),
    Head(name="Order model", unit="%", meaning="the order model's first choice is next"),
    Head(name="Errors left", unit="ratio", meaning="wrong positions, order model over stale confidence, paired"),
)
TOP_HEADS = (
    Head(name="k"),
    Head(name="Commits"),
    *(Head(name=f"Top {top}", unit="%", meaning=f"the token is among the stale top {top}") for top in TOPS),
)


def info(frames: Frames) -> SectionInfo | None:
    """Findings, two pictures and two tables a setting; None without a study."""
    if not frames.studies:
        return None
    labels = labels_of(frames.results)
    settings: dict[str, list[OrderStudy]] = {}
    for study in frames.studies:
        settings.setdefault(labels.setting[base_id(study)], []).append(study)
    groups = [
        Group(title=setting, parts=parts(setting, studies, labels), folded=place >= 2)
        for place, (setting, studies) in enumerate(list(settings.items())[:MOST_SETTINGS])
    ]
    more = len(settings) - MOST_SETTINGS
    cuts = [f"{count(more, 'more setting')}; their shares are in report-data/order_study.csv"] if more > 0 else []
    if any((shares.index or 0) > MOST_INDEX for study in frames.studies for shares in study.by_index(1)):
        cuts.append(f"pictures end at commit index {MOST_INDEX}")
    cuts.append("every look-ahead at every commit index: report-data/order_study.csv")
    return SectionInfo(
        key="order-study",
        title="What stale distributions foretell",
        lead=LEAD,
        findings=notes_of(groups),
        groups=(*groups, Group(title="For comparison", parts=(Lines(lines=(("note", PAPER),)),))),
        cuts=tuple(cuts),
    )


def base_id(study: OrderStudy) -> str:
    """Id of the draft-free cell that was looked back on: it has the setting's and the task's names."""
    return study.cell.baseline().cell_id


def parts(setting: str, studies: list[OrderStudy], labels: Labels) -> tuple[Part, ...]:
    """Everything of one setting; pictures and tables only where something was studied."""
    names = dict(zip([study.cell_id for study in studies], names_of(studies, labels), strict=True))
    said = Lines(lines=tuple(line for study in studies for line in findings(study, names[study.cell_id])))
    done = [study for study in studies if study.shares]
    if not done:
        return (said,)
    pictures = (
        picture(f"One commit ahead: {setting}", "commit index in its block", by_index(done, names)),
        picture(f"All commits, by look-ahead: {setting}", "look-ahead k", by_look_ahead(done, names)),
    )
    tables = (
        Table(
            caption=f"Shares by look-ahead: {setting}",
            heads=SHARE_HEADS,
            groups=tuple((marked(s, names[s.cell_id]), tuple(share_row(shares) for shares in s.ahead())) for s in done),
        ),
        Table(
            caption=f"Token among the stale top t: {setting}",
            heads=TOP_HEADS,
            groups=tuple((marked(s, names[s.cell_id]), tuple(top_row(shares) for shares in s.ahead())) for s in done),
        ),
    )
    return (said, *(chart for chart in pictures if chart.points), *tables)


def names_of(studies: list[OrderStudy], labels: Labels) -> list[str]:
    """The task of each study, with its order model where one task was studied with several."""
    tasks = [labels.task[base_id(study)] for study in studies]
    return [
        f"{task}, model {study.cell.drafter.digest[:8]}" if tasks.count(task) > 1 else task
        for task, study in zip(tasks, studies, strict=True)
    ]


def marked(study: OrderStudy, name: str) -> str:
    """The name of a study with the marks of its cell."""
    few = f" ({study.n}{marks.OF}{study.n_expected})" if study.n != study.n_expected else ""
    return f"{name}{f' {marks.BROKEN}' if study.alarms else ''}{few}"


def findings(study: OrderStudy, name: str) -> list[tuple[Level, str]]:
    """What was found one commit ahead, and what is missing."""
    lines: list[tuple[Level, str]] = [("alarm", f"{name}: {visible(alarm.message)}.") for alarm in study.alarms]
    if study.n_failed:
        lines.append(("alarm", f"{name}: {count(study.n_failed, 'prompt')} failed; no share counts them."))
    if study.n_missing:
        missing = f"{count(study.n_missing, 'prompt')} of {study.n_expected:,}"
        lines.append(("warning", f"{name}: {missing} not studied yet."))
    first = study.at(1)
    if first is not None:
        lines.append(("note", f"{name}: {sentence(study, first)}"))
    return lines


def sentence(study: OrderStudy, first: StudyShares) -> str:
    """The finding in words: how much is foretold, by what, on how much evidence."""
    drawn = f", its draw in {said(first.drawn)}," if study.cell.decode.temperature > 0 else ""
    text = (
        f"one commit ahead the token is the stale argmax in {said(first.argmax)}{drawn} of {first.asked:,} commits of "
        f"{count(first.by_model.n, 'prompt')}. The next position is the one of highest stale confidence in "
        f"{said(first.by_confidence)}, and the order model names it in {said(first.by_model)}"
    )
    ratio = first.error_ratio
    if ratio is not None and ratio.value is not None:
        span = f" ({interval(ratio)})" if interval(ratio) else ""
        text += f", with {number(ratio.value)}{span} times as many errors{verdict(ratio)}"
    far = study.ahead()[-1]
    if far is not first:
        there = (percent(estimate.value) for estimate in (far.argmax, far.by_confidence, far.by_model))
        text += ". At look-ahead {} these are {}, {} and {}".format(far.look_ahead, *there)
    return text + "."


def verdict(ratio: Estimate) -> str:
    """What a ratio of errors does not show, where its interval says so or where it has none."""
    if not ratio.has_interval:
        return f": {no_interval([ratio])}, so nothing can be said"
    if ratio.above():
        return ": the model is worse"
    return "" if ratio.below() else ": no difference is shown"


def said(estimate: Estimate) -> str:
    """A share with its interval."""
    span = interval(estimate, 1, 100)
    return f"{percent(estimate.value)} ({span})" if span else percent(estimate.value)


def picture(title: str, x: str, points: tuple[Point, ...]) -> Chart:
    """Shares as lines with their intervals, a panel a task."""
    return Chart(
        title=title, x=x, y="% right", points=points, shape="bands", series=SERIES, digits=1, zero=True, of="Foretold"
    )


def by_index(studies: list[OrderStudy], names: dict[str, str]) -> tuple[Point, ...]:
    """One commit ahead, at each commit index."""
    return tuple(
        point
        for study in studies
        for shares in study.by_index(1)
        if shares.index is not None and shares.index <= MOST_INDEX
        for point in points(study, names, shares, shares.index)
    )


def by_look_ahead(studies: list[OrderStudy], names: dict[str, str]) -> tuple[Point, ...]:
    """All commit indexes together, at each look-ahead."""
    return tuple(
        point
        for study in studies
        for shares in study.ahead()
        for point in points(study, names, shares, shares.look_ahead)
    )


def points(study: OrderStudy, names: dict[str, str], shares: StudyShares, x: int) -> list[Point]:
    """The marks at one place; at T = 0 the draw is the argmax and not drawn twice."""
    estimates = {ARGMAX: shares.argmax, MODEL: shares.by_model, CONFIDENCE: shares.by_confidence}
    if study.cell.decode.temperature > 0:
        estimates[DRAWN] = shares.drawn
    return [
        Point(
            facet=names[study.cell_id],
            series=series,
            x=x,
            y=100 * estimate.value,
            low=None if estimate.low is None else 100 * estimate.low,
            high=None if estimate.high is None else 100 * estimate.high,
            mark=marked(study, ""),
        )
        for series, estimate in estimates.items()
        if estimate.value is not None
    ]


def share_row(shares: StudyShares) -> tuple[Value, ...]:
    """One look-ahead: all shares."""
    ratio = shares.error_ratio
    return (
        Value(str(shares.look_ahead)),
        Value(f"{shares.by_model.n:,}"),
        Value(f"{shares.asked:,}"),
        *(shown(estimate, 1, 100) for estimate in (shares.argmax, shares.drawn, shares.by_confidence, shares.by_model)),
        Value(number(ratio.value), interval(ratio)) if ratio is not None else Value(number(None)),
    )


def top_row(shares: StudyShares) -> tuple[Value, ...]:
    """One look-ahead: the token among ever more candidates."""
    texts = str(shares.look_ahead), f"{shares.asked:,}"
    return (*map(Value, texts), *(shown(estimate, 1, 100) for estimate in shares.in_top))
