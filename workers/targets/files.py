"""The files of a published checkpoint, read without torch: JSON, safetensors headers, content digest.

Every problem is one ValueError that names the file. Only safetensors are looked at: pickled weights (`.bin`) can run
code.
"""

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
WANTED = ("*.json", "*.safetensors", "*.jinja", "*.txt")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """Where a tensor lies and what it is; `dtype` in the file format's spelling (`BF16`)."""

    file: Path
    shape: tuple[int, ...]
    dtype: str

    @property
    def numel(self) -> int:
        """Number of values."""
        return prod(self.shape)


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
                f"{folder / INDEX}: weight_map is {mapping!r}; expected an object of tensor names to files"
            )
        for key, name in mapping.items():
            if not isinstance(name, str) or not name:
                raise ValueError(f"{folder / INDEX}: weight_map.{key} is {name!r}; expected the name of a file")
        files = tuple(folder / name for name in sorted(set(mapping.values())))
    else:
        files = (folder / SINGLE,)
    for file in files:
        if not file.is_file():
            pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
            never = f"; {listed(pickles)}: pickled weights can run code and are never read" if pickles else ""
            raise ValueError(
                f"{file}: missing weight file (allowed: {SINGLE}, or the shards that {INDEX} names{never})"
            )
    return files


def stored_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Every tensor of the weight files by name. A truncated file, a key in two files and an index that lies are
    errors.
    """
    found: dict[str, StoredTensor] = {}
    for file in weight_files(folder):
        for key, tensor in _header(file).items():
            if key in found:
                raise ValueError(f"{file}: tensor {key} is also in {found[key].file.name}")
            found[key] = tensor
    if (folder / INDEX).is_file():
        for key, name in read_json(folder / INDEX)["weight_map"].items():
            if key not in found or found[key].file.name != name:
                raise ValueError(f"{folder / INDEX}: tensor {key} is not in {name}")
    return found


def _header(file: Path) -> dict[str, StoredTensor]:
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if 8 + length > size:
            raise ValueError(f"{file}: truncated ({size} bytes; the header alone asks for {8 + length})")
        try:
            entries = json.loads(stream.read(length))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file}: not a safetensors file ({error})") from error
    if not isinstance(entries, dict):
        raise ValueError(f"{file}: not a safetensors file (the header is a {type(entries).__name__}, not an object)")
    entries.pop("__metadata__", None)
    for key, entry in entries.items():
        _check_entry(file, key, entry)
    end = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    if 8 + length + end != size:
        raise ValueError(f"{file}: truncated or overlong ({size} bytes; the header asks for {8 + length + end})")
    for key, entry in entries.items():
        if entry["dtype"] not in _ITEM_BYTES:
            raise ValueError(f"{file}: tensor {key} has dtype {entry['dtype']}; allowed: {', '.join(_ITEM_BYTES)}")
    return {
        key: StoredTensor(file=file, shape=tuple(entry["shape"]), dtype=entry["dtype"])
        for key, entry in entries.items()
    }


def _check_entry(file: Path, key: str, entry: object) -> None:
    """Raise ValueError unless a header's entry has a dtype, a shape and two offsets."""
    fields = entry if isinstance(entry, dict) else {}
    shape, offsets = fields.get("shape"), fields.get("data_offsets")
    whole = all(isinstance(part, list) and all(type(n) is int and n >= 0 for n in part) for part in (shape, offsets))
    if not isinstance(fields.get("dtype"), str) or not whole or len(fields["data_offsets"]) != 2:
        raise ValueError(f"{file}: tensor {key} is {entry!r}; expected dtype (text), shape and data_offsets [from, to]")


def check_weights(
    stored: Mapping[str, StoredTensor], expected: Mapping[str, tuple[int, ...]], *, tied_head: str = ""
) -> None:
    """Each expected tensor once and with its shape, and no other but a tied model's own head."""
    missing = [f"{key} {list(shape)}" for key, shape in expected.items() if key not in stored]
    extra = sorted(stored.keys() - expected.keys() - {tied_head})
    problems = [f"{listed(missing)} missing from the weight files"] if missing else []
    problems += [f"unexpected in the weight files: {listed(extra)}"] if extra else []
    if problems:
        raise ValueError(f"tensors {'; '.join(problems)}")
    for key, shape in expected.items():
        if stored[key].shape != shape:
            raise ValueError(
                f"tensor {key} in {stored[key].file.name} has shape {list(stored[key].shape)}; "
                f"the config asks for {list(shape)}"
            )


def listed(names: Sequence[str]) -> str:
    """The first names of a list and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


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
