"""Marks of a scatter that stand at one place: none hides another, and the place has one label for all.

Equal marks of one series are one mark that names all; those of other series stand around it, each larger than the next.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from reports.model import Point

SIZE, LARGER = 60, 130  # square pixels
MOST_NAMED = 2


def joined(points: Iterable[Point]) -> tuple[Point, ...]:
    """The points with those of one series, place and mark as one, whose text is all of theirs."""
    alike: dict[tuple[object, ...], list[Point]] = defaultdict(list)
    for point in points:
        alike[point.facet, point.series, point.x, point.y, point.mark, point.open, point.front].append(point)
    return tuple(replace(own[0], text="; ".join(point.text for point in own)) for own in alike.values())


def places(points: Iterable[Point]) -> dict[tuple[str, float, float], list[Point]]:
    """The points of each panel and place."""
    found: dict[tuple[str, float, float], list[Point]] = defaultdict(list)
    for point in points:
        found[point.facet, point.x, point.y].append(point)
    return found


def label(at_one_place: list[Point]) -> str:
    """What a place says of its marks on the front: each by its series where there are several, few by name."""
    best = [point for point in at_one_place if point.front]
    several = len({point.series for point in best}) > 1
    names = [
        f"{point.series.partition(' (')[0]} {text}" if several else text
        for point in best
        for text in point.text.split("; ")
    ]
    more = len(names) - MOST_NAMED
    return f"{names[0]} and {more + 1} more" if more > 0 else "; ".join(names)


def drawn(points: Iterable[Point]) -> dict[Point, tuple[int, str]]:
    """The size of each point's mark and what stands beside it; what is drawn later at a place is smaller."""
    made: dict[Point, tuple[int, str]] = {}
    for own in places(points).values():
        for depth, point in enumerate(reversed(own)):
            made[point] = SIZE + LARGER * depth, "" if depth else label(own)
    return made
