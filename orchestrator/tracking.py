"""The MLflow mirror of a sweep or of a training: the only module that imports mlflow, and only when it has to write.

Results are files before any of this happens, so nothing here can lose one: what goes wrong is an outcome with one line,
and a later `sync` fills the gaps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from orchestrator.tracking_db import blocked, ready
from orchestrator.tracking_guard import locked, settings
from orchestrator.tracking_mirror import Experiment, Found, Written, mirror
from orchestrator.tracking_rows import RunRow, safe_name
from orchestrator.tracking_training import TrainingWritten, is_training, mirror_training, read_training
from orchestrator.tracking_uri import Location, location, shown, unreachable
from sweeps.aggregate import aggregate_all
from sweeps.belongs import read_history, read_jobs, read_spec
from sweeps.merge import merge_all
from sweeps.results import load_results
from sweeps.store import RunDir

PARAMS_A_BATCH = 100
PAGE = 1000
LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorOutcome:
    """How a sync ended. `failed` says that the mirror is incomplete, and `message` how it went, in one line."""

    status: Literal["written", "unchanged", "failed"]
    uri: str
    message: str
    written: int = 0
    unchanged: int = 0
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether something is missing in the mirror."""
        return self.status == "failed"


def sync(run_dir: Path, tracking_uri: str = "") -> MirrorOutcome:
    """Bring the mirror of a run up to date; cells that are there already with the same result are left alone.

    A training directory is mirrored from its log. Raises ValueError, before anything is contacted, when `run_dir` is
    neither or the URI cannot work.
    """
    run = RunDir(run_dir)
    if is_training(run_dir):
        return sync_training(run, tracking_uri)
    spec, history, jobs = read_spec(run), read_history(run), read_jobs(run)
    place = location(run_dir, tracking_uri, spec.tracking_uri)
    reason = out_of_reach(place)
    if reason:
        return failure(place, reason)
    loaded = load_results(run, code_digests={start.code_digest for start in history.starts})
    results = aggregate_all(jobs, merge_all(loaded.results))
    try:
        with settings(), locked(run, place):
            place = ready(place, lambda uri: make_store(uri, place.artifacts))
            return outcome(place, mirror(MlflowStore(place), run, spec, history, results))
    except Exception as error:  # whatever a tracking store raises: the results are safe, and one line is enough
        return failure(place, f"{type(error).__name__}: {error}")


def sync_training(run: RunDir, tracking_uri: str) -> MirrorOutcome:
    """Bring the mirror of a training directory up to date."""
    training = read_training(run.root)
    place = location(run.root, tracking_uri, training.log.start.tracking_uri)
    reason = out_of_reach(place)
    if reason:
        return failure(place, reason)
    try:
        with settings(), locked(run, place):
            place = ready(place, lambda uri: make_store(uri, place.artifacts))
            return training_outcome(place, mirror_training(MlflowStore(place), training))
    except Exception as error:  # as for a sweep
        return failure(place, f"{type(error).__name__}: {error}")


def out_of_reach(place: Location) -> str:
    """Why nothing can be written at `place`, found out in seconds; "" when it may be possible."""
    if reason := unreachable(place.uri):
        return f"nothing answers there ({reason})"
    return blocked(place)


def make_store(uri: str, artifacts: Path | None) -> None:
    """Make the tables of a sqlite store and let go of its file."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    SqlAlchemyStore(uri, artifacts.as_uri() if artifacts else "mlruns").engine.dispose()


def training_outcome(place: Location, written: TrainingWritten) -> MirrorOutcome:
    """The outcome of mirroring a training run."""
    notes = (*place.notes, *written.notes)
    if written.trouble:
        return failure(place, written.trouble, notes)
    going = "" if written.finished else ", training is not finished"
    return MirrorOutcome(
        status="written" if written.written else "unchanged",
        uri=shown(place.uri),
        message=evaluations_message(written.written, written.unchanged) + going,
        written=written.written,
        unchanged=written.unchanged,
        notes=notes,
    )


def evaluations_message(written: int, unchanged: int) -> str:
    """How many points of a training run's curves were written, in words."""
    return f"{written} evaluation{'s' * (written != 1)} written, {unchanged} there already"


