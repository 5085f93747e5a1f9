"""Training the order model on draft-free trajectories: cross-entropy over the open positions (decoding.md section 4).

Deterministic for one machine, library build and number of threads (see `fitting`). What is only judged (other tasks,
other targets) changes nothing of the weights.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from workers.models.facts import NOUN, OrderConfig, inspect_order_model
from workers.models.order_model import OrderModel, load_order_model, save_order_model
from workers.training.fitting import FitProgress, Fitting, Said, learnable
from workers.training.order_accuracy import (
    JUDGED_EXAMPLES,
    JudgingProgress,
    judge,
    judge_examples,
    judged_examples,
)
from workers.training.order_card import ROLES, DepthAccuracy, OrderCard, Role, Share, read_card, write_card
from workers.training.order_data import Trajectories
from workers.training.order_log import TrainingStart
from workers.training.order_part import Ints
from workers.training.order_readme import write_readme
from workers.training.order_recipe import OrderRecipe
from workers.training.order_step import Trainee

VALIDATION_EXAMPLES = 4096
SAVE_EVERY = 200
NOTHING = (
    "no step of a prompt that is not held out had a choice between positions; allowed are longer ones (max_new_tokens) "
    "or more prompts"
)


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
    progress: Callable[[FitProgress], None] | None = None,
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
    fitting = Fitting(trainee, data, recipe, resume=resume, save_every=SAVE_EVERY)
    before, steps = fitting.done, learnable(data, NOUN, NOTHING)
    examples = {role: judged_examples(data, role, recipe.max_depth, VALIDATION_EXAMPLES) for role in ROLES}
    fitting.run(
        steps,
        lambda steps, depths, count: trainee.loss(data, steps, depths, count, recipe),
        lambda: said(trainee.order, data, examples, recipe.max_depth),
        start=start_of(data, recipe, tracking_uri),
        log=log,
        progress=progress,
    )
    if before == recipe.steps and (card := card_of(out_dir, data, recipe)):
        return OrderTrained(path=out_dir, card=card)
    return stored(trainee.order, data, recipe, out_dir, seconds=fitting.seconds, judging=judging)


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


def said(model: OrderModel, data: Trajectories, examples: dict[Role, tuple[Ints, Ints]], max_depth: int) -> Said:
    """Losses and accuracies of the model of the moment on a fixed choice of judged examples."""
    losses: dict[Role, float | None] = {}
    accuracy: dict[Role, tuple[Share, ...]] = {}
    for role, (steps, depths) in examples.items():
        tally = judge_examples(model, data, steps, depths)
        losses[role] = tally.loss
        accuracy[role] = tuple(tally.at(depth)[0] for depth in range(1, max_depth + 1))
    return losses, accuracy


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
