"""The tensors of a checkpoint by the headers of its safetensors files, read and checked without torch.

A damaged header shows here, in one line with the file's name, and not as other numbers in a tensor: offsets must fit
shapes and dtypes, and tensors lie one behind the other without a gap, as the format asks.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from sweeps.paths import cut
from workers.targets.files import AGAIN, INDEX, listed, read_json, weight_files

ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
CHUNK = 1 << 24  # bytes of two tensors that are compared at once


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """Where a tensor lies (bytes `begin` to `end` of its file) and what it is; `dtype` in the format's spelling
    (`BF16`).
    """

    file: Path
    shape: tuple[int, ...]
    dtype: str
    begin: int
    end: int

    @property
    def numel(self) -> int:
        """Number of values."""
        return prod(self.shape)

    def equals(self, other: "StoredTensor") -> bool:
        """Whether two tensors are stored alike, to the last bit."""
        if (self.shape, self.dtype) != (other.shape, other.dtype):
            return False
        with self.file.open("rb") as own, other.file.open("rb") as theirs:
            own.seek(self.begin)
            theirs.seek(other.begin)
            lengths = (min(CHUNK, self.end - at) for at in range(self.begin, self.end, CHUNK))
            return all(own.read(length) == theirs.read(length) for length in lengths)


def stored_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Every tensor of the weight files by name. A truncated file, a damaged header, a key in two files and an index
    that lies are errors.
    """
    found: dict[str, StoredTensor] = {}
    for file in weight_files(folder):
        for key, tensor in _header(file).items():
            if key in found:
                raise ValueError(f"{file}: tensor {cut(key)} is also in {found[key].file.name}")
            found[key] = tensor
    if (folder / INDEX).is_file():
        for key, name in read_json(folder / INDEX)["weight_map"].items():
            if key not in found or found[key].file.name != name:
                raise ValueError(f"{folder / INDEX}: tensor {cut(key)} is not in {name}")
    return found


def check_weights(
    stored: Mapping[str, StoredTensor],
    expected: Mapping[str, tuple[int, ...]],
    *,
    optional: Mapping[str, tuple[int, ...]] | None = None,
) -> None:
    """Each expected tensor once and with its shape, and no other but the `optional` ones, with theirs."""
    known = {**(optional or {}), **expected}
    missing = [f"{key} {list(shape)}" for key, shape in expected.items() if key not in stored]
    problems = [f"{listed(missing)} missing from the weight files"] if missing else []
    extra = sorted(stored.keys() - known.keys())
    problems += [f"unexpected in the weight files: {listed(extra)}"] if extra else []
    if problems:
        raise ValueError(f"tensors {'; '.join(problems)}")
    for key, tensor in stored.items():
        if tensor.shape != known[key]:
            raise ValueError(
                f"tensor {key} in {tensor.file.name} has shape {list(tensor.shape)}; "
                f"the config asks for {list(known[key])}"
            )


def _header(file: Path) -> dict[str, StoredTensor]:
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if 8 + length > size:
            raise ValueError(f"{file}: truncated ({size} bytes; the header alone asks for {8 + length}): {AGAIN}")
        try:
            entries = json.loads(stream.read(length))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file}: not a safetensors file ({error}): {AGAIN}") from error
    if not isinstance(entries, dict):
        raise ValueError(f"{file}: not a safetensors file (the header is a {type(entries).__name__}, not an object)")
    notes = entries.pop("__metadata__", None)
    if notes is not None and not (isinstance(notes, dict) and all(isinstance(note, str) for note in notes.values())):
        raise ValueError(f"{file}: __metadata__ is {cut(repr(notes))}; allowed is an object of texts")
    for key, entry in entries.items():
        _check_entry(file, key, entry)
    end = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    if 8 + length + end != size:
        asked = f"{size} bytes; the header asks for {8 + length + end}"
        raise ValueError(f"{file}: truncated or overlong ({asked}): {AGAIN}")
    _check_places(file, entries)
    return {
        key: StoredTensor(
            file=file,
            shape=tuple(entry["shape"]),
            dtype=entry["dtype"],
            begin=8 + length + entry["data_offsets"][0],
            end=8 + length + entry["data_offsets"][1],
        )
        for key, entry in entries.items()
    }


def _check_entry(file: Path, key: str, entry: object) -> None:
    """Raise ValueError unless a header's entry has a dtype that we read, a shape and two offsets."""
    fields = entry if isinstance(entry, dict) else {}
    shape, offsets = fields.get("shape"), fields.get("data_offsets")
    whole = all(isinstance(part, list) and all(type(n) is int and n >= 0 for n in part) for part in (shape, offsets))
    where = f"{file}: tensor {cut(key)}"
    if not isinstance(fields.get("dtype"), str) or not whole or len(fields["data_offsets"]) != 2:
        asked = "expected dtype (text), shape and data_offsets [from, to]"
        raise ValueError(f"{where} is {cut(repr(entry))}; {asked}")
    if fields["dtype"] not in ITEM_BYTES:
        raise ValueError(f"{where} has dtype {cut(fields['dtype'])}; allowed: {', '.join(ITEM_BYTES)}")


def _check_places(file: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ValueError unless the tensors lie one behind the other, each as long as its shape and dtype ask."""
    at = 0
    for key, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        length = prod(entry["shape"]) * ITEM_BYTES[entry["dtype"]]
        if (begin, end) != (at, at + length):
            lies = f"tensor {cut(key)} is at bytes {begin} to {end}"
            asked = f"{entry['dtype']} {cut(str(entry['shape']))} takes {length}, and the one before it ends at {at}"
            raise ValueError(f"{file}: damaged header ({lies}; {asked}): {AGAIN}")
        at = end
