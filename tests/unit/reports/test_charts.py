"""Lines that lie on each other: no name in the legend may be without a line that can be seen."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from reports.chart_style import STROKES
from reports.charts import merged, picture, svg
from reports.model import Chart, Point
from reports.render import numbers

SERIES = ("ssd", "freedave", "spot", "spot-verified")


def chart(shape="lines", **values):
    """A chart of two panels and two places; `values` are the y of a series, panel by panel."""
    points = tuple(
        Point(facet=f"task {place // 2}", series=name.replace("_", "-"), x=4 * (1 + place % 2), y=y)
        for name, own in values.items()
        for place, y in enumerate(own)
    )
    return Chart(title="t", x="budget D", y="NFE", points=points, shape=shape, series=SERIES)


ALIKE = {"freedave": (5, 4, 6, 5), "ssd": (5, 4, 6, 5), "spot": (3, 2, 3, 2), "spot_verified": (3, 2, 3, 9)}


@pytest.mark.parametrize("shape", ["lines", "bands"])
def test_series_that_are_equal_everywhere_are_one_line_under_both_names(shape):
    drawn = merged(chart(shape, **ALIKE))
    assert list(dict.fromkeys(point.series for point in drawn.points)) == ["ssd = freedave", "spot", "spot-verified"]
    text = svg(chart(shape, **ALIKE))
    legend = [node.text for node in ElementTree.fromstring(text).iter() if node.text and node.text.strip()]
    assert legend.count("ssd = freedave") == 1
    assert not {"ssd", "freedave"} & set(legend)
    drawn = [node for node in ElementTree.fromstring(text).iter() if "mark-line" in (node.get("class") or "")]
    assert len(drawn) == 2 * 3  # a panel's line marks, one a series
    assert sum("3.5" in (path.get("stroke-width") or "") for mark in drawn for path in mark.iter()) == 2


def test_every_legend_entry_has_a_line_of_its_own_in_every_panel():
    drawn = [name for name in ElementTree.fromstring(svg(chart(**ALIKE))).iter() if name.get("aria-label")]
    assert (
        len([node for node in drawn if node.get("aria-label").startswith("task ")]) == 3 * 4
    )  # marks: series times places
    rows = picture(chart(**ALIKE))["data"]["values"]
    widths = {row["series"]: row["width"] for row in rows}  # what is drawn later is narrower
    assert widths == {"ssd = freedave": STROKES[0], "spot": sum(STROKES) / 2, "spot-verified": STROKES[1]}
    assert len({tuple(row["dash"]) for row in rows}) == 3


def test_marks_at_one_place_stand_side_by_side_without_intervals_too():
    rows = picture(chart(**ALIKE))["data"]["values"]
    places = {row["series"]: row["place"] for row in rows if row["x"] == 4 and row["facet"] == "task 0"}
    assert len(set(places.values())) == 3
    assert [row["series"] for row in rows] == sorted((row["series"] for row in rows), key=list(places).index)


def test_the_numbers_keep_every_series_and_rows_of_dots_are_not_merged():
    ((_, rows),) = numbers(chart(**ALIKE)).groups
    assert {row[1].text for row in rows} == set(SERIES)
    assert merged(chart("dots", **ALIKE)) == chart("dots", **ALIKE)


def test_bars_are_stacked_in_the_order_of_the_series_and_say_their_numbers():
    stacked = chart("bars", spot=(3, 2, 3, 2), ssd=(5, 4, 6, 5))
    rows = {(row["facet"], row["x"], row["series"]): row for row in picture(stacked)["data"]["values"]}
    assert len(rows) == 8
    for facet, x, below, above in (("task 0", 4, 5, 3), ("task 0", 8, 4, 2), ("task 1", 4, 6, 3), ("task 1", 8, 5, 2)):
        ssd, spot = rows[facet, x, "ssd"], rows[facet, x, "spot"]
        assert (ssd["bottom"], ssd["top"], spot["bottom"], spot["top"]) == (0, below, below, below + above)
    drawn = [node for node in ElementTree.fromstring(svg(stacked)).iter() if node.get("aria-roledescription") == "bar"]
    assert len(drawn) == 8
    assert "task 1, spot, budget D 8: 2.00" in {node.get("aria-label") for node in drawn}


def test_bars_that_are_equal_are_not_merged_and_panels_keep_their_row():
    alike = chart("bars", **ALIKE)
    assert merged(alike) == alike
    assert picture(replace(alike, columns=1))["columns"] == 1
    assert picture(alike)["columns"] == 2


def test_a_series_that_has_fewer_places_is_not_equal():
    drawn = merged(chart(ssd=(5, 4, 6, 5), freedave=(5, 4)))
    assert {point.series for point in drawn.points} == {"ssd", "freedave"}
