"""What a start of a run was made with (code, versions, command), and how two starts differ.

Results are only comparable when the same code and libraries made them, so the digest of our sources and the versions
that can change a number are written down, and a difference on resume is named, never mixed in silently.
"""

import hashlib
import platform
import socket
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("sweeps", "workers")  # what can change a generation
RECORDED = ("msgspec", "numpy", "ray", "safetensors", "tokenizers", "torch", "transformers")
MATTERS = ("torch", "transformers")  # a resume with another version of these is refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One start: `sources` maps each source file of `PACKAGES` to its digest, `code_digest` stands for all of them.

    `revision` is the git commit of the checkout, with `-dirty` where files differ from it ("" outside of one).
    """

    code_digest: str
    sources: dict[str, str]
    versions: dict[str, str]
    command: tuple[str, ...] = ()
    host: str = ""
    started_at: float = 0.0
    revision: str = ""


@cache
def source_digests() -> dict[str, str]:
    """Relative path to short sha256 of every Python file of `PACKAGES`, without importing them."""
    digests = {}
    for package in PACKAGES:
        spec = find_spec(package)
        for folder in map(Path, (spec and spec.submodule_search_locations) or ()):
            for path in sorted(folder.rglob("*.py")):
                name = f"{package}/{path.relative_to(folder).as_posix()}"
                digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return digests


@cache
def code_digest() -> str:
    """One digest for the sources that can change a generation, as they were when first asked in this process."""
    lines = "\n".join(f"{name} {digest}" for name, digest in sorted(source_digests().items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:20]


def library_versions() -> dict[str, str]:
    """Installed versions of the libraries that are recorded ("" when absent), without importing them."""
    found = {"python": platform.python_version()}
    for name in RECORDED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def git_revision() -> str:
    """The commit this code is checked out at, `-dirty` when a file differs, "" when it is no checkout of its own."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return ""
    command = ("git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def origin_of(command: tuple[str, ...], started_at: float) -> Origin:
    """The origin of a start in this process."""
    return Origin(
        code_digest=code_digest(),
        sources=dict(source_digests()),
        versions=library_versions(),
        command=command,
        host=socket.gethostname(),
        started_at=started_at,
        revision=git_revision(),
    )


def code_changes(old: Origin, new: Origin) -> tuple[str, ...]:
    """What makes results of two starts incomparable, one named difference a line (empty: nothing)."""
    changes = [
        f"{name} version: {old.versions.get(name, '')} -> {new.versions.get(name, '')}"
        for name in MATTERS
        if old.versions.get(name) != new.versions.get(name)
    ]
    if old.code_digest != new.code_digest:
        changes.append(f"code digest: {old.code_digest[:12]} -> {new.code_digest[:12]}")
    for name in sorted(old.sources.keys() | new.sources.keys()):
        before, after = old.sources.get(name), new.sources.get(name)
        if before != after:
            how = "added" if before is None else "removed" if after is None else "changed"
            changes.append(f"code {how}: {name}")
    return tuple(changes)
