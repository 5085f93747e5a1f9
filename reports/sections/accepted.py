"""How many draft states a round's walk took: the distribution as a picture, its numbers as a table, tasks pooled."""

from collections import Counter, defaultdict

from reports import marks
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Chart, Group, Head, Part, Point, SectionInfo, Table, Value
from reports.text import count, interval, number, percent
from sweeps.aggregate import CellResult

MOST_SETTINGS = 6
MOST_ACCEPTED = 24
PLUS_ONE = {
    False: "tokens per forward are accepted states plus one.",
    True: "steps of the target per forward are accepted states plus one. A step is one token by the standard rule, one "
    "or more by the threshold rule.",
}

HEADS = (
    Head(name="Task", number=False),
    Head(name="Method", number=False),
    Head(name="D", meaning="budget"),
    Head(name="Accepted", unit="states/round", meaning="draft states on the walk, mean over rounds"),
    Head(name="Tokens per forward", meaning="generated tokens over forwards"),
    Head(name="Drafted", unit="states/round", meaning="draft states verified, mean over rounds"),
    Head(name="None accepted", unit="% of rounds"),
    Head(name="Most", unit="states", meaning="longest walk"),
    Head(name="Positions per token", meaning="token positions forwarded over generated tokens"),
)


def info(frames: Frames) -> SectionInfo | None:
    """A picture and a table a setting; None without drafts."""
    labels = labels_of(frames.results)
    drafting = [r for r in frames.results if not r.cell.is_baseline and r.accepted_histogram]
    settings = list(labels.by_setting(drafting))
    if not settings:
        return None
    groups = tuple(
        Group(title=setting, parts=parts(setting, results, labels), folded=place >= 2)
        for place, (setting, results) in enumerate(settings[:MOST_SETTINGS])
    )
    more = len(settings) - MOST_SETTINGS
    cuts = (f"{count(more, 'more setting')}; their means are in report-data/cells.csv",) if more > 0 else ()
    lead = (
        "A round is one target forward, and one more for each verdict that is made again. It commits the position "
        "known from the forward before and every draft state on the walk: where no verdict is made again, "
        f"{PLUS_ONE[any(result.cell.decode.commit == 'threshold' for result in drafting)]} {marks.LEAD}"
    )
    return SectionInfo(key="accepted", title="Accepted in a round", lead=lead, groups=groups, cuts=cuts)


def parts(setting: str, results: list[CellResult], labels: Labels) -> tuple[Part, ...]:
    """The picture of the distribution by budget, and the table of the means."""
    table = Table(
        caption=f"Accepted in a round: {setting}",
        heads=HEADS,
        groups=(("", tuple(row(result, labels) for result in results)),),
    )
    chart = Chart(
        title=f"Share of rounds by accepted draft states, tasks pooled: {setting}",
        x="accepted draft states",
        y="% of rounds",
        points=tuple(points(results, labels)),
        shape="lines",
        series=labels.methods,
        facet="budget",
        digits=1,
        zero=True,
    )
    return chart, table


def points(results: list[CellResult], labels: Labels) -> list[Point]:
    """Shares of rounds for each budget and method; walks longer than the picture's last place are pooled there."""
    pooled: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
    cells: dict[tuple[int, str], list[CellResult]] = defaultdict(list)
    for result in results:
        cells[result.cell.drafter.budget, labels.method[result.cell_id]].append(result)
    for key, own in cells.items():
        for result in marks.pooled(own):
            for accepted, rounds in enumerate(result.accepted_histogram):
                pooled[key][min(accepted, MOST_ACCEPTED)] += rounds
    made = []
    for (budget, method), rounds_by_accepted in sorted(pooled.items()):
        total = sum(rounds_by_accepted.values())
        made += [
            Point(
                facet=f"D = {budget}",
                series=method,
                x=accepted,
                y=100 * rounds_by_accepted[accepted] / total,
                mark=marks.mark(*cells[budget, method]),
            )
            for accepted in range(max(rounds_by_accepted) + 1)
        ]
    return made


def row(result: CellResult, labels: Labels) -> tuple[Value, ...]:
    """The means of one cell."""
    histogram = result.accepted_histogram
    accepted, tokens = result.accepted_per_round, result.tokens_per_forward
    return (
        Value(labels.task[result.cell_id]),
        marks.method(labels, result),
        Value(labels.budget(result.cell)),
        Value(number(accepted.value), interval(accepted)),
        Value(number(tokens.value), interval(tokens)),
        Value(number(result.drafted_per_round.value)),
        Value(percent(histogram[0] / sum(histogram)).removesuffix(" %")),
        Value(str(len(histogram) - 1)),
        Value(number(result.positions_per_token.value, 1)),
    )
