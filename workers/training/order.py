"""Training the order model on draft-free trajectories: cross-entropy over the open positions (decoding.md section 4).

Deterministic for one machine, library build and number of threads: batches and dropout are a function of the
recipe's seed and the step number alone, so a run that goes on from its state file gives the weights of an
uninterrupted one, bit for bit. What is only judged (other tasks, other targets) changes nothing of them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from workers.models.facts import OrderConfig, inspect_order_model
from workers.models.order_model import OrderModel, load_order_model, save_order_model
from workers.training.order_accuracy import (
    JUDGED_EXAMPLES,
    JudgingProgress,
    judge,
    judge_examples,
    judged_examples,
)
from workers.training.order_card import ROLES, DepthAccuracy, OrderCard, Role, Share, read_card, write_card
from workers.training.order_data import Trajectories
from workers.training.order_log import Evaluation, TrainingStart, opened
from workers.training.order_part import Ints
from workers.training.order_readme import write_readme
from workers.training.order_recipe import OrderRecipe
from workers.training.order_state import read_state, write_state
from workers.training.order_step import Trainee, make_optimizer, one_step, rate_at

VALIDATION_EXAMPLES = 4096
SAVE_EVERY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderProgress:
    """One training step of loss `loss` (nats). `seconds` of training include those before it was gone on with."""

    step: int
    steps: int
    loss: float
    seconds: float
    evaluation: Evaluation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTrained:
    """A written checkpoint and its card."""

    path: Path
    card: OrderCard

    @property
    def digest(self) -> str:
        """Of weights and settings."""
        return self.card.digest

    @property
    def accuracy(self) -> tuple[DepthAccuracy, ...]:
        """On prompts that were not trained on."""
        return self.card.accuracy


def train_order(
    paths: Sequence[Path],
    recipe: OrderRecipe,
    *,
    out_dir: Path,
    test_paths: Sequence[Path] = (),
    progress: Callable[[OrderProgress], None] | None = None,
    judging: Callable[[JudgingProgress], None] | None = None,
    resume: Path | None = None,
    log: Path | None = None,
    tracking_uri: str = "",
) -> OrderTrained:
    """Train on the traces in `paths`, judge on their held-out prompts and on `test_paths`, and write checkpoint and
    card to `out_dir`.

    Goes on from the state file `resume` if it exists, and keeps it up to date, and so the file `log` (`order_log`).
    Raises ValueError for unusable traces and for a state file that is damaged, of another recipe or other data.
    """
    data = Trajectories.read(paths, held_out=recipe.held_out, test_paths=test_paths)
    torch.manual_seed(recipe.seed)
    trainee = Trainee(OrderModel(OrderConfig(block_length=data.block_length), dropout=recipe.dropout))
    optimizer = make_optimizer(trainee, recipe)
    done, seconds = 0, 0.0
    if resume:
        done, seconds = read_state(resume, trainee, optimizer, recipe=recipe, data_digest=data.data_digest)
    started = time.perf_counter() - seconds
    steps = learnable(data)
    examples = {role: judged_examples(data, role, recipe.max_depth, VALIDATION_EXAMPLES) for role in ROLES}
    record = opened(log, start_of(data, recipe, tracking_uri), done=done) if log else None
    if log and record:
        record.write(log)
    for step in range(done + 1, recipe.steps + 1):
        loss = train_step(trainee, optimizer, data, steps, recipe, step)
        seconds = time.perf_counter() - started
        report = OrderProgress(step=step, steps=recipe.steps, loss=loss, seconds=seconds)
        last = step == recipe.steps
        if step % recipe.evaluate_every == 0 or last:
            report = replace(report, evaluation=evaluate(trainee.order, data, examples, recipe, report))
            if log and record and report.evaluation:
                record = record.plus(report.evaluation)
                record.write(log)
        if resume and (step % SAVE_EVERY == 0 or last):
            write_state(
                resume,
                trainee,
                optimizer,
                recipe=recipe,
                data_digest=data.data_digest,
                step=step,
                seconds=seconds,
            )
        if progress:
            progress(report)
    if done == recipe.steps and (card := card_of(out_dir, data, recipe)):
        return OrderTrained(path=out_dir, card=card)
    return stored(trainee.order, data, recipe, out_dir, seconds=seconds, judging=judging)


def learnable(data: Trajectories) -> Ints:
    """The steps to draw examples from. Raises ValueError when there is none."""
    steps = np.flatnonzero(data.learnt_S & (data.choices_S > 0))
    if not len(steps):
        raise ValueError(
            f"order model: nothing to learn from {data.traces} trajectories: no step of a prompt that is not held out "
            "had a choice between positions; allowed are longer ones (max_new_tokens) or more prompts"
        )
    return steps


def start_of(data: Trajectories, recipe: OrderRecipe, tracking_uri: str) -> TrainingStart:
    """The first line of the log."""
    return TrainingStart(
        recipe=recipe,
        data_digest=data.data_digest,
        test_digest=data.test_digest,
        block_length=data.block_length,
        sources=data.sources,
        threads=torch.get_num_threads(),
        torch_version=str(torch.__version__),
        tracking_uri=tracking_uri,
    )


def train_step(
    trainee: Trainee, optimizer: torch.optim.AdamW, data: Trajectories, steps: Ints, recipe: OrderRecipe, step: int
) -> float:
    """Step `step` (from 1): examples and dropout are a function of seed and step number alone; returns its loss."""
    rng = np.random.default_rng([recipe.seed, step - 1])
    torch.manual_seed(int(rng.integers(2**62)))  # dropout
    drawn = data.draw(rng, steps, recipe.batch, recipe.max_depth)
    return one_step(trainee, optimizer, data, *drawn, recipe, step - 1)


def evaluate(
    model: OrderModel,
    data: Trajectories,
    examples: dict[Role, tuple[Ints, Ints]],
    recipe: OrderRecipe,
    report: OrderProgress,
) -> Evaluation:
    """The model of the moment on a fixed choice of judged examples."""
    losses: dict[Role, float | None] = {}
    accuracy: dict[Role, tuple[Share, ...]] = {}
    for role, (steps, depths) in examples.items():
        tally = judge_examples(model, data, steps, depths)
        losses[role] = tally.loss
        accuracy[role] = tuple(tally.at(depth)[0] for depth in range(1, recipe.max_depth + 1))
    return Evaluation(
        step=report.step,
        loss=report.loss,
        rate=rate_at(recipe, report.step - 1),
        seconds=report.seconds,
        time=time.time(),
        losses=losses,
        accuracy=accuracy,
    )


def card_of(folder: Path, data: Trajectories, recipe: OrderRecipe) -> OrderCard | None:
    """The card of this very training, if it and the checkpoint it describes are whole."""
    try:
        card, facts = read_card(folder), inspect_order_model(folder)
    except (ValueError, OSError):
        return None
    made = (card.digest, card.recipe, card.data_digest, card.test_digest)
    return card if made == (facts.digest, recipe, data.data_digest, data.test_digest) else None


def stored(
    model: OrderModel,
    data: Trajectories,
    recipe: OrderRecipe,
    folder: Path,
    *,
    seconds: float,
    judging: Callable[[JudgingProgress], None] | None,
) -> OrderTrained:
    """Write the checkpoint, and its card once it was judged as stored, rounding included."""
    digest = save_order_model(model, folder)
    asked = load_order_model(folder, block_length=data.block_length)
    judged = judge(asked, data, recipe.max_depth, progress=judging)
    card = OrderCard(
        digest=digest,
        block_length=data.block_length,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        recipe=recipe,
        seconds=seconds,
        threads=torch.get_num_threads(),
        torch_version=str(torch.__version__),
        data_digest=data.data_digest,
        traces=data.traces,
        steps_recorded=data.steps,
        prompts=data.prompts,
        held_out_prompts=data.held_out_prompts,
        test_digest=data.test_digest,
        test_traces=data.test_traces,
        sources=data.sources,
        held_out_loss=judged.loss["trained on"],
        out_of_domain_loss=judged.loss["out of domain"],
        accuracy=judged.accuracy,
        judged_limit=JUDGED_EXAMPLES,
    )
    write_readme(folder, card)
    write_card(folder, card)
    return OrderTrained(path=folder, card=card)
