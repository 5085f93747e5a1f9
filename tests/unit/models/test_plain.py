"""Dataclasses from plain JSON: strict about types, one line with the place, and the way back."""

import json
from dataclasses import dataclass

import msgspec
import pytest

from workers.models.plain import built, parsed, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    at: tuple[int, float]
    label: str = ""

    def __post_init__(self) -> None:
        if self.at[0] < 0:
            raise ValueError(f"at is {self.at}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    points: tuple[Point, ...]
    width: float
    dashed: bool = False


LINE = Line(points=(Point(at=(1, 2.5), label="ä"), Point(at=(0, 0.0))), width=2.0, dashed=True)


def test_there_and_back_through_json() -> None:
    text = json.dumps(plain(LINE)).encode()
    assert built(parsed(text), Line) == LINE
    assert msgspec.convert(msgspec.json.decode(text), type=Line, strict=True) == LINE
    assert plain(LINE) == msgspec.json.decode(msgspec.json.encode(LINE))


def test_a_whole_number_is_a_float_too_and_unknown_fields_are_passed_over() -> None:
    line = built({"points": [], "width": 3, "color": "red"}, Line)
    assert (line, type(line.width)) == (Line(points=(), width=3.0), float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated:
    label: str
    year: float | None = None
    days: tuple[int, ...] | None = None


def test_what_may_be_none_is_left_out_where_it_is() -> None:
    assert plain(Dated(label="a")) == {"label": "a"}
    assert plain(Dated(label="a", days=())) == {"label": "a", "days": []}
    for value in (Dated(label="a"), Dated(label="a", year=0.0), Dated(label="a", year=2.0, days=(1, 2))):
        assert built(json.loads(json.dumps(plain(value))), Dated) == value
    with pytest.raises(ValueError, match=r"Expected `float`, got `str` - at `\$\.year`"):
        built({"label": "a", "year": "2"}, Dated)
    with pytest.raises(ValueError, match=r"Expected `int`, got `float` - at `\$\.days\[0\]`"):
        built({"label": "a", "days": [1.5]}, Dated)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": "2"}, "Expected `float`, got `str` - at `$.width`"),
        ({"width": True}, "Expected `float`, got `bool` - at `$.width`"),
        ({"width": 10**400}, "Number out of range - at `$.width`"),
        ({"dashed": 1}, "Expected `bool`, got `int` - at `$.dashed`"),
        ({"points": {}}, "Expected `array`, got `object` - at `$.points`"),
        ({"points": [None]}, "Expected `object`, got `null` - at `$.points[0]`"),
        ({"points": [{"at": [1]}]}, "Expected `array` of length 2, got 1 - at `$.points[0].at`"),
        ({"points": [{"at": [1.0, 1.0]}]}, "Expected `int`, got `float` - at `$.points[0].at[0]`"),
        ({"points": [{"label": "a"}]}, "Object missing required field `at` - at `$.points[0]`"),
        ({"points": [{"at": [-1, 0]}]}, "at is (-1, 0.0) - at `$.points[0]`"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the whole message is compared)
        built(plain(LINE) | change, Line)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", [b"[]", b"{", b"\xff", b'{"a": NaN}', b'{"a":' * 20_000])
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed(text)
