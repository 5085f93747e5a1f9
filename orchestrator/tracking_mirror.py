"""What is written to the mirror, in the few verbs of a `Store`: find runs by their tags, write what is missing.

A run whose result changed, the sweep's own among them, is deleted (MLflow can restore it) and written anew, because
params and old metric values cannot be changed; so are runs of cells that the sweep no longer has, without a successor.
The digest is the last thing written, so a run that was cut short counts as missing.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from orchestrator.tracking_rows import RunRow, metrics_of, row_of, safe_value
from sweeps.aggregate import CellResult
from sweeps.belongs import History
from sweeps.cell import digest_of
from sweeps.spec import SweepSpec
from sweeps.store import RunDir

PARENT = "mlflow.parentRunId"
REPLACED = ("mlflow.runName", PARENT)
MOST_NAMES = 50
NO_ROW = RunRow(name="", params={}, metrics={}, tags={}, cut={}, status="", time_ms=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment as the store knows it."""

    experiment_id: str
    active: bool
    artifacts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A run that is there."""

    run_id: str
    tags: Mapping[str, str]


class Store(Protocol):
    """The verbs of a tracking store that a mirror needs."""

    def experiment(self, name: str) -> Experiment | None:
        """The experiment of this name, also a deleted one."""

    def create_experiment(self, name: str) -> Experiment:
        """Make an experiment."""

    def runs(self, experiment_id: str, sweep_id: str) -> list[Found]:
        """All active runs that carry this sweep id."""

    def create_run(self, experiment_id: str, row: RunRow, tags: Mapping[str, str]) -> str:
        """Make a run with a row's name, status and time, ended unless it is RUNNING; returns its id."""

    def finish(self, run_id: str, row: RunRow) -> None:
        """End a run with a row's status and time."""

    def log(self, run_id: str, row: RunRow, tags: Mapping[str, str]) -> None:
        """Write a row's params and metrics, and `tags`."""

    def delete(self, run_id: str) -> None:
        """Delete a run (restorable)."""

    def attach(self, run_id: str, path: Path, folder: str = "") -> None:
        """Store a file with a run."""

    def attach_text(self, run_id: str, name: str, text: str) -> None:
        """Store a text with a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a mirroring did, in cells; `removed` have no result in this sweep any more.

    `trouble` says what could not be attached (numbers are there).
    """

    written: int
    unchanged: int
    waiting: int
    removed: int
    notes: tuple[str, ...]
    trouble: str = ""


def mirror(store: Store, run: RunDir, spec: SweepSpec, history: History, results: tuple[CellResult, ...]) -> Written:
    """Write what is missing of a sweep and delete what is no longer of it."""
    experiment, notes = find_experiment(store, spec.name)
    sweep_id = sweep_id_of(spec, history)
    rows = [row_of(result, sweep_id) for result in results if result.finished_at]
    known: dict[str, list[Found]] = {}
    for found in store.runs(experiment.experiment_id, sweep_id):
        known.setdefault(found.tags.get("cell_id", ""), []).append(found)
    head = parent_row(spec, sweep_id, results, run)
    parents = known.pop("", [])
    keep = with_result(head, parents)
    tags = {**added_tags(head, parents), **identity(head)}
    parent_id = keep[0].run_id if keep else store.create_run(experiment.experiment_id, head, tags)
    written = sum(write_child(store, experiment, parent_id, row, known.pop(row.tags["cell_id"], [])) for row in rows)
    for found in [*(f for f in parents if f not in keep), *(f for left in known.values() for f in left)]:
        store.delete(found.run_id)  # a parent last: until its children have moved they must not look orphaned
    trouble = "" if keep else write_parent(store, parent_id, head, run)
    return Written(
        written=written,
        unchanged=len(rows) - written,
        waiting=len(results) - len(rows),
        removed=len(known),
        notes=notes,
        trouble=trouble,
    )


def find_experiment(store: Store, name: str) -> tuple[Experiment, tuple[str, ...]]:
    """The sweep's experiment, made if need be. A deleted one keeps its name: the next free one is taken, and said."""
    notes: list[str] = []
    for number in range(1, MOST_NAMES):
        tried = name if number == 1 else f"{name} ({number})"
        found = store.experiment(tried) or store.create_experiment(tried)
        if found.active:
            return found, tuple([*notes, f"writing to experiment {tried!r}"] if notes else [])
        restore = f"mlflow experiments restore --experiment-id {found.experiment_id}"
        notes.append(f"experiment {tried!r} was deleted ({restore} brings it back)")
    raise ValueError(f"experiments {name!r} to {tried!r} were all deleted: restore one of them")