def outcome(place: Location, written: Written) -> MirrorOutcome:
    """The outcome of a mirroring that came to its end."""
    notes = (*place.notes, *written.notes)
    if written.trouble:
        return failure(place, written.trouble, notes)
    waiting = f", {written.waiting} without results yet" if written.waiting else ""
    removed = f", {written.removed} that left the sweep deleted" if written.removed else ""
    return MirrorOutcome(
        status="written" if written.written or written.removed else "unchanged",
        uri=shown(place.uri),
        message=f"{written.written} cells written, {written.unchanged} were there already{waiting}{removed}",
        written=written.written,
        unchanged=written.unchanged,
        notes=notes,
    )


def failure(place: Location, reason: str, notes: tuple[str, ...] = ()) -> MirrorOutcome:
    """The outcome of a mirroring that did not; its message is one bounded line."""
    line = " ".join(reason.split())[:LONGEST_MESSAGE]
    message = f"MLflow mirror incomplete at {shown(place.uri)}: {line}; results are safe, `spot sync` tries again"
    return MirrorOutcome(status="failed", uri=shown(place.uri), message=message, notes=notes or place.notes)


class MlflowStore:
    """A tracking store through MLflow's client, every id explicit: no ambient run or experiment is used."""

    def __init__(self, place: Location) -> None:
        from mlflow.tracking import MlflowClient

        self._place = place
        self._client = MlflowClient(tracking_uri=place.uri)

    def experiment(self, name: str) -> Experiment | None:
        """The experiment of this name, also a deleted one."""
        found = self._client.get_experiment_by_name(name)
        return None if found is None else experiment_of(found)

    def create_experiment(self, name: str) -> Experiment:
        """Make an experiment; beside a sqlite file it keeps its artifacts there."""
        artifacts = (self._place.artifacts / safe_name(name)).as_uri() if self._place.artifacts else None
        made = self._client.create_experiment(name, artifact_location=artifacts)
        return experiment_of(self._client.get_experiment(made))

    def runs(self, experiment_id: str, sweep_id: str) -> list[Found]:
        """All active runs that carry this sweep id, page by page."""
        found: list[Found] = []
        token = None
        while True:
            query = f"tags.sweep_id = '{sweep_id}'"
            page = self._client.search_runs([experiment_id], query, max_results=PAGE, page_token=token)
            found += [Found(run_id=run.info.run_id, tags=dict(run.data.tags)) for run in page]
            token = page.token
            if not token:
                return found

    def create_run(self, experiment_id: str, row: RunRow, tags: Mapping[str, str]) -> str:
        """Make a run with a row's name, status and time, ended unless it is RUNNING; returns its id."""
        made = self._client.create_run(experiment_id, start_time=row.time_ms, tags=dict(tags), run_name=row.name)
        run_id: str = made.info.run_id
        if row.status != "RUNNING":
            self.finish(run_id, row)
        return run_id

    def finish(self, run_id: str, row: RunRow) -> None:
        """End a run with a row's status and time."""
        self._client.set_terminated(run_id, status=row.status, end_time=row.time_ms)

    def log(self, run_id: str, row: RunRow, tags: Mapping[str, str]) -> None:
        """Write a row's params and metrics, and `tags`, in one batch (and one more for each further 100 params)."""
        from mlflow.entities import Metric, Param, RunTag

        params = [Param(name, text) for name, text in row.params.items()]
        for first in range(PARAMS_A_BATCH, len(params), PARAMS_A_BATCH):
            self._client.log_batch(run_id, params=params[first : first + PARAMS_A_BATCH])
        metrics = [Metric(name, value, row.time_ms, row.step) for name, value in row.metrics.items()]
        labels = [RunTag(name, text) for name, text in tags.items()]
        self._client.log_batch(run_id, metrics=metrics, params=params[:PARAMS_A_BATCH], tags=labels)

    def delete(self, run_id: str) -> None:
        """Delete a run (restorable)."""
        self._client.delete_run(run_id)

    def attach(self, run_id: str, path: Path, folder: str = "") -> None:
        """Store a file with a run."""
        self._client.log_artifact(run_id, str(path), folder or None)

    def attach_text(self, run_id: str, name: str, text: str) -> None:
        """Store a text with a run."""
        self._client.log_text(run_id, text, name)


def experiment_of(found: Any) -> Experiment:
    """Our view of an experiment."""
    return Experiment(
        experiment_id=found.experiment_id, active=found.lifecycle_stage == "active", artifacts=found.artifact_location
    )
