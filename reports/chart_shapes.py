"""The layers of each shape of chart, from what is behind to what is in front."""

import altair as alt

from reports.chart_style import COLOURS, NEUTRAL, SHAPES, colour, cycle, legend, marks, rule, style, used
from reports.model import Chart

SMALL = 22
TALL = 15  # pixels of a rung's bar
HOLLOW = "transparent"  # the inside of a mark, in the picture and in its legend
ROOM = 0.35  # of the width of a scatter


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


def rungs(chart: Chart) -> list[alt.Chart]:
    """Bars that lie, one a series from the top: hollow and dashed where a point is `open`; whiskers, a tick at `least`,
    and what a point says behind its end. Colours say nothing here: every row has its name.
    """
    y = alt.Y("series:N", sort=used(chart), title=None, axis=alt.Axis(labelLimit=320, grid=False))
    x = alt.X("y:Q", title=chart.y, scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(grid=True, tickCount=6))
    bar = alt.Chart().mark_bar(size=TALL, stroke=COLOURS[0], strokeWidth=1.5)
    bar = bar.encode(y=y, x=x, x2=alt.datum(0), description="name:N", fill=alt.value(COLOURS[0]))
    bar = bar.encode(
        fillOpacity=alt.FillOpacity("fill:Q", scale=None, legend=None),
        strokeDash=alt.StrokeDash("edge:N", scale=None, legend=None),
    )
    whisker = alt.Chart().mark_rule(strokeWidth=1.5, color=NEUTRAL, aria=False).encode(y=y, x="low:Q", x2="high:Q")
    tick = alt.Chart().mark_tick(color=COLOURS[1], thickness=3, size=TALL + 6, aria=False).encode(y=y, x="least:Q")
    said = alt.Chart().mark_text(align="left", dx=6, fontSize=11, aria=False).encode(y=y, x="end:Q", text="said:N")
    return [bar, *rule(chart, "x"), whisker, tick, said]


def scatter(chart: Chart) -> list[alt.Chart]:
    """Layers over two measured axes: the front as steps, whiskers both ways (as far as the frame), marks (hollow where
    `open`), and what the points of the front say.
    """
    ends = [
        end for point in chart.points for end in (point.x_low, point.x, point.x_high, chart.baseline) if end is not None
    ]
    room = (max(ends) - min(ends)) * ROOM  # for what stands behind the last mark
    scale = alt.Scale(zero=False, nice=True, domain=[min(ends), max(ends) + room])
    x = alt.X("place:Q", title=chart.x, axis=alt.Axis(grid=True, tickCount=6), scale=scale)
    frame = alt.Scale(zero=False, nice=True, domain=list(frame_of(chart)))
    y = alt.Y("y:Q", title=chart.y, scale=frame, axis=alt.Axis(grid=True))
    front = alt.Chart().mark_line(
        color=NEUTRAL, strokeWidth=1.5, strokeDash=[5, 3], interpolate="step-before", aria=False
    )
    front = front.encode(x="front:Q", y="y:Q", order="front:Q")
    faint = {"strokeWidth": 1, "opacity": 0.3, "aria": False}
    upright = alt.Chart().mark_rule(**faint).encode(x=x, y="low:Q", y2="high:Q", color=colour(chart))
    level = alt.Chart().mark_rule(**faint).encode(x="left:Q", x2="right:Q", y=y, color=colour(chart))
    order, hollow = used(chart), {point.series for point in chart.points if point.open}
    shape = alt.Shape("series:N", sort=order, title=None, scale=alt.Scale(domain=order, range=cycle(SHAPES, chart)))
    colours = zip(order, cycle(COLOURS, chart), strict=True)
    inside = alt.Scale(domain=order, range=[HOLLOW if series in hollow else own for series, own in colours])
    mark = (
        alt.Chart()
        .mark_point(strokeWidth=1.8, opacity=1)
        .encode(
            x=x,
            y=y,
            stroke=colour(chart),
            shape=shape,
            description="name:N",
            fill=alt.Fill("series:N", sort=order, legend=legend(chart), scale=inside),
            size=alt.Size("size:Q", scale=None, legend=None),
        )
    )
    said = alt.Chart().mark_text(align="left", dx=7, dy=-7, fontSize=10, aria=False).encode(x=x, y=y, text="said:N")
    return [front, *rule(chart, "x"), upright, level, mark, said]


def frame_of(chart: Chart) -> tuple[float, float]:
    """The lowest and the highest value that a scatter shows; whiskers end there, as long ones would hide the rest."""
    heights = [point.y for point in chart.points]
    below = max(1.0, (max(heights) - min(heights)) / 2)
    return max(0.0, min(heights) - below), max(heights)
