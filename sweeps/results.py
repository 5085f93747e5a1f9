"""Stored results: how an item result is written, checked, read back, and which prompts it covers.

A file holds one `ItemResult` and the sha256 of its bytes. Whatever is not exactly what an item of this run may have
left is a `Problem`, which the driver moves aside and runs again; a reader that is no driver (a report) only skips it.
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sweeps.records import Failure, GenerationRecord, ItemKind, ItemResult, TimingRecord, WorkItem
from sweeps.store import TEMPORARY, RunDir
from sweeps.study import StudyRecord

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What a result file holds: the checksum covers the bytes of `result` as they stand in the file."""

    schema: int
    sha256: str
    result: msgspec.Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A path under `results/` that is no result of this run, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which prompts of one cell are stored: `good` maps kind and prompt to repeats (1 but for timings).

    `failed` holds the prompts whose last word is a failure. (The numbers themselves: `sweeps.merge`.)
    """

    good: dict[tuple[ItemKind, int], int] = field(default_factory=dict)
    failed: dict[tuple[ItemKind, int], Failure] = field(default_factory=dict)

    def has(self, kind: ItemKind, index: int, repeats: int) -> bool:
        """Whether a prompt has a good row (for timings: of at least `repeats` repeats)."""
        return self.good.get((kind, index), 0) >= (repeats if kind == "timing" else 1)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Everything under `results/`: results, which prompts they cover by cell id, and what is no result."""

    results: list[ItemResult] = field(default_factory=list)
    cells: dict[str, Coverage] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, result: ItemResult) -> None:
        """Count a result in. Raises ValueError, changing nothing, when it holds a good row that is there already."""
        coverage = self.rows(result.cell_id)
        failed = {failure.prompt_index: failure for failure in result.failures}
        if -1 in failed:
            failed = dict.fromkeys(range(result.first, result.last), failed[-1])
        timed = {row.prompt_index: len(row.variant_seconds) for row in result.timings}
        good = {index: timed.get(index, 1) for index in range(result.first, result.last) if index not in failed}
        twice = [index for index, repeats in good.items() if coverage.good.get((result.kind, index)) == repeats]
        if twice:
            note = " and its output differs" if self._differs(result) else ""
            raise ValueError(f"duplicate: prompts {twice} are stored already{note}")
        for index, repeats in good.items():
            coverage.good[result.kind, index] = max(repeats, coverage.good.get((result.kind, index), 0))
            coverage.failed.pop((result.kind, index), None)
        for index, failure in failed.items():
            if result.kind == "timing" or (result.kind, index) not in coverage.good:  # timings may be asked again
                coverage.failed[result.kind, index] = failure
        self.cells[result.cell_id] = coverage
        self.results.append(result)

    def rows(self, cell_id: str) -> Coverage:
        """Which prompts of a cell are stored."""
        return self.cells.get(cell_id) or Coverage()

    def _differs(self, result: ItemResult) -> bool:
        known = {
            row.prompt_index: row.output_ids
            for other in self.results
            if other.cell_id == result.cell_id
            for row in other.generations
        }
        return any(known.get(row.prompt_index, row.output_ids) != row.output_ids for row in result.generations)


def encode_result(result: ItemResult) -> bytes:
    """The content of a result file."""
    raw = msgspec.json.encode(result)
    envelope = Envelope(schema=SCHEMA, sha256=hashlib.sha256(raw).hexdigest(), result=msgspec.Raw(raw))
    return msgspec.json.encode(envelope)


def decode_result(data: bytes) -> ItemResult:
    """The result in a file's content. Raises ValueError saying what is wrong."""
    try:
        envelope = msgspec.json.decode(data, type=Envelope, strict=True)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"not a whole result file ({error})") from None
    if envelope.schema != SCHEMA:
        raise ValueError(f"schema {envelope.schema}, this version reads {SCHEMA}")
    raw = bytes(envelope.result)
    if hashlib.sha256(raw).hexdigest() != envelope.sha256:
        raise ValueError("checksum does not match")
    return parse_result(raw)


