"""Training the order model on draft-free trajectories: cross-entropy over the open positions (decoding.md section 4).

Deterministic for one machine, library build and number of threads: batches and dropout are a function of the
recipe's seed and the step number alone, so a run that goes on from its state file gives the weights of an
uninterrupted one, bit for bit.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from workers.models.facts import OrderConfig
from workers.models.order_model import OrderModel, load_order_model, save_order_model
from workers.training.order_accuracy import DepthAccuracy, accuracy_table, held_out_examples, judge_examples
from workers.training.order_card import OrderCard, write_card
from workers.training.order_data import Ints, Trajectories
from workers.training.order_recipe import OrderRecipe
from workers.training.order_state import read_state, write_state

CHUNKS = 4  # a batch is cut into pieces of like width, each padded to its own widest block
VALIDATION_EXAMPLES = 4096
SAVE_EVERY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderProgress:
    """One training step. `held_out_loss` (nats) and `held_out_accuracy` are set at evaluations only."""

    step: int
    steps: int
    loss: float
    seconds: float
    held_out_loss: float | None = None
    held_out_accuracy: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTrained:
    """A written checkpoint and what it is worth on held-out prompts."""

    path: Path
    digest: str
    held_out_loss: float
    accuracy: tuple[DepthAccuracy, ...]
    seconds: float


def train_order(
    paths: Sequence[Path],
    recipe: OrderRecipe,
    *,
    out_dir: Path,
    progress: Callable[[OrderProgress], None] | None = None,
    resume: Path | None = None,
) -> OrderTrained:
    """Train on the traces in `paths` and write checkpoint and card to `out_dir`.

    Goes on from the state file `resume` if it exists, and keeps it up to date. Raises ValueError for unusable
    traces and for a state file of another recipe or other data.
    """
    data = Trajectories.read(paths, held_out=recipe.held_out)
    torch.manual_seed(recipe.seed)
    model = OrderModel(OrderConfig(block_length=data.block_length), dropout=recipe.dropout)
    trainee = Trainee(model)
    optimizer = make_optimizer(trainee, recipe)
    done, spent = (
        read_state(resume, trainee, optimizer, recipe=recipe, data_digest=data.data_digest) if resume else (0, 0.0)
    )
    started = time.perf_counter() - spent
    steps = np.flatnonzero(~data.held_out_S & (data.choices_S > 0))
    if not len(steps):
        raise ValueError(
            f"order model: nothing to learn from {len(paths)} trajectories: no step of a prompt that is not held out "
            "had a choice between positions; allowed are longer ones (max_new_tokens) or more prompts"
        )
    validation = held_out_examples(data, recipe.max_depth, VALIDATION_EXAMPLES)
    for step in range(done, recipe.steps):
        rng = np.random.default_rng([recipe.seed, step])
        torch.manual_seed(int(rng.integers(2**62)))  # dropout
        loss = one_step(trainee, optimizer, data, *data.draw(rng, steps, recipe.batch, recipe.max_depth), recipe, step)
        last = step + 1 == recipe.steps
        report = OrderProgress(step=step + 1, steps=recipe.steps, loss=loss, seconds=time.perf_counter() - started)
        if (step + 1) % recipe.evaluate_every == 0 or last:
            tally = judge_examples(model, data, *validation)
            accuracy = float(tally.right.mean()) if len(tally.right) else None
            report = replace(report, held_out_loss=tally.loss, held_out_accuracy=accuracy)
        if progress:
            progress(report)
        if resume and ((step + 1) % SAVE_EVERY == 0 or last):
            write_state(
                resume,
                trainee,
                optimizer,
                recipe=recipe,
                data_digest=data.data_digest,
                step=step + 1,
                seconds=time.perf_counter() - started,
            )
    seconds = time.perf_counter() - started
    digest = save_order_model(model, out_dir)
    shipped = load_order_model(out_dir, block_length=data.block_length)  # judged as stored, rounding included
    held_out_loss, table = accuracy_table(shipped, data, recipe.max_depth)
    card = OrderCard(
        digest=digest,
        target=data.target,
        target_digest=data.target_digest,
        block_length=data.block_length,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        recipe=recipe,
        seconds=seconds,
        threads=torch.get_num_threads(),
        data_digest=data.data_digest,
        traces=data.traces,
        steps_recorded=len(data.rows_S),
        prompts=data.prompts,
        held_out_prompts=data.held_out_prompts,
        sources=data.groups,
        held_out_loss=held_out_loss,
        accuracy=table,
    )
    write_card(out_dir, card)
    return OrderTrained(path=out_dir, digest=digest, held_out_loss=held_out_loss, accuracy=table, seconds=seconds)


class Trainee(torch.nn.Module):
    """The order model and, for training only, a second head that guesses the log-odds which decide the next commit.

    The commit is the open position of largest fresh log-odds; guessing all of them teaches more than naming the winner.
    """

    def __init__(self, order: OrderModel) -> None:
        super().__init__()
        self.order = order
        self.confidence = torch.nn.Linear(order.config.width, 1)


def make_optimizer(trainee: Trainee, recipe: OrderRecipe) -> torch.optim.AdamW:
    """AdamW; only matrices decay."""
    matrices = [parameter for parameter in trainee.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in trainee.parameters() if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98))


def rate_at(recipe: OrderRecipe, step: int) -> float:
    """Learning rate of a step: a linear rise, then a cosine to zero at the last step."""
    if step < recipe.rise:
        return recipe.rate * (step + 1) / recipe.rise
    share = (step - recipe.rise) / max(1, recipe.steps - recipe.rise)
    return recipe.rate * 0.5 * (1 + math.cos(math.pi * share))


def one_step(
    trainee: Trainee,
    optimizer: torch.optim.AdamW,
    data: Trajectories,
    steps: Ints,
    depths: Ints,
    recipe: OrderRecipe,
    step: int,
) -> float:
    """One update on the examples (steps, depths); returns their mean cross-entropy in nats."""
    model = trainee.order
    for group in optimizer.param_groups:
        group["lr"] = rate_at(recipe, step)
    model.train()
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for at in np.array_split(np.argsort(data.rows_S[steps], kind="stable"), CHUNKS):
        if len(at) == 0:
            continue
        batch = data.batch(steps[at], depths[at])
        hidden_BAW = model.encode(model.embed_stale(batch.features_BAF), batch.columns_BAC, batch.seen_BA)
        order_loss = -model.log_order(hidden_BAW, batch.open_BA).gather(-1, batch.label_B[:, None]).sum()
        guess_BA = trainee.confidence(hidden_BAW).squeeze(-1)
        gap_BA = functional.smooth_l1_loss(guess_BA, batch.fresh_BA.clamp(-16, 16) / 4, reduction="none")
        confidence_loss = (gap_BA * batch.open_BA).sum(-1).div(batch.open_BA.sum(-1)).sum()
        loss = order_loss + recipe.confidence_weight * confidence_loss
        (loss / len(steps)).backward()  # type: ignore[no-untyped-call]
        total += float(order_loss.detach()) / len(steps)
    torch.nn.utils.clip_grad_norm_(trainee.parameters(), recipe.clip)
    optimizer.step()
    return total
