"""Temperature and noise: forwards, stale draws and quality against T, coupled noise beside independent noise.

Shown when a run has several temperatures above 0 or both noise modes. Cells are grouped by what they share apart from
temperature and noise; at T = 0 nothing is drawn, so the greedy cells stand in every group and under both modes.
"""

from dataclasses import replace

from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Chart, Group, Head, Part, Point, SectionInfo, Table, Value
from reports.noise_modes import Pair, pairs
from reports.temperature_findings import findings
from reports.text import count, interval, number
from sweeps.aggregate import CellResult
from sweeps.draws import bound_holds_for
from sweeps.statistics import Estimate

MOST_STUDIES = 4
MOST_ROWS = 400
DRAFT_FREE, BOUND, ARGMAX, CORRECT = "draft-free", "bound for coupled", "draws equal to the argmax", "correct"
SERIES = (DRAFT_FREE, "coupled", "independent", BOUND, ARGMAX, CORRECT)

HEADS = (
    Head(name="Method", number=False),
    Head(name="D", meaning="budget: draft states verified beside the root"),
    Head(name="Noise", number=False),
    Head(name="T", meaning="temperature"),
    Head(name="Prompts", meaning="decoded prompts"),
    Head(name="NFE", unit="forwards/prompt", meaning="target forwards, mean over prompts"),
    Head(name="Accepted", unit="states/round", meaning="draft states on the walk, mean over rounds"),
    Head(name="Stale d", meaning="total variation between stale and fresh tempered distribution, mean over commits"),
    Head(
        name="Agreement", unit="%", meaning="commits whose token is the drafter's own draw from the stale distribution"
    ),
    Head(name="Bound", unit="%", meaning="mean of (1-d)/(1+d): under coupled noise agreement is at least this"),
    Head(name="Argmax", unit="% of draws", meaning="tokens that are the noise-free best of the fresh distribution"),
    Head(name="Correct", unit="%", meaning="right answers; Wilson interval"),
    Head(name="Claim", number=False, meaning="what the output may claim to be"),
)

COMPARISON = (
    Head(name="Method", number=False),
    Head(name="D"),
    Head(name="T"),
    Head(name="Prompts", meaning="decoded in both modes"),
    Head(name="Forwards a token", unit="independent / coupled", meaning="prompts resampled for both modes together"),
    Head(name="Independent needs", number=False, meaning="more or fewer: the 95 % interval excludes 1"),
)

LEAD = (
    "Coupled: drafter and target draw with one table of noise. Independent: the target draws afresh at every forward. "
    "Both sample the target's own distribution; coupled output also equals the draft-free one token for token, "
    "independent output does not. Agreement asks, commit by commit, whether the drafter's stale draw at the committed "
    "position was the token. For coupled noise the paper bounds it from below by (1-d)/(1+d), d being the total "
    "variation between stale and fresh distribution there. Draft-free, the stale distribution is one commit old; with "
    "drafts it is as old as the walk has come in its round, so d of different methods is not of one age. The bound is "
    "for positions chosen without looking at the noise (confidence top1), and for trees that do not weigh drawn "
    "scores; SPOT's do, so there it is a close guide."
)


def info(frames: Frames) -> SectionInfo | None:
    """Findings, pictures and a table for each group of cells; None where temperature and noise do not vary."""
    measured = [result for result in frames.results if result.n]
    labels = labels_of(frames.results)
    studies = [(title, own) for title, own in studies_of(measured, labels).items() if varies(own)]
    if not studies:
        return None
    groups = tuple(
        Group(title=title, parts=parts(title, own, frames, labels), folded=place > 0)
        for place, (title, own) in enumerate(studies[:MOST_STUDIES])
    )
    more = len(studies) - MOST_STUDIES
    cuts = (f"{count(more, 'more group')} of cells; their numbers are in report-data/cells.csv",) if more > 0 else ()
    return SectionInfo(key="temperature", title="Temperature and noise", lead=LEAD, groups=groups, cuts=cuts)


def varies(results: list[CellResult]) -> bool:
    """Whether there are several temperatures above 0, or both noise modes."""
    sampled = {(r.cell.decode.temperature, r.cell.decode.noise) for r in results if r.cell.decode.temperature > 0}
    return len({temperature for temperature, _ in sampled}) > 1 or len({noise for _, noise in sampled}) > 1