def parse_result(raw: bytes) -> ItemResult:
    """An ItemResult from its JSON, every type checked. Raises ValueError."""
    try:
        return msgspec.json.decode(raw, type=ItemResult, strict=True)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"not an item result ({error})") from None


def check_result(item: WorkItem, result: ItemResult) -> None:
    """Raise ValueError unless `result` answers `item`: each of its prompts once, as a row of its kind or a failure."""
    for name in ("item_id", "cell_id", "kind", "first", "last"):
        if getattr(result, name) != getattr(item, name):
            raise ValueError(f"{name} is {getattr(result, name)!r}, asked was {getattr(item, name)!r}")
    check_rows(result)
    short = [row.prompt_index for row in result.timings if len(row.variant_seconds) != item.repeats]
    if short:
        raise ValueError(f"prompts {short} were not timed {item.repeats} times")


def check_rows(result: ItemResult) -> None:
    """Raise ValueError unless the rows cover the result's own prompt range, each prompt once."""
    rows = {"decode": result.generations, "timing": result.timings, "study": result.studies, "trace": result.traces}
    stray = sum(len(of_kind) for kind, of_kind in rows.items() if kind != result.kind)
    good = [row.prompt_index for row in rows_of(result)]
    failed = [failure.prompt_index for failure in result.failures]
    if failed == [-1] and not good and not stray:
        return
    wanted = list(range(result.first, result.last))
    if result.kind == "trace" or stray or sorted(good + failed) != wanted:
        found = f"{sorted(good)} with failures {sorted(failed)} and {stray} rows of another kind"
        raise ValueError(f"{result.kind} rows are {found}, expected are prompts {result.first} to {result.last - 1}")
    for row in result.timings:
        if len(row.variant_seconds) != len(row.baseline_seconds):
            raise ValueError(f"prompt {row.prompt_index}: unequal numbers of variant and baseline timings")


def rows_of(result: ItemResult) -> Sequence[GenerationRecord | TimingRecord | StudyRecord]:
    """The rows of the result's own kind (traces are no rows: they are files)."""
    if result.kind == "timing":
        return result.timings
    return result.studies if result.kind == "study" else result.generations


def verified(item: WorkItem, result: ItemResult) -> bytes:
    """The file content for a worker's answer, read back and checked. Raises ValueError when it is no answer."""
    try:
        data = encode_result(result)
    except (TypeError, ValueError, UnicodeError, RecursionError) as error:
        raise ValueError(f"not an item result ({error})") from None
    check_result(item, decode_result(data))
    return data


def load_results(run: RunDir, *, code_digests: Collection[str] = ()) -> Loaded:
    """Read all results of a run; nothing is changed on disk.

    A result made by code outside `code_digests` (when given) is foreign.
    """
    loaded = Loaded()
    found: list[tuple[Path, ItemResult]] = []
    for path in _files(run, loaded):
        try:
            result = _read(path, code_digests)
        except ValueError as error:
            loaded.problems.append(Problem(path=path, reason=str(error)))
        else:
            found.append((path, result))
    for path, result in sorted(found, key=lambda pair: (pair[1].finished_at, pair[0])):  # the last word counts
        try:
            loaded.add(result)
        except ValueError as error:
            loaded.problems.append(Problem(path=path, reason=str(error)))
    return loaded


def _files(run: RunDir, loaded: Loaded) -> Iterator[Path]:
    for folder in sorted(run.results.iterdir()) if run.results.is_dir() else ():
        if not folder.is_dir():
            loaded.problems.append(Problem(path=folder, reason="not a cell's folder"))
            continue
        yield from (path for path in sorted(folder.iterdir()) if not path.name.startswith(TEMPORARY))


def _read(path: Path, code_digests: Collection[str]) -> ItemResult:
    if path.suffix != ".json" or not path.is_file():
        raise ValueError("not a result file")
    result = decode_result(path.read_bytes())
    if path.name != f"{result.item_id}.json" or path.parent.name != result.cell_id:
        raise ValueError(f"holds the result of item {result.item_id} of cell {result.cell_id}")
    check_rows(result)
    if code_digests and result.provenance and result.provenance.code_digest not in code_digests:
        raise ValueError(f"made by code {result.provenance.code_digest[:12]}, which never ran here")
    return result
