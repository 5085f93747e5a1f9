"""A file is there wholly or not at all, whatever fails on the way."""

import errno
import os
from pathlib import Path

import pytest

from sweeps.store import TEMPORARY, RunDir, atomic_write, remove_temporaries


def test_content_and_folder_are_created(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"
    atomic_write(path, b"x" * 3_000_000)
    assert path.read_bytes() == b"x" * 3_000_000
    assert [p.name for p in path.parent.iterdir()] == ["b.json"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "open"])
def test_a_full_disk_names_the_file_and_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "result.json"
    atomic_write(path, b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OSError, match=r"cannot write .*result\.json: No space left on device"):
            atomic_write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]


def test_a_write_cut_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:3]))
    atomic_write(tmp_path / "f", b"0123456789")
    assert (tmp_path / "f").read_bytes() == b"0123456789"


def test_the_file_is_flushed_before_and_the_folder_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor: int) -> None:
        steps.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        fsync(descriptor)

    def note_replace(old: Path, new: Path) -> None:
        steps.append("rename")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    atomic_write(tmp_path / "f", b"x")
    assert steps == ["file", "rename", "folder"]


def test_leftovers_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.result("cell", "item").parent.mkdir(parents=True)
    kept = run.result("cell", "item")
    kept.write_bytes(b"{}")
    for folder in (tmp_path, run.results, kept.parent):
        (folder / f"{TEMPORARY}x-1").write_bytes(b"half")
    remove_temporaries(run)
    assert sorted(p for p in tmp_path.rglob("*") if p.is_file()) == [kept]
