"""Marks of a scatter at one place: each can be seen, one label names them all, and the legend looks like the marks."""

from xml.etree import ElementTree

from reports.charts import picture, svg
from reports.model import Chart, Point
from reports.render import numbers

SERIES = ("exact (lossless)", "subset (lossy)", "product (lossy)")


def point(series, x, y, text, *, front=True):
    return Point(facet="a", series=series, x=x, y=y, text=text, open="lossy" in series, front=front)


def chart(*points):
    return Chart(title="t", x="gain", y="identical", points=points, shape="scatter", series=SERIES, text="Cell")


def rows(*points):
    return picture(chart(*points))["data"]["values"]


EXACT, SUBSET, PRODUCT = SERIES
AT_ONE = (
    point(EXACT, 2, 100, "tau 0.7, D 4"),
    point(EXACT, 2, 100, "tau 0.7, D 8"),
    point(SUBSET, 2, 100, "tau 0.7, D 4"),
    point(PRODUCT, 3, 50, "tau 0.7, D 4"),
)


def test_equal_marks_of_a_series_are_one_that_names_both_and_the_table_keeps_each():
    made = rows(*AT_ONE)
    assert [row["series"] for row in made] == list(SERIES)
    assert made[0]["name"].endswith("tau 0.7, D 4; tau 0.7, D 8")
    ((_, below),) = numbers(chart(*AT_ONE)).groups
    assert len(below) == 4


def test_marks_of_several_series_at_one_place_stand_around_each_other_under_one_label():
    made = rows(*AT_ONE)
    below, above, alone = (row["size"] for row in made)
    assert below > above == alone
    assert [row["said"] for row in made] == ["", "exact tau 0.7, D 4 and 2 more", "tau 0.7, D 4"]
    two = rows(AT_ONE[0], AT_ONE[2])
    assert [row["said"] for row in two] == ["", "exact tau 0.7, D 4; subset tau 0.7, D 4"]
    same = rows(*AT_ONE[:2])
    assert [row["said"] for row in same] == ["tau 0.7, D 4; tau 0.7, D 8"]


def test_what_is_not_on_the_front_has_a_mark_and_no_label():
    made = rows(AT_ONE[0], point(SUBSET, 2, 100, "tau 0.9", front=False), point(EXACT, 1, 10, "tau 0.5", front=False))
    assert sorted(row["said"] for row in made) == ["", "", "tau 0.7, D 4"]
    assert len(made) == 3


def test_lossy_marks_are_hollow_in_the_legend_too():
    tree = ElementTree.fromstring(svg(chart(*AT_ONE)))
    legend = [node for node in tree.iter() if "role-legend-symbol" in (node.get("class") or "")]
    inside = [path.get("fill") for node in legend for path in node.iter() if path.get("d")]
    drawn = [path.get("fill") for path in tree.iter() if (path.get("aria-label") or "").startswith("a, ")]
    assert [fill is None for fill in inside] == [False, True, True]  # what a picture fills with by default is nothing
    assert drawn == inside
    assert next(node for node in tree if node.tag.endswith("}g") or node.tag == "g").get("fill") == "none"