def studies_of(results: list[CellResult], labels: Labels) -> dict[str, list[CellResult]]:
    """Results by what they share apart from temperature and noise; the greedy ones join each group they fit."""
    names = {result.cell_id: apart_from_noise(result, labels) for result in results}
    greedy = [result for result in results if result.cell.decode.temperature == 0]
    sampled = [result for result in results if result.cell.decode.temperature > 0]
    seeds = len({result.cell.seed for result in sampled}) > 1
    confidences = len({result.cell.decode.confidence for result in sampled}) > 1
    studies: dict[str, list[CellResult]] = {}
    for result in sampled:
        name = names[result.cell_id]
        title = name + (f", confidence {result.cell.decode.confidence}" if confidences else "")
        title += f", seed {result.cell.seed}" if seeds else ""
        fitting = [other for other in greedy if names[other.cell_id] == name]
        studies.setdefault(title, fitting).append(result)
    return studies


def apart_from_noise(result: CellResult, labels: Labels) -> str:
    """The name of a cell's setting without its temperature, noise and confidence."""
    hidden = ("T = ", "noise ", "confidence ")
    return ", ".join(fact for fact in labels.setting[result.cell_id].split(", ") if not fact.startswith(hidden))


def parts(title: str, results: list[CellResult], frames: Frames, labels: Labels) -> tuple[Part, ...]:
    """Findings, pictures and the table of one group."""
    ordered = sorted(results, key=lambda r: (r.cell.decode.noise, r.cell.decode.temperature))
    budgets = len({r.cell.drafter.budget for r in results if not r.cell.is_baseline}) > 1
    made = (
        chart(f"Forwards a prompt (NFE): {title}", "NFE", nfe_points(ordered, labels, budgets), digits=1),
        chart(f"Stale draw equals the token: {title}", "% of commits", agreement_points(ordered, labels, budgets)),
        chart(f"Quality, draft-free: {title}", "%", quality_points(ordered, labels)),
    )
    compared = list(pairs(ordered, frames.rows))
    tables = (*((comparison(title, compared, labels),) if compared else ()), table(title, ordered, labels))
    return (findings(results, compared, labels), *(one for one in made if one.points), *tables)


def chart(title: str, y: str, points: tuple[Point, ...], digits: int = 1) -> Chart:
    """A picture over temperature."""
    series = tuple(name for name in SERIES if any(point.series == name for point in points))
    return Chart(
        title=title, x="temperature", y=y, points=points, shape="lines", series=series, digits=digits, zero=True
    )


def nfe_points(results: list[CellResult], labels: Labels, budgets: bool) -> tuple[Point, ...]:
    """One panel a task and method: draft-free, coupled, independent."""
    points: list[Point] = []
    for result in results:
        if not result.cell.is_baseline:
            facet = panel(result, labels, budgets)
            for noise in modes(result):
                points += point(facet, noise, result, result.nfe)
    free = {(labels.task[r.cell_id], *at(r)): r for r in reversed(results) if r.cell.is_baseline}
    for facet, task in {panel(r, labels, budgets): labels.task[r.cell_id] for r in results}.items():
        if any(known.facet == facet for known in points):
            seen: set[float] = set()
            for (of_task, temperature, _), result in sorted(free.items(), key=lambda item: item[0]):
                if of_task == task and temperature not in seen:
                    seen.add(temperature)
                    points += point(facet, DRAFT_FREE, result, result.nfe)
    return tuple(sorted(points, key=lambda p: (p.facet, SERIES.index(p.series), p.x)))


def agreement_points(results: list[CellResult], labels: Labels, budgets: bool) -> tuple[Point, ...]:
    """One panel a task and method: agreement of both modes, and the bound where the paper gives one."""
    points: list[Point] = []
    for result in results:
        facet = panel(result, labels, budgets)
        for noise in modes(result):
            points += point(facet, noise, result, result.draws.agreement, 100)
        if bound_holds_for(result.cell.decode):
            points += point(facet, BOUND, result, result.draws.bound, 100)
    return tuple(sorted(points, key=lambda p: (p.facet, SERIES.index(p.series), p.x)))


