"""Rules of acceptance: what each gains in forwards and what it costs in agreement, as a picture with its Pareto front.

One mark a rule, tau, budget and temperature. Only `exact` keeps threshold decoding's output; every other rule is lossy
and drawn hollow.
"""

from collections.abc import Iterable, Iterator

from reports import marks
from reports.acceptance_entries import (
    Beside,
    Panel,
    Read,
    beside_exact,
    front,
    gain,
    identical,
    kept_tokens,
    panels,
    rest_of,
    rule_of,
)
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.ladder_groups import is_sound
from reports.model import Chart, Group, Head, Level, Lines, Part, Point, SectionInfo, Table, Value
from reports.phrases import UNCORRECTED, fewer
from reports.shown import points, shown
from reports.text import DASH, TIMES, count, interval, percent
from reports.winners import is_lossy
from sweeps.aggregate import CellResult
from sweeps.agreement import NO_OUTPUTS
from sweeps.statistics import clustered_share, ratio_of_sums

MOST_PANELS, MOST_ROWS = 9, 400
RULES = ("exact", "subset", "cut", "product")
MEASURES: tuple[tuple[str, str, Read], ...] = (
    ("Gain against identical outputs", "% identical outputs", identical),
    ("Gain against tokens in common (100 % less edit distance)", "% tokens in common", kept_tokens),
)
HEADS = (
    Head(name="Method", number=False),
    Head(name="Rule", number=False, meaning="which drafted steps are committed"),
    Head(name="Claim", number=False),
    Head(name="tau"),
    Head(name="D", meaning="budget: draft states verified beside the root"),
    Head(name="Prompts"),
    Head(name="Gain", unit=f"{TIMES}, forwards", meaning="threshold decoding's forwards over own, by the same tau"),
    Head(name="Identical", unit="%", meaning="kept outputs equal to threshold decoding's; Wilson interval"),
    Head(
        name="Front",
        number=False,
        meaning="no other is better in one of gain and identical outputs and at least as good in the other",
    ),
    Head(name="NFE", unit="forwards/prompt"),
    Head(name="First difference", unit="token", meaning="index, from 0; median over the prompts that differ"),
    Head(name="Edit distance", unit="%", meaning="of the longer output, mean over prompts"),
    Head(name="Correct", unit="%", meaning="right answers; Wilson interval"),
    Head(name="Less threshold", unit="points", meaning="right answers less threshold decoding's, paired; Tango"),
)
SAME_TAU = (
    "Gain is against threshold decoding by the same tau: marks of different taus are not to be read as speed against "
    "each other."
)
LEAD = (
    "Exact commits a drafted step that equals the target's own, subset one that is a part of it, cut what a drafted "
    "step shares with it (and the walk ends there), product any step whose tokens have a geometric mean confidence of "
    "tau. Gain is threshold decoding's forwards over own, agreement how many outputs equal threshold decoding's, both "
    "by the same tau and on the same prompts: what a lower tau itself changes is in neither. Hollow marks are lossy. "
    "Front (dashed): no other mark of the panel is better in one of gain and agreement and at least as good in the "
    "other; failed, incomplete and broken cells are not on it and beat nothing. With few prompts, marks near each "
    f"other are not told apart: the whiskers are 95 % intervals, drawn as far as the frame. {UNCORRECTED} {marks.LEAD}"
)


def info(frames: Frames) -> SectionInfo | None:
    """A group a setting; None where only `exact` was tried."""
    labels = labels_of(frames.results)
    found = panels(frames.results, labels)
    if not found:
        return None
    lines = tuple(line for setting, own in by_setting(found) for line in findings(setting, own, frames))
    pictures = tuple(
        chart for title, axis, read in MEASURES if (chart := picture(title, axis, read, found)) is not None
    )
    said: tuple[Part, ...] = (Lines(lines=lines),) if lines else ()
    more = len(found) - MOST_PANELS
    return SectionInfo(
        key="acceptance",
        title="Rules of acceptance",
        lead=LEAD,
        findings=tuple(text for level, text in lines if level == "note"),
        groups=(Group(title="", parts=(*said, *pictures, table(found, labels))),),
        cuts=(f"pictures of {count(more, 'more panel')}; their numbers are in the table",) if more > 0 else (),
    )


def by_setting(found: list[Panel]) -> Iterator[tuple[str, list[Panel]]]:
    """The panels of each setting."""
    for setting in dict.fromkeys(panel.setting for panel in found):
        yield setting, [panel for panel in found if panel.setting == setting]


