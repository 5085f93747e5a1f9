"""How the series of a page look: colour, shape, dash and width by their place in the page's order, and what is drawn in
every picture: marks with their numbers as names, the rule, the legend.
"""

from typing import Any

import altair as alt

from reports.model import Chart

COLOURS = ("#2b7bba", "#d9600a", "#1a9a6c", "#b8559a", "#b58900", "#6a6fd0", "#c4434f", "#4b8f8c")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))
NEUTRAL = "#808080"
STROKES = (3.5, 1.5)  # of the first line, which is drawn below all others, and of the last


def marks(chart: Chart, size: int = 70) -> alt.Chart:
    """The marks, each with its numbers as its name."""
    order = used(chart)
    shape = alt.Shape("series:N", sort=order, title=None, scale=alt.Scale(domain=order, range=cycle(SHAPES, chart)))
    base = alt.Chart().mark_point(filled=True, size=size, opacity=1)
    return base.encode(color=colour(chart), shape=shape, description="name:N")


def rule(chart: Chart, axis: str) -> list[alt.Chart]:
    """A dashed rule at the draft-free value, where the chart has one."""
    if chart.baseline is None:
        return []
    mark = alt.Chart().mark_rule(strokeDash=[3, 3], color=NEUTRAL, aria=False)
    return [mark.encode(**{axis: alt.Y(datum=chart.baseline) if axis == "y" else alt.X(datum=chart.baseline)})]


def colour(chart: Chart) -> alt.Color:
    """Colour by series, the same in every chart of a page."""
    order = used(chart)
    return alt.Color(
        "series:N", sort=order, legend=legend(chart), scale=alt.Scale(domain=order, range=cycle(COLOURS, chart))
    )


def legend(chart: Chart) -> alt.Legend | None:
    """The legend above a picture, shared by all that says a series; rows of dots have names of their own."""
    if chart.shape == "dots":
        return None
    return alt.Legend(orient="top", title=None, labelLimit=520, symbolOpacity=1, columnPadding=16)


def style() -> dict[str, Any]:
    """Dash and width of lines, from the rows: as scales of the series they would also be drawn into the legend."""
    return {
        "strokeDash": alt.StrokeDash("dash:N", scale=None, legend=None),
        "strokeWidth": alt.StrokeWidth("width:N", scale=None, legend=None),
    }


def looks(chart: Chart) -> dict[str, dict[str, Any]]:
    """Dash and width of each used series: where lines lie on each other the lower ones stand out on both sides."""
    order, (first, last) = used(chart), STROKES
    step = (last - first) / max(1, len(order) - 1)
    return {
        series: {"dash": dash, "width": first + step * place}
        for place, (series, dash) in enumerate(zip(order, cycle(DASHES, chart), strict=True))
    }


def used(chart: Chart) -> list[str]:
    """The series that have a point, in the page's order."""
    present = {point.series for point in chart.points}
    return [series for series in chart.series if series in present]


def cycle(styles: tuple[Any, ...], chart: Chart) -> list[Any]:
    """The style of each used series: its place among all series of the page decides."""
    return [styles[chart.series.index(series) % len(styles)] for series in used(chart)]
