"""Strict mapping of plain values (dicts, lists, scalars) into our dataclasses.

Every refusal names the place, the full path of the key, the value and what is allowed: an unknown key gets the nearest
real one, `true` is no number, 8.0 no whole number, a number no text. A lone value counts as a list of one.
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from sweeps.source import Path, Source, SweepError, dotted
from sweeps.tables import nearest

T = TypeVar("T")
NAMES: dict[Any, str] = {str: "text", int: "a whole number", float: "a finite number", bool: "true or false"}


def build(cls: type[T], raw: object, path: Path, source: Source, *, hidden: Collection[str] = (), **known: Any) -> T:
    """A dataclass from a mapping. `hidden` fields are computed and may not be given; `known` are set by the caller."""
    values = mapping(raw, path, source)
    hints = get_type_hints(cls)
    allowed = [f.name for f in fields(cls) if f.name not in hidden and f.name not in known]  # type: ignore[arg-type]
    check_keys(values, allowed, path, source)
    built = {key: convert(hints[key], value, (*path, key), source) for key, value in values.items()}
    for f in fields(cls):  # type: ignore[arg-type]
        needed = f.default is MISSING and f.default_factory is MISSING
        if needed and f.name not in built and f.name not in known:
            raise source.error(path, f"{dotted((*path, f.name))} is missing: it has no default")
    try:
        return cls(**built, **known)
    except SweepError:
        raise
    except ValueError as error:  # a dataclass refused its values: find the line of the field it names
        found = re.match(r".*?(\w+) is ", str(error))
        raise source.error((*path, found[1]) if found else path, str(error)) from None


def mapping(raw: object, path: Path, source: Source) -> dict[str, Any]:
    """`raw` as a mapping with text keys."""
    if not isinstance(raw, Mapping):
        raise source.error(
            path, f"{dotted(path)} is {raw!r}: allowed is a mapping of keys (write {{}} for an empty one)"
        )
    for key in raw:
        if not isinstance(key, str):
            raise source.error(path, f"{dotted(path)}: the key {key!r} is read as a {type(key).__name__}: quote it")
    return dict(raw)


def check_keys(values: Collection[str], allowed: Collection[str], path: Path, source: Source) -> None:
    """Refuse a key that is not allowed, with the allowed ones and the nearest."""
    for key in values:
        if key not in allowed:
            near = nearest(key, allowed)
            names = ", ".join(allowed)
            raise source.error((*path, key), f"unknown key {dotted((*path, key))}: allowed are {names}{near}")


def convert(kind: Any, raw: object, path: Path, source: Source) -> Any:
    """`raw` as the declared type of a field."""
    if get_origin(kind) is tuple:
        return _items(get_args(kind)[0], raw, path, source)
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return build(kind, raw, path, source)
    if get_origin(kind) is Literal:
        if raw in get_args(kind):
            return raw
        raise _refusal(raw, path, source, " | ".join(map(str, get_args(kind))), get_args(kind))
    if kind is float and isinstance(raw, int | float) and not isinstance(raw, bool):
        try:
            number = float(raw)
        except OverflowError:  # a whole number beyond the largest float
            number = math.inf
        if math.isfinite(number):
            return number
    if kind is not float and type(raw) is kind:
        return raw
    raise _refusal(raw, path, source, NAMES[kind])


def _items(kind: Any, raw: object, path: Path, source: Source) -> tuple[Any, ...]:
    """A list for an axis; one value counts as a list of one, and an empty list is refused."""
    values = raw if isinstance(raw, list) else [raw]
    if not values:
        raise source.error(path, f"{dotted(path)} is an empty list: give at least one value, or leave the key out")
    listed = isinstance(raw, list)
    return tuple(convert(kind, v, (*path, i) if listed else path, source) for i, v in enumerate(values))


def _refusal(raw: object, path: Path, source: Source, allowed: str, names: Collection[str] = ()) -> SweepError:
    """What is wrong with one value, with a hint where the mistake is a common one."""
    hint = nearest(raw, names) if isinstance(raw, str) else ""
    if allowed == NAMES[str] and isinstance(raw, int | float):
        hint = f" (quote it: '{raw}')"
    if isinstance(raw, str) and "," in raw and allowed in (NAMES[int], NAMES[float]):
        hint = f" (several values are a list: [{raw}])"
    return source.error(path, f"{dotted(path)} is {raw!r}: allowed is {allowed}{hint}")
