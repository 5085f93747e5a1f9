"""A run directory: every path of a run in one class, and the one way a file gets there.

The driver is the only writer. A file is written beside its final place, flushed to disk and renamed, and the folder is
flushed too: after a crash or on a full disk it is there wholly or not at all.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

TEMPORARY = ".tmp-"


@dataclass(frozen=True, slots=True)
class RunDir:
    """The paths of one run. Nothing else builds a path below `root`."""

    root: Path

    @property
    def spec(self) -> Path:
        """The resolved sweep (`SweepSpec`)."""
        return self.root / "spec.json"

    @property
    def cells(self) -> Path:
        """What is wanted: one `Job` a cell."""
        return self.root / "cells.json"

    @property
    def provenance(self) -> Path:
        """Code, versions and command of every start that differed from the one before (`sweeps.origin`)."""
        return self.root / "provenance.json"

    @property
    def results(self) -> Path:
        """Stored results, a folder a cell."""
        return self.root / "results"

    @property
    def events(self) -> Path:
        """One JSON object a line: what happened."""
        return self.root / "events.jsonl"

    @property
    def mlflow_db(self) -> Path:
        """The default tracking store, a mirror of the results."""
        return self.root / "mlflow.db"

    @property
    def mlflow_lock(self) -> Path:
        """Held while the mirror is written."""
        return self.root / "mlflow.lock"

    @property
    def report(self) -> Path:
        """The page."""
        return self.root / "report.html"

    @property
    def report_data(self) -> Path:
        """The complete rows behind the page."""
        return self.root / "report-data"

    @property
    def fresh(self) -> Path:
        """From what the report and the mirror were last made, as digests."""
        return self.root / "fresh.json"

    @property
    def lock(self) -> Path:
        """Who is driving."""
        return self.root / "lock"

    @property
    def quarantine(self) -> Path:
        """Files that were found where results belong and are none."""
        return self.root / "quarantine"

    def result(self, cell_id: str, item_id: str) -> Path:
        """Where the result of an item is stored."""
        return self.results / cell_id / f"{item_id}.json"


def atomic_write(path: Path, data: bytes) -> None:
    """Put `data` at `path` wholly or not at all, creating its folder. Raises OSError that names the file."""
    temporary = path.parent / f"{TEMPORARY}{path.name}-{os.getpid()}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write_synced(temporary, data)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync_folder(path.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"cannot write {path}: {reason}") from error


def _write_synced(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_temporaries(run: RunDir) -> None:
    """Remove what a killed writer left between write and rename (only while holding the lock)."""
    for folder in (run.root, run.results, *(p for p in _children(run.results) if p.is_dir())):
        for path in _children(folder):
            if path.name.startswith(TEMPORARY) and path.is_file():
                path.unlink(missing_ok=True)


def _children(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.iterdir())) if folder.is_dir() else ()
