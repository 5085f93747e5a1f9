"""From a chart's points to one static SVG: the same bytes for the same points, readable on light and dark pages.

Series differ by colour, shape, dash and width (in bars by colour and place in the stack), and those that are equal in
every point are one line under all their names: no name in the legend is without a line that can be seen. Every mark
carries its numbers as an accessible name. The colours of text and grid are left to the page's style sheet. The page
needs no script and no font file for it.
"""

import re
from collections import defaultdict
from dataclasses import replace
from hashlib import sha256
from typing import Any

import altair as alt
import vl_convert

from reports.model import Chart, Point
from reports.text import number

COLOURS = ("#2b7bba", "#d9600a", "#1a9a6c", "#b8559a", "#b58900", "#6a6fd0", "#c4434f", "#4b8f8c")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))
COLUMNS = 3
WIDTHS = (520, 400, 270)
HEIGHT = 220
NEUTRAL = "#808080"
SPREAD = 0.2
STROKES = (3.5, 1.5)  # of the first line, which is drawn below all others, and of the last
SMALL = 22
WIDER = 1.5  # pixels a letter


def svg(chart: Chart) -> str:
    """The picture of a chart as an SVG element for the inside of a page: ids of its own, a role and a name."""
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    text: str = vl_convert.vegalite_to_svg(picture(chart), vl_version=version, allowed_base_urls=[])
    return embedded(text, chart)


def picture(chart: Chart) -> dict[str, Any]:
    """The Vega-Lite specification of a chart."""
    chart = merged(chart)
    facets = list(dict.fromkeys(point.facet for point in chart.points))
    drawn = {"lines": lines, "bands": bands, "dots": dots, "bars": bars}[chart.shape]
    layers = alt.layer(*drawn(chart))
    across = min(len(facets), chart.columns or COLUMNS, COLUMNS)
    size = {"width": WIDTHS[across - 1], "height": height(chart)}
    header = alt.Header(title=None, labelFontSize=13, labelFontWeight="bold")
    faceted = layers.properties(**size).facet(
        facet=alt.Facet("facet:N", sort=facets, header=header),
        data=alt.Data(values=[]),
        columns=across,
        spacing=24,
    )
    styled = faceted.configure(background="transparent", font="sans-serif", padding=padding(chart)).configure_view(
        stroke=None
    )
    spec: dict[str, Any] = styled.to_dict(validate=False)  # valid by its tests; checking it takes longer than drawing
    return {**spec, "data": {"values": rows(chart)}}


def merged(chart: Chart) -> Chart:
    """The chart with series that are equal in every point as one, named `ssd = freedave`; in rows of dots and in bars
    all show.
    """
    if chart.shape in ("dots", "bars"):
        return chart
    points = {name: tuple(replace(p, series="") for p in chart.points if p.series == name) for name in used(chart)}
    twins: dict[tuple[Point, ...], list[str]] = defaultdict(list)
    for name, own in points.items():
        twins[tuple(sorted(own, key=lambda point: (point.facet, point.x)))].append(name)
    names = {group[0]: " = ".join(group) for group in twins.values()}
    kept = tuple(replace(p, series=names[p.series]) for p in chart.points if p.series in names)
    return replace(chart, points=kept, series=tuple(names.get(name, name) for name in chart.series))


def lines(chart: Chart) -> list[alt.Chart]:
    """Layers over an ordered x: the rule, a line a series, whiskers and marks."""
    ticks = sorted({point.x for point in chart.points})
    labels = "[" + ",".join(f"'{tick:g}'" for tick in ticks) + "][datum.value]"
    axis = alt.Axis(values=list(range(len(ticks))), labelExpr=labels, labelAngle=0, grid=False, labelOverlap=True)
    scale = alt.Scale(domain=[-0.4, len(ticks) - 0.6], nice=False)
    x = alt.X("place:Q", title=chart.x, axis=axis, scale=scale)
    y = alt.Y("y:Q", title=chart.y, scale=alt.Scale(zero=chart.zero, nice=True), axis=alt.Axis(grid=True))
    stroke = alt.Chart().mark_line(aria=False).encode(x=x, y=y, color=colour(chart), **style())
    whisker = alt.Chart().mark_rule(strokeWidth=1.5, aria=False)
    whisker = whisker.encode(x=x, y="low:Q", y2="high:Q", color=colour(chart))
    return [*greyed(chart, axis, scale), stroke, *rule(chart, "y"), whisker, marks(chart).encode(x=x, y=y)]


def greyed(chart: Chart, axis: alt.Axis, scale: alt.Scale) -> list[alt.Chart]:
    """A grey background from a place on, in the panels that ask for one: each drawn by the first of its rows."""
    if not chart.grey:
        return []
    mark = alt.Chart().mark_rect(color=NEUTRAL, opacity=0.14, aria=False)
    return [mark.encode(x=alt.X("grey_from:Q", title=chart.x, axis=axis, scale=scale), x2="grey_to:Q")]


def bands(chart: Chart) -> list[alt.Chart]:
    """Layers over a numeric x with many places: intervals as shades behind thin lines, marks small."""
    axis = alt.Axis(grid=False, tickMinStep=1)
    x = alt.X("place:Q", title=chart.x, axis=axis, scale=alt.Scale(nice=False, padding=6))
    y = alt.Y("y:Q", title=chart.y, scale=alt.Scale(zero=chart.zero, nice=True), axis=alt.Axis(grid=True))
    shade = alt.Chart().mark_area(opacity=0.18, line=False, aria=False)
    shade = shade.encode(x=x, y=alt.Y("low:Q", title=chart.y), y2="high:Q", color=colour(chart))
    stroke = alt.Chart().mark_line(aria=False).encode(x=x, y=y, color=colour(chart), **style())
    return [shade, stroke, *rule(chart, "y"), marks(chart, size=SMALL).encode(x=x, y=y)]


