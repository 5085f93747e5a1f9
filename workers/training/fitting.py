"""Fitting a model that drafts to examples: the loop, its log, its state file, and going on from it.

Batches and dropout are a function of the recipe's seed and the step number alone, so a run that goes on from its state
file gives the weights of an uninterrupted one, bit for bit. The first Ctrl-C ends a run behind the step that is under
way, never in it.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import NoReturn, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from workers.training.order_card import Role, Share
from workers.training.order_log import Evaluation, TrainingStart, opened
from workers.training.order_part import Ints
from workers.training.order_state import read_state, write_state
from workers.training.update import ChunkLoss, Schedule, make_optimizer, rate_at, update

LONGEST_UNSAVED = 30.0  # seconds of training that a killed process may lose
Said = tuple[dict[Role, float | None], dict[Role, tuple[Share, ...]]]  # losses and accuracies of judged prompts


class Recipe(Schedule, Protocol):
    """What a recipe says of the loop."""

    @property
    def seed(self) -> int:
        """Of batches and dropout."""

    @property
    def batch(self) -> int:
        """Examples of a step."""

    @property
    def max_depth(self) -> int:
        """The deepest examples."""

    @property
    def evaluate_every(self) -> int:
        """Steps between evaluations."""


class Examples(Protocol):
    """Trajectories that examples are drawn from."""

    @property
    def data_digest(self) -> str:
        """Of the trajectories that are learnt from."""

    @property
    def traces(self) -> int:
        """Their number."""

    @property
    def rows_S(self) -> Ints:  # noqa: N802
        """Masked positions of each step."""

    @property
    def choices_S(self) -> Ints:  # noqa: N802
        """Depths of each step that are examples."""

    @property
    def learnt_S(self) -> NDArray[np.bool_]:  # noqa: N802
        """Steps that are learnt from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitProgress:
    """One training step of loss `loss` (nats). `seconds` of training include those before it was gone on with.

    `evaluation` is what held-out prompts said, at the steps at which they were asked.
    """

    step: int
    steps: int
    loss: float
    seconds: float
    evaluation: Evaluation | None = None


class Fitting:
    """A training run of `trainee`: one that begins or, with the state file `resume`, goes on after `done` steps.

    Raises ValueError for a state file that is damaged, of another recipe or other data.
    """

    def __init__(
        self, trainee: torch.nn.Module, data: Examples, recipe: Recipe, *, resume: Path | None, save_every: int
    ) -> None:
        self.trainee, self.data, self.recipe = trainee, data, recipe
        self.resume, self.save_every = resume, save_every
        self.optimizer = make_optimizer(trainee, recipe)
        self.done, self.seconds = 0, 0.0
        if resume:
            self.done, self.seconds = read_state(
                resume, trainee, self.optimizer, recipe=recipe, data_digest=data.data_digest
            )
        self.started = time.perf_counter() - self.seconds
        self.kept = self.seconds  # of training, in the state file

    def run(
        self,
        steps: Ints,
        loss_of: ChunkLoss,
        judge: Callable[[], Said],
        *,
        start: TrainingStart,
        log: Path | None,
        progress: Callable[[FitProgress], None] | None,
    ) -> None:
        """The steps that are left, on examples of the trajectories' `steps`; keeps the state file and `log`.

        The state file is there from the beginning: what is in it is what the training was begun with. Raises
        KeyboardInterrupt, which says what is kept, once Ctrl-C was pressed and the state is written.
        """
        if self.resume and not self.done:
            self._save(self.resume)
        with first_interrupt_waits() as interrupted:
            self._run(steps, loss_of, judge, start=start, log=log, progress=progress, interrupted=interrupted)

    def _run(
        self,
        steps: Ints,
        loss_of: ChunkLoss,
        judge: Callable[[], Said],
        *,
        start: TrainingStart,
        log: Path | None,
        progress: Callable[[FitProgress], None] | None,
        interrupted: threading.Event,
    ) -> None:
        """The steps that are left, up to the one in which `interrupted` is set."""
        record = opened(log, start, done=self.done) if log else None
        if log and record:
            record.write(log)
        for step in range(self.done + 1, self.recipe.steps + 1):
            loss = self._step(step, steps, loss_of)
            self.done, self.seconds = step, time.perf_counter() - self.started
            report = FitProgress(step=step, steps=self.recipe.steps, loss=loss, seconds=self.seconds)
            last = step == self.recipe.steps
            if step % self.recipe.evaluate_every == 0 or last:
                evaluation = self._evaluation(report, judge())
                report = replace(report, evaluation=evaluation)
                if log and record:
                    record = record.plus(evaluation)
                    record.write(log)
            late = self.seconds - self.kept >= LONGEST_UNSAVED
            if self.resume and (step % self.save_every == 0 or last or late):
                self._save(self.resume)
            if progress:
                progress(report)
            if interrupted.is_set():
                self._stop()

    def _step(self, step: int, steps: Ints, loss_of: ChunkLoss) -> float:
        """Step `step` (from 1): examples and dropout are a function of seed and step number alone; returns its loss."""
        rng = np.random.default_rng([self.recipe.seed, step - 1])
        torch.manual_seed(int(rng.integers(2**62)))  # dropout
        drawn = rng.choice(steps, self.recipe.batch)
        depths = rng.integers(0, np.minimum(self.data.choices_S[drawn], self.recipe.max_depth))  # evenly
        return update(self.trainee, self.optimizer, self.recipe, (drawn, depths), self.data.rows_S, loss_of, step - 1)

    def _evaluation(self, report: FitProgress, said: Said) -> Evaluation:
        """What judged prompts say of the model of the moment, for the log."""
        losses, accuracy = said
        return Evaluation(
            step=report.step,
            loss=report.loss,
            rate=rate_at(self.recipe, report.step - 1),
            seconds=report.seconds,
            time=time.time(),
            losses=losses,
            accuracy=accuracy,
        )

    def _stop(self) -> NoReturn:
        """Keep what was trained and say so. Raises KeyboardInterrupt."""
        if not self.resume:
            raise KeyboardInterrupt
        self._save(self.resume)
        done = f"{self.done} of {self.recipe.steps} steps are kept in {self.resume}"
        raise KeyboardInterrupt(f"{done}: the same command goes on from there")

    def _save(self, path: Path) -> None:
        """Write the state file."""
        write_state(
            path,
            self.trainee,
            self.optimizer,
            recipe=self.recipe,
            data_digest=self.data.data_digest,
            step=self.done,
            seconds=self.seconds,
        )
        self.kept = self.seconds


@contextlib.contextmanager
def first_interrupt_waits() -> Iterator[threading.Event]:
    """While the body runs the first SIGINT only sets the event; a second one raises KeyboardInterrupt as ever.

    In the main thread, and where SIGINT raises KeyboardInterrupt; elsewhere nothing is changed.
    """
    interrupted, before = threading.Event(), signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield interrupted
        return

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupted.set()

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def learnable(data: Examples, noun: str, why: str) -> Ints:
    """The steps to draw examples of a `noun` from. Raises ValueError, which says `why`, when there is none."""
    steps = np.flatnonzero(data.learnt_S & (data.choices_S > 0))
    if not len(steps):
        raise ValueError(f"{noun}: nothing to learn from {data.traces} trajectories: {why}")
    return steps
