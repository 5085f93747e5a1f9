"""Whether the report and the mirror of a run were made from what is on disk now: a digest of that, noted after success.

A kill before the report, a mirror that was out of reach, a retried failure or an edited title all show as a digest that
differs, so the same command makes up for them; a run that has nothing to do only reads.
"""

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from orchestrator.tracking_db import stands
from orchestrator.tracking_uri import location
from sweeps.belongs import read_spec
from sweeps.cell import digest_of
from sweeps.store import TEMPORARY, RunDir, atomic_write


def report_digest(run: RunDir) -> str:
    """Digest of all that a report is made from: the plan, its starts, and every byte of every stored result."""
    stored = run.results.rglob("*") if run.results.is_dir() else ()
    return digest_of_files(run, [run.spec, run.cells, run.provenance, *sorted(stored)])


def mirror_digest(run: RunDir, report: str, tracking_uri: str = "") -> str:
    """Digest of what is mirrored (that of the report, and its page) and of the place; "" when that place is gone.

    Raises ValueError when the URI cannot work.
    """
    place = location(run.root, tracking_uri, read_spec(run).tracking_uri)
    if not stands(place):
        return ""
    return digest_of([report, digest_of_files(run, [run.report]), place.uri])


def digest_of_files(run: RunDir, paths: Iterable[Path]) -> str:
    """Digest of the names and contents of the files among `paths`."""
    whole = hashlib.sha256()
    for path in paths:
        if path.is_file() and not path.name.startswith(TEMPORARY):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{path.relative_to(run.root)}\n{content}\n".encode())
    return whole.hexdigest()


def is_fresh(run: RunDir, name: str, digest: str) -> bool:
    """Whether `name` (report or mirror) was made from this."""
    return bool(digest) and noted(run).get(name) == digest


def note(run: RunDir, name: str, digest: str) -> None:
    """Remember from what `name` was made. Where that cannot be stored it is made once more next time, no worse."""
    with contextlib.suppress(OSError):
        atomic_write(run.fresh, msgspec.json.encode({**noted(run), name: digest}))


def noted(run: RunDir) -> dict[str, str]:
    """The digests by name; none when the file is missing or unreadable."""
    try:
        return msgspec.json.decode(run.fresh.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
