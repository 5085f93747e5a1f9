"""What the mirror holds of a cell: params, metrics and tags as plain values, under names that any MLflow accepts.

Names are mapped one to one: a name of letters, digits, `_`, `-` and `.` stays, any other gets its unsafe characters
replaced and a digest of the whole added. Undefined metrics are left out and marked, never sent as NaN or infinity.
"""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from reports.columns import AXES, CELL_COLUMNS
from reports.labels import mark_of
from sweeps.aggregate import CellResult
from sweeps.agreement import Outputs
from sweeps.cell import NO_DRAFTER, canonical_json, digest_of
from sweeps.claims import Claim, in_words

LONGEST_NAME = 120
LONGEST_VALUE = 480  # older servers take 500 characters
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
HASHED = re.compile(r".*\.h[0-9a-f]{10}")
NO_METRICS = frozenset({*(column.name for column in AXES), "reference"})  # params, and a tag


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run of the mirror. `cut` maps each param that was too long to its full value; times are milliseconds.

    `step` is the training step that the metrics belong to; a cell has none.
    """

    name: str
    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]
    cut: dict[str, str]
    status: str
    time_ms: int
    step: int = 0


def safe_name(name: str) -> str:
    """A name that MLflow accepts, the same for the same name, different for different ones."""
    if PLAIN.fullmatch(name) and not HASHED.fullmatch(name) and len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '_', name)[:LONGEST_NAME]}.h{digest}"


def safe_value(value: str) -> str:
    """A value that MLflow accepts: NUL made visible, long text cut with its length and digest."""
    value = value.encode("utf-8", "backslashreplace").decode().replace("\0", "\u2400")
    if len(value) <= LONGEST_VALUE:
        return value
    digest = hashlib.sha256(value.encode()).hexdigest()[:16]
    return f"{value[: LONGEST_VALUE - 60]}... ({len(value)} characters, sha256 {digest})"


def params_of(values: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Safe params, and the full texts of those that were cut."""
    texts = {
        safe_name(name): value if isinstance(value, str) else canonical_json(value) for name, value in values.items()
    }
    params = {name: safe_value(text) for name, text in texts.items()}
    return params, {name: text for name, text in texts.items() if params[name] != text}


def metrics_of(values: Mapping[str, float | None]) -> tuple[dict[str, float], list[str]]:
    """Safe finite metrics, with `<name>.valid` = 0 for each undefined one, and the names of those."""
    metrics: dict[str, float] = {}
    invalid = []
    for name, value in values.items():
        safe = safe_name(name)
        if value is None or not math.isfinite(value):
            metrics[f"{safe}.valid"] = 0.0
            invalid.append(safe)
        else:
            metrics[safe] = float(value)
    return metrics, invalid


def row_of(result: CellResult, sweep_id: str) -> RunRow:
    """The child run of a cell."""
    cell = result.cell
    axes = {column.name: column.read(result) for column in AXES}
    params, cut = params_of({**axes, **dict(flat("", msgspec.to_builtins(cell)))})
    numbers = {
        column.name: column.read(result)
        for column in CELL_COLUMNS
        if column.kind != "text" and column.name not in NO_METRICS and not column.path.startswith("cell.")
        if (result.agreement is not None and result.agreement.n) or not column.path.startswith("agreement.")
        if not unasked(column.path, result)
        if result.study is not None or not column.path.startswith("study.")  # nothing was asked: nothing is undefined
    }
    metrics, invalid = metrics_of(numbers)
    drafter = cell.drafter
    tags = {
        "sweep_id": sweep_id,
        "cell_id": result.cell_id,
        "result_digest": digest_of(msgspec.to_builtins(result)),
        "claim": result.claim,
        "claim_in_words": in_words(cell, result.claim),
        "complete": str(result.n == result.n_expected).lower(),
        "bound": str(drafter.oracle).lower(),
        Claim.LOSSY.value: str(result.claim == Claim.LOSSY).lower(),
        "acceptance": drafter.acceptance,
        "max_commit": str(drafter.max_commit).lower(),
        "cross_block": str(drafter.cross_block).lower(),
        "refresh": str(drafter.refresh).lower(),
        "how": result.nfe.how,
        "cache": cell.target.cache,
        "exact_cache": str(cell.target.exact_cache).lower(),
        "reference": str(result.reference).lower(),
    }
    if invalid:
        tags["invalid_metrics"] = safe_value(", ".join(invalid))
    budget = "" if cell.is_baseline else f" D{cell.drafter.budget}"
    method = f"{drafter.name}{mark_of(cell)}"
    method += f" {drafter.acceptance}" if drafter.acceptance != NO_DRAFTER.acceptance else ""
    rule = "" if cell.decode.threshold is None else f" {cell.decode.rule}"
    name = f"{cell.task.name} {method}{budget} T{cell.decode.temperature:g}{rule} {cell.target.name}"
    name += " without cache" if result.reference else ""
    return RunRow(
        name=safe_value(name)[:200],
        params=params,
        metrics=metrics,
        tags=tags,
        cut=cut,
        status="FAILED" if result.n_failed or not result.n else "FINISHED",
        time_ms=int((result.finished_at or 0.0) * 1000),
    )


def unasked(path: str, result: CellResult) -> bool:
    """Whether a column is of a comparison that a cell does not take part in: nothing is undefined there."""
    part = path.split(".")[0]
    if part == "pace":
        return result.pace is None or not result.pace.ratio.n
    if part in ("fidelity", "against_standard"):
        outputs: Outputs | None = getattr(result, part)
        return outputs is None or not outputs.n
    return False


def flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of nested dicts, named by their path."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from flat(f"{path}.{name}" if path else str(name), inner)
    else:
        yield path, value
