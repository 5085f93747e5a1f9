"""The sqlite file of a mirror: made whole or not at all, and made anew where it is no store any more.

Making the tables of a store takes MLflow seconds and many transactions, and it cannot go on from a half-made file. So a
new one is made under another name and renamed. The one in the run directory is a mirror of files: where it cannot be
read, or holds nothing yet, it is set aside and made again. A store that somebody named is never touched.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from orchestrator.tracking_uri import SQLITE, Location
from sweeps.store import sync_folder

BROKEN, NEW = ".broken", ".new"
BESIDE = ("", "-journal", "-wal", "-shm")  # what sqlite keeps of one database
BUSY_SECONDS = 5.0


def blocked(place: Location) -> str:
    """Why no sqlite file can be at its place, "" when it can."""
    database = place.database
    if database is None or database.is_file() or not database.exists():
        return ""
    return f"a {'folder' if database.is_dir() else 'special file'} is in its place: move {database.name} away"


def stands(place: Location) -> bool:
    """Whether what was written to a place can still be there; of one that somebody named we only see the file."""
    database = place.database
    return database is None or (database.is_file() and (not place.is_default or is_store(database)))


def ready(place: Location, make: Callable[[str], None]) -> Location:
    """`place` with a whole store in it, under its lock; notes say what was done. `make` makes the tables at a URI."""
    database = place.database
    if database is None:
        return place
    if database.exists() and not stands(place):
        aside(database)
        note = f"{database.name} was no whole tracking store: set aside as {database.name}{BROKEN}, and made anew"
        place = replace(place, notes=(*place.notes, note))
    if not database.exists():
        create(database, make)
    return place


def is_store(database: Path) -> bool:
    """Whether a file is undamaged and has experiments; making a store ends with its first one."""
    try:
        with closing(sqlite3.connect(database, timeout=BUSY_SECONDS)) as opened:
            whole = opened.execute("pragma quick_check(1)").fetchone() == ("ok",)
            return whole and opened.execute("select 1 from experiments limit 1").fetchone() is not None
    except sqlite3.Error as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)  # in use


def aside(database: Path) -> None:
    """Rename a file that is no store, with what sqlite keeps beside it: a journal left there would spoil the next."""
    for end in BESIDE:
        path = database.with_name(database.name + end)
        if path.exists():
            path.replace(database.with_name(f"{database.name}{BROKEN}{end}"))


def create(database: Path, make: Callable[[str], None]) -> None:
    """Make a store under another name and rename it, also away with what a kill left of earlier tries."""
    temporary = database.with_name(database.name + NEW)
    remove(temporary)
    try:
        make(f"{SQLITE}{temporary}")
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        remove(database)  # what sqlite kept beside one that is gone
        temporary.replace(database)
    finally:
        remove(temporary)
    sync_folder(database.parent)


def remove(database: Path) -> None:
    """Remove a database with what sqlite keeps beside it."""
    for end in BESIDE:
        database.with_name(database.name + end).unlink(missing_ok=True)
