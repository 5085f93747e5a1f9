"""Ray's folder is short, writable and gone afterwards, whatever TMPDIR says."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import scratch
from orchestrator.scratch import MOST, OWNER, PREFIX, SOCKET_BYTES, fault_of, make_scratch, remove_abandoned


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a short path, and no variable that names another."""
    for name in scratch.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    folder = Path(tempfile.mkdtemp(prefix="s", dir="/tmp"))
    monkeypatch.setattr(scratch, "FALLBACKS", (str(folder),))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_a_folder_of_our_own_that_goes_away(short: Path) -> None:
    made = make_scratch()
    assert made.path == short / f"{PREFIX}{os.getpid()}"
    assert made.note == ""
    assert made.path.stat().st_mode & 0o077 == 0
    (made.path / "session").mkdir()
    made.remove()
    made.remove()
    assert list(short.iterdir()) == []


def test_the_longest_path_allowed_still_fits_a_socket() -> None:
    longest = "x" * MOST + f"/{PREFIX}1234567" + "/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store"
    assert len(longest) == SOCKET_BYTES


@pytest.mark.parametrize("name", ["RAY_TMPDIR", "TMPDIR"])
def test_a_path_too_long_falls_back_with_a_line(short: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    deep = short / ("d" * 85)
    deep.mkdir()
    monkeypatch.setenv(name, str(deep))
    made = make_scratch()
    assert made.path.parent == short
    assert (
        made.note == f"{name} {deep}: {len(str(deep))} bytes long, sockets allow {MOST}; Ray works in {short} instead"
    )
    made.remove()


def test_length_is_counted_in_bytes(short: Path) -> None:
    assert "bytes long" in fault_of(Path("/" + "é" * (MOST // 2)))


def test_a_space_in_the_path_is_fine(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spaced = short / "a b"
    spaced.mkdir()
    monkeypatch.setenv("TMPDIR", str(spaced))
    if len(str(spaced)) <= MOST:
        made = make_scratch()
        assert made.path.parent == spaced
        made.remove()


def test_a_folder_that_is_missing_or_full_is_named(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/tmp/no-such")
    made = make_scratch()
    assert made.note.startswith("TMPDIR /tmp/no-such: not writable (No such file or directory)")
    made.remove()
    monkeypatch.setattr(scratch, "FREE_BYTES", 2**62)
    with pytest.raises(ValueError, match=rf"no folder for Ray's sockets: .*folder {short}: only \d+ MB free"):
        make_scratch()


def test_what_a_killed_driver_left_is_removed_and_what_is_in_use_stays(short: Path) -> None:
    dead, alive, other = short / f"{PREFIX}1", short / f"{PREFIX}2", short / f"{PREFIX}3"
    for folder in (dead, alive):
        folder.mkdir()
        (folder / OWNER).touch()
    other.mkdir()
    (other / "thesis.tex").touch()
    holder = os.open(alive / OWNER, os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    unowned = [
        short / f"{PREFIX}{number}" for number in (7001, 7002)
    ]  # made again by late processes of a killed driver
    for folder, age in zip(unowned, (10.0, 2 * scratch.OLD_SECONDS), strict=True):
        folder.mkdir()
        os.utime(folder, (time.time() - age,) * 2)
    remove_abandoned(short)
    os.close(holder)
    assert sorted(short.iterdir()) == sorted((alive, other, unowned[0]))
