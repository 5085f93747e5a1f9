"""Settings laid over a sweep: mappings merge, anything else replaces what stood there, and every value keeps its place.

Plain containers in, plain containers out. A place is `file:line` for what a settings file put there; the lines of what
it replaced are forgotten, so that no later error names a line whose value is gone.
"""

from collections.abc import Mapping
from typing import Any

from sweeps.source import Path


def laid_over(under: Any, over: Any, path: Path = ()) -> tuple[Any, tuple[Path, ...]]:
    """The merged value, and the paths at which `over` stands instead of what `under` had (or had not)."""
    if not isinstance(under, Mapping) or not isinstance(over, Mapping):
        return over, (path,)
    merged = dict(under)
    replaced: list[Path] = []
    for key, value in over.items():
        if key in merged:
            merged[key], deeper = laid_over(merged[key], value, (*path, key))
            replaced += deeper
        else:
            merged[key] = value
            replaced.append((*path, key))
    return merged, tuple(replaced)


def forget(places: dict[Path, Any], path: Path) -> None:
    """Drop the places of everything at and below `path`."""
    for key in [key for key in places if key[: len(path)] == path]:
        del places[key]
