"""The log of a training run (training.jsonl): what is trained on what, then one line an evaluation.

The file is the record, MLflow only its mirror. It is rewritten whole and at once, so a kill never leaves half a line,
and its rows are kept by step: a run that goes on from an older state replaces the rows it makes again.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from sweeps.cell import digest_of
from sweeps.store import atomic_write
from workers.training.order_card import Role, Share, Source
from workers.training.order_recipe import OrderRecipe
from workers.training.sets_card import SetSource
from workers.training.sets_recipe import SetRecipe

LOG_FILE, STATE, MODEL = "training.jsonl", "state.pt", "model"  # below a training directory
WITHOUT = "delete it, and the same training goes on where it is: only the curve up to there is lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStart:
    """What `command` trains: recipe and trajectories decide the weights on one machine. `tracking_uri` is where its
    mirror goes ("": the usual places).
    """

    recipe: OrderRecipe
    data_digest: str
    test_digest: str
    block_length: int
    sources: tuple[Source, ...]
    threads: int
    torch_version: str
    tracking_uri: str = ""
    command: str = "spot train order"

    @property
    def training_id(self) -> str:
        """Equal for runs that would give equal weights; other prompts to judge make no other training."""
        return digest_of([msgspec.to_builtins(self.recipe), self.data_digest, self.threads, self.torch_version])[:20]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTrainingStart(TrainingStart):
    """The same of a set model."""

    recipe: SetRecipe  # type: ignore[assignment]
    sources: tuple[SetSource, ...]  # type: ignore[assignment]
    command: str = "spot train sets"


STARTS: dict[str, type[TrainingStart]] = {"spot train order": TrainingStart, "spot train sets": SetTrainingStart}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The model after `step` steps: the loss of that step's batch (nats) and what some judged prompts say.

    `accuracy[role]` has an entry for each depth from 1. `time` is seconds since the epoch, `seconds` of training.
    """

    step: int
    loss: float
    rate: float
    seconds: float
    time: float
    losses: dict[Role, float | None]
    accuracy: dict[Role, tuple[Share, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLog:
    """A log as it is on disk."""

    start: TrainingStart
    evaluations: tuple[Evaluation, ...] = ()

    def before(self, step: int) -> "TrainingLog":
        """The log as it was when `step` steps were done."""
        return TrainingLog(start=self.start, evaluations=tuple(row for row in self.evaluations if row.step <= step))

    def plus(self, row: Evaluation) -> "TrainingLog":
        """The log with one more evaluation."""
        return TrainingLog(start=self.start, evaluations=(*self.before(row.step - 1).evaluations, row))

    def write(self, path: Path) -> None:
        """Replace the file at once or not at all."""
        lines = [msgspec.json.encode(row) for row in (self.start, *self.evaluations)]
        atomic_write(path, b"\n".join(lines) + b"\n")


def read_log(path: Path) -> TrainingLog:
    """The log in a file. Raises ValueError naming it."""
    try:
        first, *rows = path.read_bytes().splitlines() or [b""]
        command = msgspec.json.decode(first, type=dict[str, Any]).get("command", "spot train order")
        if command not in STARTS:
            raise ValueError(f"command is {command!r}: allowed is {' | '.join(STARTS)}")
        start = msgspec.json.decode(first, type=STARTS[command], strict=True)
        return TrainingLog(
            start=start, evaluations=tuple(msgspec.json.decode(row, type=Evaluation, strict=True) for row in rows)
        )
    except FileNotFoundError:
        raise ValueError(f"{path.parent} is no training directory: {path.name} is missing") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}): {WITHOUT}") from None


def opened(path: Path, start: TrainingStart, *, done: int) -> TrainingLog:
    """The log of a run that goes on after `done` steps; a new one when another training, or nothing, is in the file."""
    if path.exists():
        found = read_log(path)
        if found.start.training_id == start.training_id:
            start = replace(start, tracking_uri=start.tracking_uri or found.start.tracking_uri)
            return TrainingLog(start=start, evaluations=found.before(done).evaluations)
    return TrainingLog(start=start)
