"""The sqlite file of a mirror: whole or not there, and made anew where it is no store; a named one is left alone."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.tracking_db import blocked, is_store, ready
from orchestrator.tracking_uri import Location, location

JOURNAL = b"left by a kill"


def tables(uri: str) -> None:
    """A store as far as we look: one experiment."""
    with closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as opened, opened:
        opened.execute("create table experiments (name text)")
        opened.execute("insert into experiments values ('Default')")


def killed(uri: str) -> None:
    """Making that stops half way, as a full disk does."""
    with closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as opened, opened:
        opened.execute("create table experiments (name text)")
    raise OSError("no space left on device")


@pytest.fixture
def place(tmp_path: Path) -> Location:
    return location(tmp_path / "run [1]", environ={})


@pytest.fixture
def database(place: Location) -> Path:
    assert place.database is not None
    place.database.parent.mkdir()
    return place.database


def names(database: Path) -> set[str]:
    return {path.name for path in database.parent.iterdir()}


def test_a_new_store_appears_whole(place: Location, database: Path) -> None:
    seen = []

    def make(uri: str) -> None:
        tables(uri)
        seen.append(names(database))

    assert ready(place, make) == place
    assert seen == [{"mlflow.db.new"}]
    assert names(database) == {"mlflow.db"}
    assert is_store(database)
    assert ready(place, killed) == place  # one that is there is not made


def test_making_that_fails_leaves_nothing_and_the_next_one_works(place: Location, database: Path) -> None:
    with pytest.raises(OSError, match="no space left"):
        ready(place, killed)
    assert names(database) == set()
    database.with_name("mlflow.db.new").write_bytes(b"of a kill")
    database.with_name("mlflow.db.new-journal").write_bytes(JOURNAL)
    assert ready(place, tables).notes == place.notes
    assert names(database) == {"mlflow.db"}


def half_made(database: Path) -> None:
    with pytest.raises(OSError, match="no space"):
        killed(f"sqlite:///{database}")


@pytest.mark.parametrize("spoil", ["garbage", "half", "empty", "torn"])
def test_what_is_no_store_is_set_aside_with_its_journal_and_made_anew(
    place: Location, database: Path, spoil: str
) -> None:
    if spoil == "torn":
        tables(place.uri)
        with closing(sqlite3.connect(database)) as opened, opened:
            opened.executemany("insert into experiments values (?)", [("x" * 3000,)] * 50)
        database.write_bytes(database.read_bytes()[:-40_000])
    elif spoil == "half":
        half_made(database)
    else:
        database.write_bytes(b"garbage" * 1000 if spoil == "garbage" else b"")
    before = database.read_bytes()
    database.with_name("mlflow.db-wal").write_bytes(b"")
    mended = ready(place, tables)
    assert mended.notes == ("mlflow.db was no whole tracking store: set aside as mlflow.db.broken, and made anew",)
    assert database.with_name("mlflow.db.broken").read_bytes() == before
    assert "mlflow.db-wal" not in names(database)
    assert is_store(database)


def test_a_store_in_use_is_no_broken_one(place: Location, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.tracking_db.BUSY_SECONDS", 0.05)
    tables(place.uri)
    with closing(sqlite3.connect(database)) as other:
        other.execute("begin exclusive")
        assert ready(place, killed) == place


def test_a_named_store_is_never_touched(tmp_path: Path) -> None:
    named = location(tmp_path, f"sqlite:///{tmp_path}/own.db", environ={})
    (tmp_path / "own.db").write_bytes(b"garbage")
    assert ready(named, killed) == named
    assert (tmp_path / "own.db").read_bytes() == b"garbage"
    server = location(tmp_path, "http://127.0.0.1:1", environ={})
    assert ready(server, killed) == server


def test_a_folder_in_its_place_is_said(place: Location, database: Path) -> None:
    assert blocked(place) == ""
    database.mkdir()
    assert blocked(place) == "a folder is in its place: move mlflow.db away"
