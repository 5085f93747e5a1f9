"""Transfer: drafters made on one target and used on another without retraining, for every source and target of a run.

The order model sees probabilities and no token ids, so that it runs on any vocabulary. Each transferred drafter is held
against the native one of its kind, and against the best baselines on that target; all ratios are paired by prompt.
"""

from reports import marks
from reports.frames import Frames
from reports.model import Chart, Group, Head, Lines, Part, Point, SectionInfo, Table, Value, notes_of
from reports.phrases import UNCORRECTED
from reports.text import DASH, count
from reports.transfer_findings import findings, identity_line
from reports.transfer_lines import loss, versus
from reports.transfer_tables import losses, pairs, pairs_by_task, reductions, scaled
from reports.transfers import Condition, conditions

MOST_CONDITIONS = 8
OPEN_CONDITIONS = 3
PAPER = (
    ("SDAR-8B", "LLaDA2.0-mini", "loses 3 to 11 % NFE", DASH),
    ("SDAR-8B", "LLaDA-8B", "55 to 88 forwards for 256 tokens", "256"),
    ("SDAR-8B", "Dream-7B", "51 to 80 forwards for 256 tokens", "256"),
)
LEAD = (
    "A drafter is native to each target whose weights its order model or draft graph says it was made on (another "
    "dtype or cache of the same weights is the same target), and transferred to all others, without being trained "
    "again. Loss is the share of the native drafter's NFE reduction that is gone, 1 \u2212 native NFE over own NFE on "
    "the same prompts: 0 is no loss; below 0 the transferred drafter needs fewer forwards. Of several native drafters "
    "of a kind the one with the fewest forwards counts (a broken one only where there is no other). Ahead, behind or "
    "open is said by the 95 % interval of the best baseline's NFE over the drafter's. Baselines are drafters of other "
    "kinds: those that need no training, and beside them those made on the target itself. Seeds of one prompt count as "
    "one prompt, with their mean. "
    f"{UNCORRECTED} {marks.LEAD}"
)


def info(frames: Frames) -> SectionInfo | None:
    """A group a temperature and budget, and the paper's figures; None where no drafter was made on another target."""
    found = conditions(frames)
    if not found:
        return None
    shown = found[:MOST_CONDITIONS]
    groups = [
        Group(title=one.title, parts=parts(one, frames), folded=place >= OPEN_CONDITIONS)
        for place, one in enumerate(shown)
    ]
    tasks = [
        Group(title=f"By task: {one.title}", parts=(pairs_by_task(one, frames),), folded=True)
        for one in shown
        if len(one.tasks) > 1
    ]
    last = Group(title="The paper's figures (arXiv 2610.22543), for its setting", parts=(paper(),))
    more = max(0, len(found) - MOST_CONDITIONS)
    return SectionInfo(
        key="transfer",
        title="Transfer: drafters made on another target",
        lead=LEAD,
        findings=notes_of(groups),
        groups=(*groups, *tasks, last),
        cuts=(f"{count(more, 'more setting')}; their numbers are in report-data/cells.csv",) if more else (),
    )


def parts(condition: Condition, frames: Frames) -> tuple[Part, ...]:
    """Sentences, both matrices, the picture of the losses, and every pair."""
    made: list[Part] = [Lines(lines=(*findings(condition, frames), identity_line(condition)))]
    made += [reductions(condition, frames), losses(condition, frames)]
    if points := tuple(points_of(condition, frames)):
        chart = Chart(
            title=f"Loss against the native drafter: {condition.title}",
            x="drafter",
            y="% of the native NFE reduction",
            points=points,
            shape="dots",
            series=tuple(dict.fromkeys(condition.names[source] for source in condition.sources)),
            facet="target",
            baseline=0.0,
            digits=1,
            of="Drafter",
        )
        made.append(chart)
    made.append(pairs(condition, frames))
    return tuple(made)


def points_of(condition: Condition, frames: Frames) -> list[Point]:
    """The losses of a condition as marks."""
    found = []
    for line in condition.transferred():
        native = condition.native(line)
        estimate = scaled(loss(versus(frames, line, native)))
        if native is not None and estimate.value is not None:
            point = Point(
                facet=line.target,
                series=condition.names[line.drafter, line.digest],
                x=0.0,
                y=estimate.value,
                low=estimate.low,
                high=estimate.high,
                mark=marks.mark(*line.results, *native.results),
            )
            found.append(point)
    return found


def paper() -> Table:
    """What the paper reports, to compare shapes with."""
    heads = (
        Head(name="Drafter made on", number=False),
        Head(name="Used on", number=False),
        Head(name="Reported", number=False),
        Head(name="Draft-free", unit="forwards"),
    )
    rows = tuple(tuple(Value(text) for text in texts) for texts in PAPER)
    return Table(caption="Transfer in the paper", heads=heads, groups=(("", rows),))
