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

from reports import same_place
from reports.chart_shapes import bands, bars, dots, frame_of, lines, rungs, scatter
from reports.chart_style import looks, used
from reports.model import Chart, Point
from reports.text import number

COLUMNS = 3
WIDTHS = (520, 400, 270)
HEIGHT = 220
SPREAD = 0.2
WIDER = 1.5  # pixels a letter
ALONE = ("dots", "bars", "rungs", "scatter")  # shapes whose series never lie on each other
ROWS = ("dots", "rungs")  # shapes in which every series has a row of its own
DRAWN = {"lines": lines, "bands": bands, "dots": dots, "bars": bars, "rungs": rungs, "scatter": scatter}


def svg(chart: Chart) -> str:
    """The picture of a chart as an SVG element for the inside of a page: ids of its own, a role and a name."""
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    text: str = vl_convert.vegalite_to_svg(picture(chart), vl_version=version, allowed_base_urls=[])
    return embedded(text, chart)


def picture(chart: Chart) -> dict[str, Any]:
    """The Vega-Lite specification of a chart."""
    chart = merged(chart)
    facets = list(dict.fromkeys(point.facet for point in chart.points))
    drawn = DRAWN[chart.shape]
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
    all show. In a scatter equal marks of one series are one.
    """
    if chart.shape == "scatter":
        return replace(chart, points=same_place.joined(chart.points))
    if chart.shape in ALONE:
        return chart
    points = {name: tuple(replace(p, series="") for p in chart.points if p.series == name) for name in used(chart)}
    twins: dict[tuple[Point, ...], list[str]] = defaultdict(list)
    for name, own in points.items():
        twins[tuple(sorted(own, key=lambda point: (point.facet, point.x)))].append(name)
    names = {group[0]: " = ".join(group) for group in twins.values()}
    kept = tuple(replace(p, series=names[p.series]) for p in chart.points if p.series in names)
    return replace(chart, points=kept, series=tuple(names.get(name, name) for name in chart.series))


def height(chart: Chart) -> int:
    """Height of a panel in pixels."""
    return 26 * len(used(chart)) + 10 if chart.shape in ROWS else HEIGHT


def padding(chart: Chart) -> dict[str, float]:
    """Room around a picture in pixels: the page's font may be wider than the one in which row names were measured."""
    longest = max(map(len, used(chart)), default=0) if chart.shape in ROWS else 0
    return {"left": 5 + WIDER * longest, "right": 5, "top": 5, "bottom": 5}


def rows(chart: Chart) -> list[dict[str, Any]]:
    """The points as rows of data. Marks at one x stand side by side, so that whiskers do not cover each other."""
    look = looks(chart)
    if chart.shape == "bands":
        return [{**values(chart, point), **look[point.series], "place": point.x} for point in ordered(chart)]
    if chart.shape == "bars":
        return stacked(chart)
    if chart.shape == "rungs":
        return [values(chart, point) | extras(chart, point) for point in ordered(chart)]
    if chart.shape == "scatter":
        beside = same_place.drawn(ordered(chart))
        sized = ((point, *beside[point]) for point in ordered(chart))
        return [values(chart, p) | extras(chart, p) | {"size": size, "said": said} for p, size, said in sized]
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
    where = chart.y if chart.shape in ROWS else f"{chart.x} {chart.at(point)}"
    told = f"{point.facet}, {point.series}, {where}: {number(point.y, chart.digits)}{span}{point.mark}"
    least = f", {chart.least} {number(point.least, chart.digits)}" if point.least is not None else ""
    name = f"{told}{least}{f', {point.text}' if point.text else ''}"
    row = {"facet": point.facet, "series": point.series, "x": x, "y": point.y, "low": ends[0], "high": ends[1]}
    return {**row, "name": name}


def extras(chart: Chart, point: Point) -> dict[str, Any]:
    """What rungs and scattered marks have beside their numbers."""
    end = max(value for value in (point.y, point.high, point.least) if value is not None)
    ends = (point.x_low, point.x_high)
    left, right = (point.x, point.x) if None in ends else ends
    cut = {"low": max(point.low, frame_of(chart)[0])} if chart.shape == "scatter" and point.low is not None else {}
    return {
        **cut,
        "place": point.x,
        "left": left,
        "right": right,
        "front": point.x if point.front else None,
        "fill": 0.08 if point.open else 0.85,
        "edge": [4, 3] if point.open else [1, 0],
        "least": point.least,
        "end": end,
        "said": point.text,
    }


def embedded(text: str, chart: Chart) -> str:
    """The SVG with ids that are unique in the page, and without the size that would keep it from shrinking."""
    prefix = "c" + sha256(repr(chart).encode()).hexdigest()[:10]
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
    return re.sub(r'<svg ([^>]*?)width="(\d+)" height="\d+"', r'<svg \1style="max-width:\2px"', text, count=1)
