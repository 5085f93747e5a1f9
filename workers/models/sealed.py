"""JSON files that name their format and version, and seal their content with a digest of it.

Artifacts that people copy about are read through here: what is foreign, of another version or altered is one line.
One field a line, and one item of a list a line: a changed artifact shows as a readable difference. Imports no torch.
"""

import json
from pathlib import Path
from typing import Any, TypeVar

from sweeps.cell import digest_of
from sweeps.paths import cut
from sweeps.store import atomic_write
from workers.models.plain import built, parsed, plain

T = TypeVar("T")


def require(condition: bool, message: str) -> None:
    """Raise ValueError with `message` unless `condition` holds."""
    if not condition:
        raise ValueError(message)


def read_versioned(file: Path, cls: type[T], *, what: str, format: str, version: int, again: str) -> T:
    """The `cls` in a JSON file of this format and version. Raises ValueError that begins with `what`.

    `again` says how a file of another version is made anew.
    """
    return _converted(_read(file, what, format, version, again), cls, file, what)


def read_sealed(file: Path, cls: type[T], *, what: str, format: str, version: int, again: str) -> T:
    """As `read_versioned`, for a file whose field `digest` is that of all others; ValueError when it is not."""
    raw = _read(file, what, format, version, again)
    try:
        digest, said = content_digest(raw), str(raw.get("digest"))
    except (RecursionError, ValueError) as error:  # so deep that it could be read and not written, or NaN
        raise ValueError(f"{what}: {file.name} is none: {error}") from None
    require(digest == said, f"{what}: digest is {digest[:12]}, its {file.name} says {said[:12]!r}: altered")
    return _converted(raw, cls, file, what)


def write_sealed(file: Path, value: Any) -> str:
    """Write a dataclass with its digest, wholly or not at all; returns the digest. Equal values give equal bytes."""
    raw: dict[str, Any] = plain(value)
    raw["digest"] = content_digest(raw)
    fields = ",\n".join(f'  "{name}": {_text(field)}' for name, field in raw.items())
    atomic_write(file, f"{{\n{fields}\n}}\n".encode())
    return str(raw["digest"])


def content_digest(raw: dict[str, Any]) -> str:
    """sha256 (hex) over all fields but the digest."""
    return digest_of({name: value for name, value in raw.items() if name != "digest"})


def _read(file: Path, what: str, format: str, version: int, again: str) -> dict[str, Any]:
    """The fields of a file that says it is of this format and version."""
    require(file.is_file(), f"{what}: {file.name} is missing")
    try:
        raw = parsed(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"{what}: {file.name} is not a JSON object ({error})") from None
    named, found = raw.get("format"), raw.get("version")
    require(named == format, f"{what}: format is {cut(repr(named))}: allowed is {format!r}")
    require(found == version, f"{what}: version is {cut(repr(found))}: allowed is {version} ({again})")
    return raw


def _converted(raw: dict[str, Any], cls: type[T], file: Path, what: str) -> T:
    try:
        return built(raw, cls)
    except ValueError as error:
        raise ValueError(f"{what}: {file.name}: {cut(str(error), 200)}") from None


def _text(value: Any) -> str:
    if isinstance(value, list | tuple) and value:
        return "[\n    " + ",\n    ".join(map(_line, value)) + "\n  ]"
    return _line(value)


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
