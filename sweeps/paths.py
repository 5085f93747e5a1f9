"""Paths as people type them, made into paths that can be asked about: one place for `~`, NUL bytes and overlong names.

A path that no file system can hold would otherwise end as a bare error of the operating system, or as a defect. Values
that are echoed are cut: an error is one line for a person.
"""

from pathlib import Path

MOST_NAME, MOST_PATH = 255, 4095  # bytes that Linux and macOS take, of one name and of a whole path
SHOWN = 80


def cut(text: str, most: int = SHOWN) -> str:
    """The text, or its beginning and how long it is."""
    return text if len(text) <= most else f"{text[:most]}.. ({len(text)} characters)"


def expanded(path: str | Path, field: str) -> Path:
    """The path with `~` and `~user` replaced. Raises ValueError naming `field` when no file can have that path."""
    text = str(path)
    shown = f"{field} is {cut(text)!r}"
    if "\0" in text:
        raise ValueError(f"{shown}: a path cannot hold a NUL character")
    try:
        found = Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f"{shown}: no home directory is known for {cut(Path(text).parts[0])}") from None
    longest = max((len(part.encode(errors="surrogateescape")) for part in found.parts), default=0)
    if longest > MOST_NAME or len(str(found).encode(errors="surrogateescape")) > MOST_PATH:
        raise ValueError(f"{shown}: allowed are {MOST_NAME} bytes a name and {MOST_PATH} a path")
    return found