def sweep_id_of(spec: SweepSpec, history: History) -> str:
    """An id that stays while a run directory goes on: of its name and its first start."""
    first = history.starts[0] if history.starts else None
    return digest_of([spec.name, first.started_at if first else 0, first.host if first else ""])[:20]


def write_child(store: Store, experiment: Experiment, parent_id: str, row: RunRow, known: list[Found]) -> bool:
    """Write one cell unless it is there with this result, then put it below this parent. People's tags move along."""
    keep = with_result(row, known)
    for found in known:
        if found not in keep:
            store.delete(found.run_id)
    if keep:
        if keep[0].tags.get(PARENT) != parent_id:
            store.log(keep[0].run_id, NO_ROW, {PARENT: parent_id})
        return False
    added = added_tags(row, known)
    run_id = store.create_run(experiment.experiment_id, row, {**added, **identity(row), PARENT: parent_id})
    if row.cut:
        store.attach_text(
            run_id, "params.json", msgspec.json.format(msgspec.json.encode({**row.params, **row.cut})).decode()
        )
    store.log(run_id, row, row.tags)
    return True


def with_result(row: RunRow, known: list[Found]) -> list[Found]:
    """The run that holds this very result, if there is one."""
    return [found for found in known if found.tags.get("result_digest") == row.tags["result_digest"]][:1]


def added_tags(row: RunRow, known: list[Found]) -> dict[str, str]:
    """Tags that people gave to the runs that `row` replaces."""
    return {name: text for found in known for name, text in found.tags.items() if name not in (*row.tags, *REPLACED)}


def identity(row: RunRow) -> dict[str, str]:
    """The tags by which a run is found again; without the digest, which says that it is whole."""
    return {name: row.tags[name] for name in ("sweep_id", "cell_id") if name in row.tags}


def parent_row(spec: SweepSpec, sweep_id: str, results: tuple[CellResult, ...], run: RunDir) -> RunRow:
    """The row of the sweep itself. Its digest covers every cell's result and the files attached."""
    metrics, _ = metrics_of(
        {
            "cells": len(results),
            "cells_complete": sum(result.n == result.n_expected for result in results),
            "prompts": sum(result.n for result in results),
            "prompts_failed": sum(result.n_failed for result in results),
            "prompts_missing": sum(result.n_missing for result in results),
            "mismatches": sum(len(r.identity.mismatches) for r in results if r.claim_holds is not None),
            "claims_broken": sum(result.claim_holds is False for result in results),
            "alarms": sum(result.n_alarms for result in results),
        }
    )
    files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in attached(run) if path.is_file()]
    tags = {
        "sweep_id": sweep_id,
        "sweep": spec.name,
        "title": safe_value(spec.title),
        "result_digest": digest_of([msgspec.to_builtins(results), files]),
    }
    failed = metrics["prompts_failed"] > 0
    return RunRow(
        name=f"sweep {spec.name}",
        params={},
        metrics=metrics,
        tags=tags,
        cut={},
        status="FAILED" if failed else "FINISHED",
        time_ms=int(max((result.finished_at or 0.0 for result in results), default=0.0) * 1000),
    )


def write_parent(store: Store, parent_id: str, row: RunRow, run: RunDir) -> str:
    """Write the sweep's own numbers and attach its files; returns what could not be attached."""
    digest = {"result_digest": row.tags["result_digest"]}
    store.log(parent_id, row, {name: text for name, text in row.tags.items() if name not in digest})
    try:
        for path in attached(run):
            if path.is_file():
                store.attach(parent_id, path)
        for path in sorted(run.report_data.glob("cells.csv")):
            store.attach(parent_id, path, run.report_data.name)
    except Exception as error:  # numbers are there; say what is not
        return f"the report could not be attached: {error}"
    store.log(parent_id, NO_ROW, digest)
    return ""


def attached(run: RunDir) -> tuple[Path, ...]:
    """The files that go to the sweep's own run, where they exist."""
    return run.spec, run.provenance, run.report