def picture(title: str, axis: str, read: Read, found: list[Panel]) -> Chart | None:
    """Gain against one measure of agreement."""
    made = tuple(point for panel in found[:MOST_PANELS] for point in points_of(panel, read))
    if not made:
        return None
    return Chart(
        title=f"{title}. Hollow: lossy. Dashed: Pareto front. {SAME_TAU}",
        x=f"gain ({TIMES} fewer forwards)",
        y=axis,
        points=made,
        shape="scatter",
        series=tuple(
            dict.fromkeys(rule_of(result) for rule in RULES for panel in found for result in of_rule(panel, rule))
        ),
        facet="setting: task",
        of="Rule",
        baseline=1.0,
        digits=1,
        columns=max(len(own) for _, own in by_setting(found)),
        text="Cell",
    )


def of_rule(panel: Panel, rule: str) -> Iterator[CellResult]:
    """The entries of a rule."""
    yield from (result for result in panel.results if result.cell.drafter.acceptance == rule)


def points_of(panel: Panel, read: Read) -> Iterator[Point]:
    """The entries of a panel that have both numbers."""
    best = front(panel.results, read)
    for result in panel.results:
        x, y = gain(result), read(result)
        if x.value is not None and y.value is not None:
            low, high = (None if end is None else 100 * end for end in (y.low, y.high))
            yield Point(
                facet=panel.title,
                series=rule_of(result),
                x=x.value,
                y=100 * y.value,
                low=low,
                high=high,
                mark=marks.mark(result),
                text=rest_of(result, panel.results),
                open=is_lossy(result),
                front=result.cell_id in best,
                x_low=x.low,
                x_high=x.high,
            )


def findings(setting: str, own: list[Panel], frames: Frames) -> Iterator[tuple[Level, str]]:
    """Each rule beside `exact` on the same prompts, all taus, budgets and tasks of a setting together."""
    results = [result for panel in own for result in panel.results]
    if failed := [result for result in results if not is_sound(result)]:
        text = (
            f"{count(len(failed), 'cell')} of {len(results)} failed, incomplete or broken: on no front, in no sentence."
        )
        yield "warning", f"{setting}: {text}"
    for rule in RULES[1:]:
        if beside := beside_exact(rule, own, frames):
            claim = next(result.claim for result in results if result.cell.drafter.acceptance == rule)
            yield "note", f"{setting}: {rule} ({claim}) needs {against(beside)}."


def against(beside: list[Beside]) -> str:
    """Forwards, identical outputs and right answers of one rule beside `exact`; prompts are the sampling unit."""
    ratio = ratio_of_sums([one.forwards_exact for one in beside], [one.forwards for one in beside])
    same = clustered_share([one.identical for one in beside], [one.settings for one in beside])
    equal, pairs = sum(one.identical for one in beside), sum(one.settings for one in beside)
    text = f"{fewer(ratio, 'exact')}; {percent(same.value)} of outputs are identical ({equal:,} of {pairs:,}"
    units = ", prompts as units" if pairs > same.n else ", Wilson"
    text += f"; {interval(same, 1, 100)}{units})" if same.has_interval else ")"
    if scored := sum(one.scored for one in beside):
        right, exact = sum(one.correct for one in beside), sum(one.correct_exact for one in beside)
        text += f", {right:,} of {scored:,} answers are right where exact has {exact:,}"
    return text


def table(found: list[Panel], labels: Labels) -> Table:
    """Every cell, by panel, in the order of rule, tau and budget."""
    left, bodies = MOST_ROWS, []
    for panel in found:
        best = front(panel.results, identical)
        rows = [row(result, labels, best) for result in sorted(panel.results, key=place)]
        if left > 0:
            bodies.append((panel.title, tuple(rows[:left])))
        left -= len(rows)
    return Table(caption="Gain and agreement of every cell", heads=HEADS, groups=tuple(bodies), omitted=max(0, -left))


def place(result: CellResult) -> tuple[int, float, int]:
    """Where a cell stands in its panel."""
    return RULES.index(result.cell.drafter.acceptance), result.cell.decode.tau, result.cell.drafter.budget


def row(result: CellResult, labels: Labels, best: Iterable[str]) -> tuple[Value, ...]:
    """One cell."""
    own, cell = result.fidelity or NO_OUTPUTS, result.cell
    first = DASH if own.first_divergence is None else f"{own.first_divergence:g}"
    return (
        marks.method(labels, result, counted=True),
        Value(cell.drafter.acceptance),
        marks.claim(result),
        Value(f"{cell.decode.tau:g}"),
        Value(str(cell.drafter.budget)),
        marks.prompts(result),
        shown(gain(result)),
        Value("drawn anew") if cell.draws_anew else shown(own.identical, 1, 100),
        on_front(result, best),
        shown(result.nfe, 1),
        Value(first),
        shown(own.edit_distance, 1, 100),
        shown(result.correct, 1, 100),
        points(own.correct_difference),
    )


def on_front(result: CellResult, best: Iterable[str]) -> Value:
    """Whether a cell is on the front, or why it cannot be."""
    if not is_sound(result):
        return Value("failed or incomplete", flag="alarm")
    return Value("on the front") if result.cell_id in best else Value(DASH)
