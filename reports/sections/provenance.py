"""What made the numbers: code, versions, machines, digests, methods, and the exact command."""

from datetime import UTC, datetime
from shlex import join

from reports.frames import Frames
from reports.model import Facts, Group, Listing, Part, SectionInfo
from reports.text import visible
from sweeps.belongs import History
from sweeps.records import Provenance
from sweeps.statistics import ALIKE, BOOTSTRAP_SEED, FEWEST, LEVEL, RESAMPLES

MOST_WORKERS = 20


def info(frames: Frames) -> SectionInfo:
    """Starts, workers, models and methods."""
    groups = [Group(title="Command", parts=tuple(starts(frames.history)))] if frames.history.starts else []
    groups.append(Group(title="Workers", parts=tuple(Facts(rows=worker(p)) for p in workers(frames)[:MOST_WORKERS])))
    groups.append(Group(title="Models and data", parts=(Facts(rows=tuple(digests(frames))),)))
    groups.append(Group(title="Methods", parts=(Facts(rows=METHODS),)))
    more = len(workers(frames)) - MOST_WORKERS
    return SectionInfo(
        key="provenance",
        title="Provenance",
        lead="Every number on this page was measured; none was replayed or modelled.",
        groups=tuple(group for group in groups if group.parts),
        cuts=(f"{more} more kinds of worker",) if more > 0 else (),
    )


METHODS = (
    ("NFE", "target forwards over the active block; prefill and passes that only fill the cache are counted apart"),
    ("NFE reduction", "mean draft-free NFE over mean NFE, over prompts decoded on both sides"),
    ("Throughput", "kept tokens over the median seconds of the repeats, both summed over prompts"),
    (
        "Over standard decoding",
        "throughput over the standard rule's without drafts: threshold decoding timed beside it; a drafted cell's is "
        "the product of that and its own ratio over threshold decoding, on the prompts that both have",
    ),
    (
        "Intervals",
        f"{LEVEL:.0%}; paired bootstrap over prompts (and repeats, for throughput), {RESAMPLES} resamples, seed "
        f"{BOOTSTRAP_SEED}, its standard error of the log times Student's t; none from fewer than {FEWEST} prompts, "
        f"nor where fewer than {ALIKE} all agree; Wilson for correctness",
    ),
    ("Failed prompts", "never enter a mean; ratios use prompts that both sides have"),
)


def starts(history: History) -> list[Part]:
    """The command and the code of each start."""
    parts: list[Part] = []
    for start in history.starts:
        when = datetime.fromtimestamp(start.started_at, UTC).strftime("%Y-%m-%d %H:%M UTC") if start.started_at else ""
        versions = ", ".join(f"{name} {version}" for name, version in sorted(start.versions.items()) if version)
        rows = [
            ("Host", start.host),
            ("Started", when),
            ("Code digest", start.code_digest),
            ("Git revision", start.revision),
            ("Versions", versions),
        ]
        if start.command:
            parts.append(Listing(title="The exact command", text=visible(join(start.command), 4000)))
        parts.append(Facts(rows=tuple((name, visible(value, 1000)) for name, value in rows if value)))
    return parts


def workers(frames: Frames) -> list[Provenance]:
    """The different provenances of all results."""
    seen: list[Provenance] = []
    for rows in frames.rows.values():
        seen += [provenance for provenance in rows.provenances if provenance not in seen]
    return seen


def worker(provenance: Provenance) -> tuple[tuple[str, str], ...]:
    """One kind of worker."""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(provenance.versions.items()) if version)
    return (
        ("Host", visible(provenance.host)),
        ("Device", visible(provenance.device)),
        ("Threads", str(provenance.threads)),
        ("Code digest", visible(provenance.code_digest)),
        ("Versions", visible(versions, 1000)),
    )


def digests(frames: Frames) -> list[tuple[str, str]]:
    """Targets, tasks and drafters with their digests, each once."""
    rows = {}
    for result in frames.results:
        cell = result.cell
        target, task, drafter = cell.target, cell.task, cell.drafter
        where = f" at {target.path or target.name}" if target.path else ""
        kind = f"{target.dtype}, {target.cache} cache" if target.cache else target.dtype
        rows[f"Target {target.name}"] = f"weights {target.digest}, {kind}{where} {target.revision}".strip()
        rows[f"Task {task.name}"] = f"data {task.digest}"
        if drafter.digest:
            rows[f"Drafter {drafter.name}"] = f"checkpoint {drafter.digest}"
    return [(visible(name), visible(value)) for name, value in rows.items()]