def dots(chart: Chart) -> list[alt.Chart]:
    """Layers by series: the rule, whiskers and marks."""
    y = alt.Y("series:N", sort=used(chart), title=None, axis=alt.Axis(labelLimit=220))
    x = alt.X("y:Q", title=chart.y, scale=alt.Scale(zero=chart.zero, nice=True), axis=alt.Axis(grid=True, tickCount=6))
    whisker = alt.Chart().mark_rule(strokeWidth=2, aria=False).encode(y=y, x="low:Q", x2="high:Q", color=colour(chart))
    return [whisker, *rule(chart, "x"), marks(chart).encode(x=x, y=y)]


def bars(chart: Chart) -> list[alt.Chart]:
    """One layer over an ordered x: the series of a place stacked, each with its numbers as its name."""
    axis = alt.Axis(labelAngle=0, grid=False)
    x = alt.X("x:O", title=chart.x, axis=axis, scale=alt.Scale(paddingInner=0.35, paddingOuter=0.25))
    y = alt.Y("bottom:Q", title=chart.y, scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(grid=True))
    mark = alt.Chart().mark_bar(stroke=NEUTRAL, strokeWidth=0.75)
    return [mark.encode(x=x, y=y, y2="top:Q", color=colour(chart), description="name:N"), *rule(chart, "y")]


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
    legend = (
        alt.Legend(
            orient="top",
            title=None,
            labelLimit=520,
            symbolOpacity=1,
            columnPadding=16,
        )
        if chart.shape != "dots"
        else None
    )
    return alt.Color("series:N", sort=order, legend=legend, scale=alt.Scale(domain=order, range=cycle(COLOURS, chart)))


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


def height(chart: Chart) -> int:
    """Height of a panel in pixels."""
    return HEIGHT if chart.shape != "dots" else 26 * len(used(chart)) + 10


def padding(chart: Chart) -> dict[str, float]:
    """Room around a picture in pixels: the page's font may be wider than the one in which row names were measured."""
    longest = max(map(len, used(chart)), default=0) if chart.shape == "dots" else 0
    return {"left": 5 + WIDER * longest, "right": 5, "top": 5, "bottom": 5}


def rows(chart: Chart) -> list[dict[str, Any]]:
    """The points as rows of data. Marks at one x stand side by side, so that whiskers do not cover each other."""
    look = looks(chart)
    if chart.shape == "bands":
        return [{**values(chart, point), **look[point.series], "place": point.x} for point in ordered(chart)]
    if chart.shape == "bars":
        return stacked(chart)
    ticks, order = sorted({point.x for point in chart.points}), used(chart)
    step = SPREAD / max(1, len(order) - 1)
    grey = {
        facet: {"grey_from": max(ticks.index(x) - 0.5, -0.4), "grey_to": len(ticks) - 0.6} for facet, x in chart.grey
    }
    first = {point.facet: point for point in reversed(ordered(chart))}
    return [
        {
            **values(chart, point),
            **look[point.series],
            **(grey.get(point.facet, {}) if first[point.facet] is point else {}),
            "place": ticks.index(point.x) + (step * order.index(point.series) - SPREAD / 2 if len(order) > 1 else 0),
        }
        for point in ordered(chart)
    ]


def stacked(chart: Chart) -> list[dict[str, Any]]:
    """The points as pieces of bars: each begins where the one below it ends."""
    tops: dict[tuple[str, float], float] = defaultdict(float)
    made = []
    for point in ordered(chart):
        bottom = tops[point.facet, point.x]
        tops[point.facet, point.x] = bottom + point.y
        made.append({**values(chart, point), "bottom": bottom, "top": bottom + point.y})
    return made


def ordered(chart: Chart) -> list[Point]:
    """The points with the series in the page's order, which is the order of drawing."""
    order = used(chart)
    return sorted(chart.points, key=lambda point: order.index(point.series))


def values(chart: Chart, point: Point) -> dict[str, Any]:
    """A point as a row of data; the whiskers of a point without interval collapse into it."""
    has_interval = point.low is not None and point.high is not None
    ends = (point.low, point.high) if has_interval else (point.y, point.y)
    x = int(point.x) if point.x == int(point.x) else point.x
    span = f", {number(point.low, chart.digits)} to {number(point.high, chart.digits)}" if has_interval else ""
    where = f"{chart.x} {x}" if chart.shape != "dots" else chart.y
    name = f"{point.facet}, {point.series}, {where}: {number(point.y, chart.digits)}{span}{point.mark}"
    row = {"facet": point.facet, "series": point.series, "x": x, "y": point.y, "low": ends[0], "high": ends[1]}
    return {**row, "name": name}


def embedded(text: str, chart: Chart) -> str:
    """The SVG with ids that are unique in the page, and without the size that would keep it from shrinking."""
    prefix = "c" + sha256(repr(chart).encode()).hexdigest()[:10]
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
    return re.sub(r'<svg ([^>]*?)width="(\d+)" height="\d+"', r'<svg \1style="max-width:\2px"', text, count=1)
