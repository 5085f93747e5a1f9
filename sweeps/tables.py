"""What a sweep's names may stand for, as plain data.

`sweeps` may not import the tables of `workers.catalog`, so the orchestrator hands over what reading and multiplying a
sweep need of them: the built-in targets, which options each drafter kind reads, which task kinds need a file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from sweeps.paths import cut
from sweeps.spec import CommitRule, TargetSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactKind:
    """What a drafter needs beside its options: what it is called, and the command that makes one."""

    noun: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterKind:
    """`uses` names the DrafterSpec options this kind reads; the others are neutral and may not be set.

    `artifact` is what it cannot work without; an `oracle` is a bound, no method. `commits` are the commit rules that it
    drafts for.
    """

    uses: tuple[str, ...] = ()
    commits: tuple[CommitRule, ...] = ("standard",)
    artifact: ArtifactKind | None = None
    oracle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind:
    """`needs_path`: the rows come from a file, whose path and field names the sweep gives."""

    needs_path: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The built-in names. Drafter and task names are kinds too: without an entry of the sweep they take defaults."""

    targets: Mapping[str, TargetSpec]
    drafters: Mapping[str, DrafterKind]
    tasks: Mapping[str, TaskKind]


def nearest(name: str, allowed: Iterable[str]) -> str:
    """`; did you mean X?` for the closest allowed name, or nothing when none is close."""
    close = get_close_matches(name, list(allowed), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def unknown(what: str, name: str, allowed: Iterable[str]) -> str:
    """The one line for a name that does not exist: what is allowed, and the nearest."""
    names = list(allowed)
    return f"unknown {what} {cut(name)!r}: allowed are {', '.join(names) or 'none'}{nearest(name, names)}"
