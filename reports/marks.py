"""The marks of a cell, the same wherever its method is named: in tables, in LaTeX and under charts.

✗: a promise of identity was broken, or counts contradict each other. †: the timing failed a gate. `14 of 16`: fewer
prompts have a number than were asked for. A number of such a cell is never shown as if it were sound.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from reports.labels import Labels
from reports.model import Chart, Point, Value
from reports.text import count
from reports.uncached import beside
from sweeps.aggregate import CellResult

BROKEN, GATE, OF = "\u2717", "\u2020", " of "
MOST_NAMED = 6
MEANINGS = (
    (BROKEN, "a claim of identity did not hold, or counts contradict each other"),
    (GATE, "the timing failed a gate"),
    (OF, "fewer prompts have a number than were asked for"),
)
LEAD = f"{BROKEN}: {MEANINGS[0][1]}."


def is_broken(result: CellResult) -> bool:
    """Whether a cell failed a check, so that none of its numbers can be relied on."""
    return result.claim_holds is False or bool(result.alarms)


def are_sound(*results: CellResult) -> bool:
    """Whether none of these cells is broken, so that a sentence or a mean may count what rests on them."""
    return not any(map(is_broken, results))


def pooled(results: Sequence[CellResult]) -> list[CellResult]:
    """The cells that a marked number over several of them is of: the sound ones, or all where every one is broken."""
    return [result for result in results if not is_broken(result)] or list(results)


def broken(*results: CellResult) -> str:
    """The cross of cells, of which one is broken; empty where none is."""
    return f" {BROKEN}" if any(map(is_broken, results)) else ""


def partial(*results: CellResult) -> str:
    """`14 of 16`: the prompts of cells that have a number, where some have none; empty where all have."""
    n, expected = sum(result.n for result in results), sum(result.n_expected for result in results)
    return f"{n}{OF}{expected}" if n != expected else ""


def gate(*results: CellResult) -> str:
    """The dagger of timed cells, of which one failed a gate; empty where none did."""
    doubted = (result.throughput.doubts and result.throughput.tokens_per_s.value is not None for result in results)
    return f" {GATE}" if any(doubted) else ""


def mark(*results: CellResult, timed: bool = False) -> str:
    """All marks of a number that these cells gave; `timed`: it is one of their timings."""
    few = partial(*results)
    return broken(*results) + (gate(*results) if timed else "") + (f" ({few})" if few else "")


def method(labels: Labels, *results: CellResult, counted: bool = False) -> Value:
    """The method of cells with its marks; `counted`: the table has a column that says of how many prompts."""
    text = labels.method[results[0].cell_id] + (broken(*results) if counted else mark(*results))
    return Value(text, flag="alarm" if broken(*results) else "")


def prompts(result: CellResult) -> Value:
    """The prompts that have a number, of those asked for where some have none."""
    few = partial(result)
    return Value(few or str(result.n), flag="warning" if few else "")


def claim(result: CellResult) -> Value:
    """What the output may claim to be, with a cross where it is not, and what an approximate cache changes."""
    text = result.claim + broken(result) + beside(result)
    return Value(text, flag="alarm") if is_broken(result) else Value(text)


def crossed(pairs: Sequence[Sequence[CellResult]], noun: str) -> str:
    """The sentence that says how many comparisons have a broken cell, and so are not counted; empty where none has."""
    bad = sum(not are_sound(*pair) for pair in pairs)
    verb, are = ("has", "is") if bad == 1 else ("have", "are")
    return f"{bad:,} of {count(len(pairs), noun)} {verb} a cell marked {BROKEN} and {are} not counted." if bad else ""


def left_out(results: Sequence[CellResult], by: str = "") -> str:
    """The sentence that says how many cells (`by` a rule) are broken, and so are not counted; empty where none is."""
    bad = sum(map(is_broken, results))
    are = "is" if bad == 1 else "are"
    return f"{bad:,} of {count(len(results), 'cell')}{by} {are} marked {BROKEN} and not counted." if bad else ""


def doubted(value: Value, *results: CellResult) -> Value:
    """A timed number, marked where a timing behind it failed a gate."""
    return replace(value, text=value.text + gate(*results), flag="warning") if gate(*results) else value


def notes(chart: Chart) -> tuple[str, ...]:
    """The sentences under a chart that name its marked points, one a kind of mark."""
    found = ((sign, meaning, [point for point in chart.points if sign in point.mark]) for sign, meaning in MEANINGS)
    return tuple(
        f"{'' if sign == OF else f'{sign} '}{meaning[0].upper()}{meaning[1:]}: {places(points, chart)}."
        for sign, meaning, points in found
        if points
    )


def places(points: list[Point], chart: Chart) -> str:
    """Which points of a chart are meant: all, or the first few series and panels."""
    if len(points) == len(chart.points):
        return "all of this chart"
    named = [place(chart, points, *key) for key in dict.fromkeys((point.facet, point.series) for point in points)]
    more = len(named) - MOST_NAMED
    return "; ".join(named[:MOST_NAMED]) + (f" and {count(more, 'more series', 'more series')}" if more > 0 else "")


def place(chart: Chart, points: Iterable[Point], facet: str, series: str) -> str:
    """Panel and series, with the places of `points` where these are not all of the series."""
    own, every = (
        [chart.at(p) for p in some if (p.facet, p.series) == (facet, series)] for some in (points, chart.points)
    )
    at = "" if len(own) == len(every) or chart.shape in ("dots", "rungs") else f" at {', '.join(own)}"
    return f"{facet}, {series}{at}"
