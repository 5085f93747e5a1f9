"""Dataclasses from and to plain JSON values, strictly, with the standard library alone.

What drafters are loaded from is read through here, so that decoding needs torch, transformers and numpy and nothing
else (the checks of `tests/gpu` run on machines that have no more). Fields may be of type bool, int, float, str, another
such dataclass, or a tuple of these: of one type and any length, or of a type for each place. One that may be None is
left out where it is: a file of before there was such a field is as it always was.
"""

import json
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
NAMES = {dict: "object", list: "array", str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}


def parsed(text: bytes) -> dict[str, Any]:
    """The object in a JSON text. Raises ValueError when it is none (NaN and infinities are none), or too deep."""
    try:
        value = json.loads(text.decode(), parse_constant=_refused)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(_expected("object", value, "$"))
    return value


def plain(value: Any) -> Any:
    """A dataclass as plain JSON values: objects, without the fields that are None, and arrays."""
    if is_dataclass(value) and not isinstance(value, type):
        stated = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {name: plain(own) for name, own in stated if own is not None}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def built(value: Any, cls: type[T], path: str = "$") -> T:
    """The dataclass `cls` from plain JSON values. Fields that it does not know are passed over.

    Raises ValueError, one line with the place, when a field is missing or of another type, or `cls` refuses it.
    """
    if not isinstance(value, dict):
        raise ValueError(_expected("object", value, path))
    hints, given = get_type_hints(cls), {}
    for field in fields(cls):  # type: ignore[arg-type]
        if field.name in value:
            given[field.name] = _value(value[field.name], hints[field.name], f"{path}.{field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"Object missing required field `{field.name}` - at `{path}`")
    try:
        return cls(**given)
    except ValueError as error:
        raise ValueError(f"{error} - at `{path}`") from None


def _value(value: Any, hint: Any, path: str) -> Any:
    if is_dataclass(hint):
        return built(value, hint, path)  # type: ignore[arg-type]
    if get_origin(hint) is UnionType:
        (hint,) = (own for own in get_args(hint) if own is not NoneType)  # stated, so it is not None
    if get_origin(hint) is tuple:
        return _items(value, get_args(hint), path)
    if hint is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"Number out of range - at `{path}`") from None
    if type(value) is not hint:
        raise ValueError(_expected(NAMES[hint], value, path))
    return value


def _items(value: Any, hints: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(_expected("array", value, path))
    if hints[-1] is ...:
        hints = hints[:1] * len(value)
    if len(hints) != len(value):
        raise ValueError(f"Expected `array` of length {len(hints)}, got {len(value)} - at `{path}`")
    return tuple(_value(item, hint, f"{path}[{i}]") for i, (item, hint) in enumerate(zip(value, hints, strict=True)))


def _expected(wanted: str, found: Any, path: str) -> str:
    return f"Expected `{wanted}`, got `{NAMES[type(found)]}` - at `{path}`"


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")
