"""What the mirror holds of a training run: one run of MLflow, made from `training.jsonl` and the card.

Evaluations are added as they come, each in one call with a tag that says how many are there, so that a sync that was
cut short adds none twice. A run whose evaluations or params are not those on disk any more is deleted (MLflow can
restore it) and written anew, as a cell's is. Where the log was lost after the last step, the card alone is enough.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from orchestrator.tracking_cards import PREFIX, Card, by_depth, final_values, read_card, result_digest, start_of
from orchestrator.tracking_mirror import NO_ROW, Found, Store, find_experiment
from orchestrator.tracking_rows import RunRow, flat, metrics_of, params_of, safe_name, safe_value
from sweeps.cell import digest_of
from sweeps.store import RunDir
from workers.models.stored import CARD_FILE, LEARNT
from workers.training.order_log import LOG_FILE, MODEL, STATE, Evaluation, TrainingLog, read_log


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A training directory: its log, and the card once the last step is done.

    A card beside a log that ends before the last step: the end of the log was lost (`curve_lost`).
    """

    folder: Path
    log: TrainingLog
    card: Card | None

    @property
    def at_end(self) -> bool:
        """Whether the log holds the last step."""
        return bool(self.log.evaluations) and self.log.evaluations[-1].step == self.log.start.recipe.steps

    @property
    def curve_lost(self) -> bool:
        """Whether evaluations of a finished training are gone."""
        return self.card is not None and not self.at_end

    @property
    def ended_ms(self) -> int:
        """When it ended, as far as is known: its last evaluation, or when the card was written."""
        card = self.folder / MODEL / CARD_FILE
        if self.at_end or not card.is_file():
            return int(1000 * self.log.evaluations[-1].time) if self.log.evaluations else 0
        return int(1000 * card.stat().st_mtime)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWritten:
    """What a mirroring did, in evaluations. `trouble` says what could not be attached (numbers are there)."""

    written: int
    unchanged: int
    finished: bool
    notes: tuple[str, ...]
    trouble: str = ""


def is_training(folder: Path) -> bool:
    """Whether a folder holds the log of a training run, or what it ended with."""
    return (folder / LOG_FILE).is_file() or (
        (folder / MODEL / CARD_FILE).is_file() and not RunDir(folder).spec.exists()
    )


def read_training(folder: Path) -> Training:
    """The files of a training directory. Raises ValueError naming the one that cannot be read."""
    if not (folder / LOG_FILE).exists() and (folder / MODEL / CARD_FILE).is_file():
        card = read_card(folder / MODEL)
        going = (folder / STATE).exists() and not finished(folder, card.recipe.steps)
        return Training(folder=folder, log=TrainingLog(start=start_of(card)), card=None if going else card)
    training = Training(folder=folder, log=read_log(folder / LOG_FILE), card=None)
    if not (folder / MODEL / CARD_FILE).is_file():
        return training
    start, steps = training.log.start, training.log.start.recipe.steps
    card = read_card(folder / MODEL)
    ours = (card.recipe, card.data_digest, card.test_digest) == (start.recipe, start.data_digest, start.test_digest)
    return replace(training, card=card) if ours and (training.at_end or finished(folder, steps)) else training


def finished(folder: Path, steps: int) -> bool:
    """Whether the state says that all steps are done: asked only where the log does not."""
    import torch

    try:
        return bool(torch.load(folder / STATE, weights_only=True, map_location="cpu")["step"] == steps)
    except Exception:  # there is none, or none that can be read: torch names no error type
        return False


def mirror_training(store: Store, training: Training) -> TrainingWritten:
    """Write what is missing of a training run."""
    experiment, notes = find_experiment(store, training.log.start.command)
    log, card = training.log, training.card
    head = head_row(training)
    known = store.runs(experiment.experiment_id, log.start.training_id)
    keep = [found for found in known if goes_on(found, head, training)][:1]
    run_id = keep[0].run_id if keep else store.create_run(experiment.experiment_id, head, identity(head))
    for found in known:
        if found not in keep:
            store.delete(found.run_id)
    tags = dict(keep[0].tags) if keep else {}
    have = logged(tags)[0]
    if "logged" not in tags:
        store.log(run_id, head, {**head.tags, "logged": mark(log.evaluations[:0])})
    for number, row in enumerate(log.evaluations[have:], have + 1):
        store.log(run_id, evaluation_row(row), {"logged": mark(log.evaluations[:number])})
    trouble = ""
    if training.curve_lost:
        last = log.evaluations[-1].step if log.evaluations else 0
        notes += (f"{LOG_FILE} ends at step {last} of {log.start.recipe.steps}: the curve behind it is lost there",)
    if card is not None and tags.get("result_digest") != result_digest(card):
        trouble = write_result(store, run_id, training, card)
    return TrainingWritten(
        written=max(0, len(log.evaluations) - have),
        unchanged=have,
        finished=card is not None,
        notes=notes,
        trouble=trouble,
    )


