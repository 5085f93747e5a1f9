"""The files of a published checkpoint, found and read without torch: JSON, weight files, content digest.

Every problem is one ValueError that names the file. Only safetensors are looked at: pickled weights (`.bin`) can run
code.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from sweeps.paths import cut

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
WANTED = ("*.json", "*.safetensors", "*.jinja", "*.txt")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
AGAIN = "fetch it again"  # the way out of a file that a stopped download left short, or that was damaged since


def resolve_folder(path_or_hub_id: str, revision: str | None = None) -> Path:
    """The checkpoint's folder: a directory as it is, else a hub id with its revision (the offline cache is
    honoured).
    """
    folder = Path(path_or_hub_id)
    if folder.is_dir():
        return folder
    if path_or_hub_id.startswith((".", "/", "~")) or path_or_hub_id.count("/") != 1:
        raise ValueError(f"target path {path_or_hub_id!r} is not a directory, nor a hub id of the form owner/name")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(path_or_hub_id, revision=revision or None, allow_patterns=list(WANTED)))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ValueError(
            f"target {path_or_hub_id!r} at revision {revision or 'main'!r} is no directory and is not to be had "
            f"from the hub or its local cache: {error}"
        ) from error


def read_json(path: Path, *, required: bool = True) -> dict[str, Any]:
    """A JSON object; an absent file is an empty one unless `required`."""
    if not path.is_file():
        if required:
            raise ValueError(f"{path}: missing file")
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected an object, found {type(value).__name__}")
    return value


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The safetensors files of a checkpoint, sorted by name: the index's shards, or the single file."""
    if (folder / INDEX).is_file():
        mapping = read_json(folder / INDEX).get("weight_map")
        if not isinstance(mapping, dict) or not mapping:
            raise ValueError(
                f"{folder / INDEX}: weight_map is {cut(repr(mapping))}; expected an object of tensor names to files"
            )
        for key, name in mapping.items():
            where = f"{folder / INDEX}: weight_map.{cut(key)} is {cut(repr(name))}"
            if not isinstance(name, str) or not name:
                raise ValueError(f"{where}; expected the name of a file")
            if Path(name).name != name or name == "..":
                raise ValueError(f"{where}; shards must lie in the folder of their index")
        files = tuple(folder / name for name in sorted(set(mapping.values())))
    else:
        files = (folder / SINGLE,)
    for file in files:
        if not _is_file(file):
            pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
            never = f"; {listed(pickles)}: pickled weights can run code and are never read" if pickles else ""
            raise ValueError(
                f"{folder / cut(file.name)}: missing weight file (allowed: {SINGLE}, or the shards that {INDEX} "
                f"names{never}): {AGAIN}"
            )
    return files


def _is_file(path: Path) -> bool:
    """Whether a path leads to a file; no file has a name that the system cannot have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def listed(names: Sequence[str]) -> str:
    """The first names of a list, cut where they are long, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(cut, names[:3])) + more


def weight_digest(folder: Path) -> str:
    """Sha256 (hex) over the content of the weight files in the order of their names."""
    total = hashlib.sha256()
    for file in weight_files(folder):
        facts = file.stat()
        total.update(bytes.fromhex(_file_digest(file.resolve(), facts.st_size, facts.st_mtime_ns)))
    return total.hexdigest()


@lru_cache(maxsize=256)
def _file_digest(file: Path, _size: int, _mtime_ns: int) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