def quality_points(results: list[CellResult], labels: Labels) -> tuple[Point, ...]:
    """One panel a task: how often the argmax is drawn and how often the answer is right, of the draft-free cells."""
    points: dict[tuple[str, str, float], Point] = {}
    for result in results:  # coupled ones come first; both modes sample one distribution
        if result.cell.is_baseline:
            for series, estimate in ((ARGMAX, result.draws.argmax), (CORRECT, result.correct)):
                for made in point(labels.task[result.cell_id], series, result, estimate, 100):
                    points.setdefault((made.facet, made.series, made.x), made)
    return tuple(sorted(points.values(), key=lambda p: (p.facet, SERIES.index(p.series), p.x)))


def panel(result: CellResult, labels: Labels, budgets: bool) -> str:
    """The name of a panel: task, method, and the budget where there are several."""
    budget = f", D = {labels.budget(result.cell)}" if budgets and not result.cell.is_baseline else ""
    return f"{labels.task[result.cell_id]}: {labels.method[result.cell_id]}{budget}"


def at(result: CellResult) -> tuple[float, str]:
    """Temperature and noise."""
    return result.cell.decode.temperature, result.cell.decode.noise


def modes(result: CellResult) -> tuple[str, ...]:
    """The noise modes that a cell stands for: both where nothing is drawn."""
    return ("coupled", "independent") if result.cell.decode.temperature == 0 else (result.cell.decode.noise,)


def point(facet: str, series: str, result: CellResult, estimate: Estimate, scale: float = 1.0) -> list[Point]:
    """The mark of one cell, where it has a value."""
    if estimate.value is None:
        return []
    low, high = (None if end is None else scale * end for end in (estimate.low, estimate.high))
    y = scale * estimate.value
    return [Point(facet=facet, series=series, x=result.cell.decode.temperature, y=y, low=low, high=high)]


def comparison(title: str, compared: list[Pair], labels: Labels) -> Table:
    """Independent over coupled noise, pair by pair."""
    by_task: dict[str, list[tuple[Value, ...]]] = {}
    for pair in compared:
        cell_id, cell = pair.coupled.cell_id, pair.coupled.cell
        word = "more" if pair.more else "fewer" if pair.fewer else "the same, within the interval"
        texts = (labels.method[cell_id], labels.budget(cell), f"{pair.temperature:g}", str(pair.ratio.n))
        values = (*(Value(text) for text in texts), shown(pair.ratio, 3), Value(word))
        by_task.setdefault(labels.task[cell_id], []).append(values)
    groups = tuple((task, tuple(rows)) for task, rows in by_task.items())
    return Table(caption=f"Independent over coupled noise: {title}", heads=COMPARISON, groups=groups)


def table(title: str, results: list[CellResult], labels: Labels) -> Table:
    """Every number of a group, by task."""
    tasks = list(dict.fromkeys(labels.task[result.cell_id] for result in results))
    ranked = sorted(results, key=lambda r: (labels.method[r.cell_id], r.cell.drafter.budget, *reversed(at(r))))
    ranked.sort(key=lambda r: not r.cell.is_baseline)
    shown, groups = 0, []
    for task in tasks:
        rows = [row(r, labels) for r in ranked if labels.task[r.cell_id] == task][: MOST_ROWS - shown]
        shown += len(rows)
        if rows:
            groups.append((task, tuple(rows)))
    caption = f"Temperature and noise: {title}"
    return Table(caption=caption, heads=HEADS, groups=tuple(groups), omitted=len(results) - shown)


def row(result: CellResult, labels: Labels) -> tuple[Value, ...]:
    """The numbers of one cell."""
    cell, draws = result.cell, result.draws
    flagged = draws.below_bound and bound_holds_for(cell.decode)
    agreement = shown(draws.agreement, 1, 100)
    return (
        Value(labels.method[result.cell_id]),
        Value(labels.budget(cell)),
        Value(cell.decode.noise if cell.decode.temperature > 0 else "none drawn"),
        Value(f"{cell.decode.temperature:g}"),
        Value(str(result.n)),
        shown(result.nfe, 1),
        shown(result.accepted_per_round, 2),
        shown(draws.distance, 3),
        replace(agreement, text=f"{agreement.text} < bound", flag="warning") if flagged else agreement,
        shown(draws.bound, 1, 100),
        shown(draws.argmax, 1, 100),
        shown(result.correct, 1, 100),
        Value(result.claim),
    )


def shown(estimate: Estimate, digits: int, scale: float = 1.0) -> Value:
    """An estimate with its interval."""
    value = None if estimate.value is None else scale * estimate.value
    return Value(number(value, digits), interval(estimate, digits, scale))
