"""What the mirror holds of a training run: one run of MLflow, made from `training.jsonl` and the card.

Evaluations are added as they come, each in one call with a tag that says how many are there, so that a sync that was
cut short adds none twice. A run whose evaluations or params are not those on disk any more is deleted (MLflow can
restore it) and written anew, as a cell's is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from orchestrator.tracking_mirror import NO_ROW, Found, Store, find_experiment
from orchestrator.tracking_rows import RunRow, flat, metrics_of, params_of, safe_name, safe_value
from sweeps.cell import digest_of
from workers.training.order_card import CARD_FILE, OrderCard, Role, Share, read_card
from workers.training.order_log import LOG_FILE, Evaluation, TrainingLog, read_log

EXPERIMENT = "spot train order"
MODEL = "model"
PREFIX: dict[Role, str] = {"trained on": "held_out", "out of domain": "out_of_domain"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A training directory: its log, and the card once the last step is done."""

    folder: Path
    log: TrainingLog
    card: OrderCard | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWritten:
    """What a mirroring did, in evaluations. `trouble` says what could not be attached (numbers are there)."""

    written: int
    unchanged: int
    finished: bool
    notes: tuple[str, ...]
    trouble: str = ""


def is_training(folder: Path) -> bool:
    """Whether a folder holds the log of a training run."""
    return (folder / LOG_FILE).is_file()


def read_training(folder: Path) -> Training:
    """The files of a training directory. Raises ValueError naming the one that cannot be read."""
    log = read_log(folder / LOG_FILE)
    start, card = log.start, None
    done = bool(log.evaluations) and log.evaluations[-1].step == start.recipe.steps
    if done and (folder / MODEL / CARD_FILE).is_file():
        found = read_card(folder / MODEL)
        if (found.recipe, found.data_digest, found.test_digest) == (start.recipe, start.data_digest, start.test_digest):
            card = found
    return Training(folder=folder, log=log, card=card)


def mirror_training(store: Store, training: Training) -> TrainingWritten:
    """Write what is missing of a training run."""
    experiment, notes = find_experiment(store, EXPERIMENT)
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
    if card is not None and "result_digest" not in tags:
        trouble = write_result(store, run_id, training, card)
    return TrainingWritten(
        written=len(log.evaluations) - have, unchanged=have, finished=card is not None, notes=notes, trouble=trouble
    )


def head_row(training: Training) -> RunRow:
    """The run itself: params, and the digests of what it was made from as tags."""
    start = training.log.start
    lists = {
        name: sorted({getattr(source, name) for source in start.sources if source.role == role})
        for name in ("target", "task", "temperature")
        for role in ("trained on",)
    }
    tests = {
        f"test_{name}": sorted({getattr(source, name) for source in start.sources if source.role == "out of domain"})
        for name in ("target", "task")
    }
    values = {**lists, **tests, **dict(flat("", msgspec.to_builtins(start.recipe)))}
    values |= {"block_length": start.block_length, "threads": start.threads, "torch_version": start.torch_version}
    params, cut = params_of(values)
    targets = {safe_name(f"target.{source.target}"): source.target_digest for source in start.sources}
    return RunRow(
        name=safe_value(f"order {'+'.join(lists['target'])} on {'+'.join(lists['task'])} ({training.folder.name})")[
            :200
        ],
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
        time_ms=int(1000 * training.log.evaluations[0].time) if training.log.evaluations else 0,
    )


def identity(head: RunRow) -> dict[str, str]:
    """The tags by which the run is found again."""
    return {name: head.tags[name] for name in ("sweep_id", "kind", "head_digest")}


def goes_on(found: Found, head: RunRow, training: Training) -> bool:
    """Whether what is in a run is still so on disk, so that it need only be added to."""
    count, digest = logged(found.tags)
    evaluations, result = training.log.evaluations, found.tags.get("result_digest", "")
    return (
        found.tags.get("head_digest") == head.tags["head_digest"]
        and count <= len(evaluations)
        and digest in ("", mark(evaluations[:count]).partition(":")[2])
        and (not result or training.card is None or result == result_digest(training.card))
    )


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


def by_depth(name: str, shares: Iterable[tuple[int, Share]]) -> dict[str, float | None]:
    """Accuracies under one name, where there was anything to judge."""
    return {f"{name}.depth{depth}": share.value for depth, share in shares if share.n}


def write_result(store: Store, run_id: str, training: Training, card: OrderCard) -> str:
    """Write the final accuracies, attach the card and end the run; returns what could not be attached."""
    values: dict[str, float | None] = {}
    for row in card.accuracy:
        at = "" if row.temperature is None else f"T{row.temperature:g}"
        name = ".".join(part for part in (PREFIX[row.role], row.target, row.task, at) if part)
        values |= by_depth(f"final.{name}", [(row.depth, row.order_model)])
        values |= by_depth(f"final.{name}.stale_confidence", [(row.depth, row.stale_confidence)])
    time_ms = int(1000 * training.log.evaluations[-1].time)
    final = replace(NO_ROW, metrics=metrics_of(values)[0], step=card.recipe.steps, time_ms=time_ms, status="FINISHED")
    store.log(run_id, final, {"model_digest": card.digest})
    try:
        for name in ("README.md", CARD_FILE):
            store.attach(run_id, training.folder / MODEL / name)
    except Exception as error:  # numbers are there; say what is not
        return f"the card could not be attached: {error}"
    store.finish(run_id, final)
    store.log(run_id, NO_ROW, {"result_digest": result_digest(card)})
    return ""


def result_digest(card: OrderCard) -> str:
    """Of everything the card says."""
    return digest_of([msgspec.to_builtins(card)])
