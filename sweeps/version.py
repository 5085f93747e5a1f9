"""Whether a run directory was made with the cell ids of this version.

Ids change when what enters them does (`sweeps.cell.ID_VERSION`), and then nothing stored is found again: a directory of
another version is refused in one line, by whoever reads it, before anything is compared, advised or written.
"""

from typing import Any

import msgspec

from sweeps.cell import ID_VERSION, Cell
from sweeps.store import RunDir


class Recorded(msgspec.Struct):
    """What provenance.json says; directories made before it said so have None."""

    id_version: int | None = None


class StoredJob(msgspec.Struct):
    """What an entry of cells.json says of its cell, in whatever words its version had."""

    cell: Any
    cell_id: str


def check_version(run: RunDir) -> None:
    """Raise ValueError when the cells of `run` have ids of another version."""
    version = recorded_version(run)
    if version == ID_VERSION or (version is None and not has_foreign_ids(run)):
        return
    which = "a later" if version is not None and version > ID_VERSION else "an earlier"
    theirs = f"cell ids of version {version}, now {ID_VERSION}" if version else f"cell ids not of version {ID_VERSION}"
    raise ValueError(f"{run.root} was made by {which} version ({theirs}): use that version or another --out")


def recorded_version(run: RunDir) -> int | None:
    """The version that is written down; None where none is, or where it cannot be read (its reader will say so)."""
    try:
        return msgspec.json.decode(run.provenance.read_bytes(), type=Recorded).id_version
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def has_foreign_ids(run: RunDir) -> bool:
    """Whether a stored cell has another id than it would have today, or is none of today's any more."""
    try:
        jobs = msgspec.json.decode(run.cells.read_bytes(), type=tuple[StoredJob, ...])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return False  # no directory of any version, or damaged: whoever reads it says which
    return any(id_today(job.cell) != job.cell_id for job in jobs)


def id_today(cell: Any) -> str:
    """The id of a stored cell, "" when it cannot be one."""
    try:
        return msgspec.convert(cell, type=Cell, strict=True).cell_id
    except (msgspec.MsgspecError, ValueError):
        return ""
