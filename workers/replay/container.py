"""A digest-checked file of named arrays: JSON in front, then each array in byte planes under zlib.

Layout, little-endian: 8 bytes magic, u32 version, u64 length of the body, 32 bytes sha256 of the body; the body is
a u32 length, that many bytes of JSON (`header` and the table of arrays) and the compressed arrays in the order of
the table. Byte planes (all first bytes of the elements, then all second ones) make float mantissas and small ids
compress better.
"""

import hashlib
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

PREFIX = struct.Struct("<8sIQ32s")
LENGTH = struct.Struct("<I")
LEVEL = 6


class ArrayEntry(msgspec.Struct, frozen=True, array_like=True):
    """One array of the table: `stored` is its compressed length in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    stored: int


class Contents(msgspec.Struct, frozen=True):
    """The JSON part."""

    header: dict[str, Any]
    arrays: tuple[ArrayEntry, ...]


def pack(magic: bytes, version: int, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of `header` and `arrays`; equal input gives equal bytes."""
    table, blobs = [], []
    for name, array in arrays.items():
        blob = zlib.compress(_planes(array), LEVEL)
        table.append(ArrayEntry(name, array.dtype.newbyteorder("<").str, array.shape, len(blob)))
        blobs.append(blob)
    contents = msgspec.json.encode(Contents(header, tuple(table)))
    body = b"".join((LENGTH.pack(len(contents)), contents, *blobs))
    return PREFIX.pack(magic, version, len(body), hashlib.sha256(body).digest()) + body


def unpack(data: bytes, magic: bytes, version: int, what: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of what `pack` made.

    Raises ValueError, beginning with `what`, on foreign, truncated, altered bytes or another version.
    """
    if len(data) < PREFIX.size or data[:8] != magic:
        raise ValueError(f"{what}: not a file of this kind (it does not begin with {magic!r})")
    _, found, length, digest = PREFIX.unpack_from(data)
    if found != version:
        raise ValueError(f"{what}: version is {found}: allowed is {version}")
    body = data[PREFIX.size :]
    if len(body) != length:
        raise ValueError(f"{what}: {len(body)} bytes after the prefix instead of {length}: truncated or overwritten")
    if hashlib.sha256(body).digest() != digest:
        raise ValueError(f"{what}: the content does not match its sha256: altered")
    (json_length,) = LENGTH.unpack_from(body)
    contents = msgspec.json.decode(body[LENGTH.size : LENGTH.size + json_length], type=Contents)
    arrays, start = {}, LENGTH.size + json_length
    for entry in contents.arrays:
        arrays[entry.name] = _array(zlib.decompress(body[start : start + entry.stored]), entry)
        start += entry.stored
    return contents.header, arrays


def _planes(array: NDArray[Any]) -> bytes:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return little.view(np.uint8).reshape(-1, little.dtype.itemsize).T.tobytes()


def _array(planes: bytes, entry: ArrayEntry) -> NDArray[Any]:
    dtype = np.dtype(entry.dtype)
    columns = np.frombuffer(planes, dtype=np.uint8).reshape(dtype.itemsize, -1).T
    return np.ascontiguousarray(columns).view(dtype).reshape(entry.shape)
