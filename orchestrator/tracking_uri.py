"""Where the mirror goes: one location out of four possible places, made absolute, refused early when it cannot work.

Precedence: `--tracking-uri`, the sweep file's `tracking_uri`, the variable MLFLOW_TRACKING_URI, and else a sqlite file
in the run directory. Relative sqlite paths are taken from the run directory, so that the same store is meant from any
folder. Nothing is imported or contacted here, so a run can ask before any cell is started.
"""

import os
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sweeps.store import RunDir

PROBE_SECONDS = 4.0
DATABASES = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}
SERVERS = {"http": 80, "https": 443}
SQLITE = "sqlite:///"
OWN = "the run directory"
IGNORED = ("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A tracking store: its URI, where that was said, and notes for people about what was ignored.

    `database` is the file of a sqlite store, None for any other.
    """

    uri: str
    source: str
    notes: tuple[str, ...] = ()
    database: Path | None = None

    @property
    def is_default(self) -> bool:
        """Whether nobody said where: the store in the run directory, which is ours alone."""
        return self.source == OWN

    @property
    def artifacts(self) -> Path | None:
        """Folder for artifacts of a sqlite store; servers and databases keep theirs where they are configured to."""
        return self.database.parent / f"{self.database.stem}-artifacts" if self.database else None


def location(run_dir: Path, option: str = "", sweep_uri: str = "", environ: Mapping[str, str] = os.environ) -> Location:
    """The store to write to. Raises ValueError (one line) for a folder, a Windows path or an unknown scheme."""
    said = (
        ("--tracking-uri", option),
        ("the sweep's tracking_uri", sweep_uri),
        ("MLFLOW_TRACKING_URI", environ.get("MLFLOW_TRACKING_URI", "")),
    )
    given = [(source, uri.strip()) for source, uri in said if uri and uri.strip()]
    notes = [f"{name} is set and ignored" for name in IGNORED if environ.get(name)]
    if not given:
        own = RunDir(run_dir.absolute()).mlflow_db
        return Location(uri=f"{SQLITE}{own}", source=OWN, notes=tuple(notes), database=own)
    source, uri = given[0]
    notes += [f"{other} is {shown(value)} and ignored: {source} wins" for other, value in given[1:] if value != uri]
    uri, database = checked(uri, source, run_dir)
    return Location(uri=uri, source=source, notes=tuple(notes), database=database)


def checked(uri: str, source: str, run_dir: Path) -> tuple[str, Path | None]:
    """The absolute form of a URI, and its file for sqlite. Raises ValueError."""
    where = f"tracking URI {shown(uri)!r} ({source})"
    if re.match(r"[A-Za-z]:[\\/]", uri):
        drive_path = uri.replace("\\", "/")
        raise ValueError(f"{where} is a Windows folder: write {SQLITE}{drive_path}/mlflow.db")
    scheme = uri.partition(":")[0].partition("+")[0].lower() if "://" in uri or uri.startswith("file:") else ""
    if scheme in ("", "file"):
        folder = uri.removeprefix("file://").removeprefix("file:") or "mlruns"
        raise ValueError(
            f"{where} is a plain folder, which MLflow no longer writes to: {SQLITE}{folder}/mlflow.db works"
        )
    if scheme == "sqlite":
        path = Path(uri.partition(":///")[2])
        if not path.name:
            raise ValueError(f"{where} names no file: {SQLITE}PATH is meant")
        database = Path(os.path.normpath(run_dir.absolute() / path))
        return f"{SQLITE}{database}", database
    allowed = (*SERVERS, *DATABASES, "databricks", "sqlite")
    if scheme not in allowed:
        raise ValueError(f"{where} has the unknown scheme {scheme!r}: allowed is {' | '.join(allowed)}")
    return uri, None


def shown(uri: str) -> str:
    """A URI without its password, for people and records."""
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:***@", uri)


def unreachable(uri: str, seconds: float = PROBE_SECONDS) -> str:
    """Why nothing answers at `uri` within `seconds`, or "" when something does (or there is no host to ask)."""
    parts = urlsplit(uri)
    scheme = parts.scheme.partition("+")[0]
    port = {**SERVERS, **DATABASES}.get(scheme)
    try:
        if scheme in SERVERS:
            with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=seconds):
                return ""
        if port is not None and parts.hostname:
            with socket.create_connection((parts.hostname, parts.port or port), timeout=seconds):
                return ""
    except urllib.error.HTTPError:
        return ""  # an answer, if not a friendly one: MLflow's own message will say more
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return f"{type(reason).__name__ if not str(reason) else reason}"
    return ""