def head_row(training: Training) -> RunRow:
    """The run itself: params, and the digests of what it was made from as tags."""
    start = training.log.start
    lists = {
        name: sorted({getattr(source, name) for source in start.sources if source.role in LEARNT})
        for name in ("target", "task", "temperature", "tau")
        if hasattr(start.sources[0], name)
    }
    tests = {
        f"test_{name}": sorted({getattr(source, name) for source in start.sources if source.role == "out of domain"})
        for name in ("target", "task")
    }
    values = {**lists, **tests, **dict(flat("", msgspec.to_builtins(start.recipe)))}
    values |= {"block_length": start.block_length, "threads": start.threads, "torch_version": start.torch_version}
    params, cut = params_of(values)
    targets = {safe_name(f"target.{source.target}"): source.target_digest for source in start.sources}
    made = f"{start.command.split()[-1]} {'+'.join(lists['target'])} on {'+'.join(lists['task'])}"
    return RunRow(
        name=safe_value(f"{made} ({training.folder.name})")[:200],
        params=params,
        metrics={},
        tags={
            "sweep_id": start.training_id,  # by which the runs of one directory are found
            "kind": "training",
            "head_digest": digest_of([values]),
            "data_digest": start.data_digest,
            "test_digest": start.test_digest,
            **targets,
        },
        cut=cut,
        status="RUNNING",
        time_ms=int(1000 * training.log.evaluations[0].time) if training.log.evaluations else training.ended_ms,
    )


def identity(head: RunRow) -> dict[str, str]:
    """The tags by which the run is found again."""
    return {name: head.tags[name] for name in ("sweep_id", "kind", "head_digest")}


def goes_on(found: Found, head: RunRow, training: Training) -> bool:
    """Whether what is in a run is still so on disk, so that it need only be added to."""
    count, digest = logged(found.tags)
    evaluations, result = training.log.evaluations, found.tags.get("result_digest", "")
    curve = count <= len(evaluations) and digest in ("", mark(evaluations[:count]).partition(":")[2])
    whole = curve and (not result or training.card is None or result == result_digest(training.card))
    # what the log lost is kept where it was mirrored
    return found.tags.get("head_digest") == head.tags["head_digest"] and (whole or training.curve_lost)


def logged(tags: Mapping[str, str]) -> tuple[int, str]:
    """How many evaluations a run holds, and their digest."""
    count, _, digest = tags.get("logged", "0:").partition(":")
    return int(count), digest


def mark(evaluations: Iterable[Evaluation]) -> str:
    """Number and digest of some evaluations; when they were made does not matter."""
    rows = [msgspec.to_builtins(replace(row, time=0.0, seconds=0.0)) for row in evaluations]
    return f"{len(rows)}:{digest_of(rows)}"


def evaluation_row(row: Evaluation) -> RunRow:
    """The metrics of one step."""
    values: dict[str, float | None] = {"loss": row.loss, "learning_rate": row.rate, "seconds": row.seconds}
    for role, loss in row.losses.items():
        if loss is not None:
            values[f"{PREFIX[role]}.loss"] = loss
            values |= by_depth(f"{PREFIX[role]}.accuracy", enumerate(row.accuracy[role], 1))
    return replace(NO_ROW, metrics=metrics_of(values)[0], step=row.step, time_ms=int(1000 * row.time))


def write_result(store: Store, run_id: str, training: Training, card: Card) -> str:
    """Write the final accuracies, attach the card and end the run; returns what could not be attached."""
    final = replace(
        NO_ROW,
        metrics=metrics_of(final_values(card))[0],
        step=card.recipe.steps,
        time_ms=training.ended_ms,
        status="FINISHED",
    )
    store.log(run_id, final, {"model_digest": card.digest})
    try:
        for name in ("README.md", CARD_FILE):
            store.attach(run_id, training.folder / MODEL / name)
    except Exception as error:  # numbers are there; say what is not
        return f"the card could not be attached: {error}"
    store.finish(run_id, final)
    store.log(run_id, NO_ROW, {"result_digest": result_digest(card)})
    return ""
