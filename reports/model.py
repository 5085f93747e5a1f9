"""What a report is made of: sections of parts, all of them frozen data that tests can read without any HTML.

A section is a function `info(frames) -> SectionInfo | None` (None: it has nothing to say). One template renders the
few kinds of parts; a chart carries its numbers, so that its table can always stand beside it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from reports.text import number

Level = Literal["alarm", "warning", "note", "good"]


@dataclass(frozen=True, slots=True)
class Value:
    """A table cell: text, the interval (or other small print) behind it, and marks. `flag` colours it, and is never the
    only sign.
    """

    text: str
    interval: str = ""
    best: bool = False
    flag: Level | Literal[""] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A column head: name, unit, and what it means (shown on hover and read aloud)."""

    name: str
    unit: str = ""
    meaning: str = ""
    number: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table. `groups` are bodies with a heading row each (empty heading: none); `omitted` rows were left out; `note`
    says what holds for all rows.
    """

    caption: str
    heads: tuple[Head, ...]
    groups: tuple[tuple[str, tuple[tuple[Value, ...], ...]], ...]
    omitted: int = 0
    note: str = ""
    kind: Literal["table"] = "table"

    def __post_init__(self) -> None:
        for _, rows in self.groups:
            for row in rows:
                assert len(row) == len(self.heads), f"{self.caption}: {len(row)} values under {len(self.heads)} heads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a chart: facet, series, place, value, its interval, and its marks (`reports.marks`).

    `text` is said of it in words (drawn in `rungs`, and in a `scatter` on its `front`), `open` draws it hollow, `least`
    is the lowest value that is possible there; `x_low` and `x_high` are the interval of a measured place.
    """

    facet: str
    series: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    mark: str = ""
    text: str = ""
    open: bool = False
    least: float | None = None
    front: bool = False
    x_low: float | None = None
    x_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture of points: `lines` over an ordered x, `bands` over a numeric one (intervals as shades, for many x),
    `dots` by series, `bars` over an ordered x in which the series are stacked, the first below, `rungs` (bars that lie,
    a row a series), or a `scatter` over two measured axes. `baseline` draws a rule (a ratio of 1).

    `zero` makes the value axis begin at 0, as shares should; `of` says what a series is, above its names.
    `grey` names panels (facets) with the x from which on their background is grey (`lines` only). `columns` is the
    number of panels in a row (0: as many as fit). `text` is the head of what points say of themselves, `least` of the
    lowest values that are possible.
    """

    title: str
    x: str
    y: str
    points: tuple[Point, ...]
    shape: Literal["lines", "bands", "dots", "bars", "rungs", "scatter"]
    series: tuple[str, ...]
    facet: str = "task"
    baseline: float | None = None
    digits: int = 2
    zero: bool = False
    of: str = "Method"
    grey: tuple[tuple[str, float], ...] = ()
    columns: int = 0
    text: str = ""
    least: str = ""
    kind: Literal["chart"] = "chart"

    def at(self, point: Point) -> str:
        """The place of a point in words: in a scatter a measured number, as tables show it."""
        return number(point.x) if self.shape == "scatter" else f"{point.x:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names with values."""

    rows: tuple[tuple[str, str], ...]
    kind: Literal["facts"] = "facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Sentences, each with its level."""

    lines: tuple[tuple[Level, str], ...]
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Preformatted text under a heading that opens; `filename` offers it as a download too."""

    title: str
    text: str
    filename: str = ""
    kind: Literal["listing"] = "listing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One filled position of a trace: its token's text, the round that committed it, and its number in commit order."""

    text: str
    round: int
    number: int
    shade: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The commit order of one prompt: blocks of positions (None: a prompt token or cut), and the same as text."""

    title: str
    note: str
    blocks: tuple[tuple[Commit | None, ...], ...]
    text: str
    kind: Literal["trace"] = "trace"


Part = Table | Chart | Facts | Lines | Listing | Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Parts under a heading of their own; `folded` groups open on demand, `link` is a section the heading leads to."""

    title: str
    parts: tuple[Part, ...]
    folded: bool = False
    link: str = ""


def notes_of(groups: Iterable[Group], *, but: str = "") -> tuple[str, ...]:
    """The notes among the lines of groups, with the group's title where several groups have some; without `but`."""
    said = [
        (group.title, text)
        for group in groups
        for part in group.parts
        if isinstance(part, Lines)
        for level, text in part.lines
        if level == "note" and text != but
    ]
    several = len({title for title, _ in said}) > 1
    return tuple(f"{title}: {text}" if several else text for title, text in said)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionInfo:
    """A section: `key` is its anchor, `lead` says how to read it, `cuts` what was left out and where it is.

    `findings` answer the question of a study, most important first: the summary repeats them.
    """

    key: str
    title: str
    lead: str
    groups: tuple[Group, ...]
    cuts: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
