"""Training the set model on trajectories of threshold decoding, or fitting its input layer to another target.

Deterministic for one machine, library build and number of threads (see `fitting`). Calibrating trains only what reads
the target's vectors; every other weight stays as it is, bit for bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from workers.models.set_facts import NOUN, TARGET_WEIGHTS, SetConfig, inspect_set_model, read_config
from workers.models.set_model import SetModel, load_set_model, save_set_model
from workers.training.fitting import FitProgress, Fitting, Said, learnable
from workers.training.order_card import write_card
from workers.training.order_log import SetTrainingStart
from workers.training.sets_accuracy import (
    JUDGED_EXAMPLES,
    SetTally,
    accuracies,
    held_out_examples,
    judge_examples,
)
from workers.training.sets_card import SetAccuracy, SetCard, SetSource, read_card
from workers.training.sets_data import SetTrajectories
from workers.training.sets_readme import write_readme
from workers.training.sets_recipe import SetRecipe
from workers.training.sets_step import mean_loss

VALIDATION_EXAMPLES = 2048
SAVE_EVERY = 100
NOTHING = "every block was filled in one step; allowed are a higher tau, longer ones (max_new_tokens) or more prompts"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTrained:
    """A written checkpoint and its card."""

    path: Path
    card: SetCard

    @property
    def accuracy(self) -> tuple[SetAccuracy, ...]:
        """On prompts that were not trained on."""
        return self.card.accuracy


def train_sets(
    paths: Sequence[Path],
    recipe: SetRecipe,
    *,
    embedded_VH: Tensor,
    out_dir: Path,
    base: Path | None = None,
    progress: Callable[[FitProgress], None] | None = None,
    resume: Path | None = None,
    log: Path | None = None,
    tracking_uri: str = "",
) -> SetTrained:
    """Train on the traces in `paths`, judge on their held-out prompts, and write checkpoint and card to `out_dir`.

    `embedded_VH` are the target's input embeddings. With a `base` model only its input layer is fitted (to the target
    that the traces are of), whose digest the recipe names. Goes on from the state file `resume` if it exists, and keeps
    it up to date, and so the file `log` (`order_log`). Raises ValueError for unusable traces and for a state file that
    is damaged, of another recipe or other data.
    """
    data = SetTrajectories.read(paths, held_out=recipe.held_out)
    steps = learnable(data, NOUN, NOTHING)
    embedded_VH = embedded_VH.cpu().float()
    torch.manual_seed(recipe.seed)
    model = trainee(data, recipe, base)
    fitting = Fitting(model, data, recipe, resume=resume, save_every=SAVE_EVERY)
    if fitting.done == recipe.steps and (card := card_of(out_dir, data, recipe)):
        return SetTrained(path=out_dir, card=card)
    fitting.run(
        steps,
        lambda steps, depths, count: mean_loss(model, data, embedded_VH, steps, depths, count, recipe.other_weight),
        lambda: said(judged(model, data, embedded_VH, recipe, VALIDATION_EXAMPLES), recipe.max_depth),
        start=start_of(data, recipe, base, tracking_uri),
        log=log,
        progress=progress,
    )
    return stored(model, data, embedded_VH, recipe, out_dir, base=base, seconds=fitting.seconds)


def trainee(data: SetTrajectories, recipe: SetRecipe, base: Path | None) -> SetModel:
    """A new model, or the base model with a new input layer and everything else held fast."""
    if base is None:
        sizes = {"width": recipe.width, "layers": recipe.layers}
        config = SetConfig.sized(block_length=data.block_length, hidden=data.hidden, **sizes)
        return SetModel(config, dropout=recipe.dropout)
    assert inspect_set_model(base).digest == recipe.calibrate_from, "the recipe names another base model"
    kept = load_set_model(base, block_length=data.block_length).state_dict()
    model = SetModel(replace(read_config(base), hidden=data.hidden, digest=""), dropout=recipe.dropout)
    fitted = {name: tensor for name, tensor in model.state_dict().items() if name in TARGET_WEIGHTS}
    model.load_state_dict(kept | fitted)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in TARGET_WEIGHTS)
    return model


def judged(model: SetModel, data: SetTrajectories, embedded_VH: Tensor, recipe: SetRecipe, limit: int) -> SetTally:
    """The model of the moment on held-out prompts, at most `limit` examples of them."""
    examples = held_out_examples(data, recipe.max_depth, limit)
    return judge_examples(model, data, embedded_VH, *examples, recipe.other_weight)


def said(tally: SetTally, max_depth: int) -> Said:
    """What held-out prompts say at one step, for the log: the loss, and steps foreseen whole at each depth."""
    exact = tuple(tally.total(depth).exact for depth in range(1, max_depth + 1))
    return {"trained on": tally.loss}, {"trained on": exact}


def start_of(data: SetTrajectories, recipe: SetRecipe, base: Path | None, tracking_uri: str) -> SetTrainingStart:
    """The first line of the log."""
    return SetTrainingStart(
        recipe=recipe,
        data_digest=data.data_digest,
        test_digest="",
        block_length=data.block_length,
        sources=sources_of(data, base),
        threads=torch.get_num_threads(),
        torch_version=str(torch.__version__),
        tracking_uri=tracking_uri,
    )


def card_of(folder: Path, data: SetTrajectories, recipe: SetRecipe) -> SetCard | None:
    """The card of this very training, if it and the checkpoint it describes are whole."""
    try:
        card, facts = read_card(folder), inspect_set_model(folder)
    except (ValueError, OSError):
        return None
    return card if (card.digest, card.recipe, card.data_digest) == (facts.digest, recipe, data.data_digest) else None


def stored(
    model: SetModel,
    data: SetTrajectories,
    embedded_VH: Tensor,
    recipe: SetRecipe,
    folder: Path,
    *,
    base: Path | None,
    seconds: float,
) -> SetTrained:
    """Write the checkpoint, and its card once it was judged as stored, rounding included."""
    digest = save_set_model(model, folder)
    asked = load_set_model(folder, block_length=data.block_length)
    tally = judged(asked, data, embedded_VH, recipe, JUDGED_EXAMPLES)
    card = SetCard(
        digest=digest,
        block_length=data.block_length,
        hidden=data.hidden,
        width=model.config.width,
        layers=model.config.layers,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        fitted=sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
        recipe=recipe,
        seconds=seconds,
        threads=torch.get_num_threads(),
        torch_version=str(torch.__version__),
        data_digest=data.data_digest,
        traces=data.traces,
        steps_recorded=data.steps,
        prompts=data.prompts,
        held_out_prompts=data.held_out_prompts,
        sources=sources_of(data, base),
        held_out_loss=tally.loss,
        accuracy=accuracies(tally, data, recipe.max_depth),
        judged_limit=JUDGED_EXAMPLES,
        base=recipe.calibrate_from,
    )
    write_readme(folder, card)
    write_card(folder, card)
    return SetTrained(path=folder, card=card)


def sources_of(data: SetTrajectories, base: Path | None) -> tuple[SetSource, ...]:
    """What the weights come from: with a base model, what its card says it was trained on too."""
    if base is None:
        return data.sources
    trained = (source for source in read_card(base).sources if source.role == "trained on")  # its input layer is gone
    return (*trained, *(replace(source, role="calibrated on") for source in data.sources))
