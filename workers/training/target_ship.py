"""From a recipe to a shipped checkpoint: train, write in the published layout, load again, evaluate, write the card.

What is evaluated is what is stored: the weights rounded to bfloat16, loaded as a user would load them.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import save_file

from sweeps.spec import DecodeSpec
from sweeps.statistics import wilson
from workers.catalog import FAMILIES
from workers.decoding.loop import decode
from workers.decoding.seen import Seen
from workers.decoding.stale import Stale
from workers.decoding.state import Commit
from workers.drafters.none import NoDrafter
from workers.targets.base import Target
from workers.targets.load import load_target
from workers.training.layouts import LAYOUTS, published
from workers.training.target import TASKS, Progress, Trained, train_target
from workers.training.target_card import HeldOut, TargetCard, write_card
from workers.training.target_recipes import TargetRecipe

HELD_OUT_SEED = 1


def ship_target(
    recipe: TargetRecipe,
    *,
    out_dir: Path,
    held_out: int = 200,
    progress: Callable[[Progress], None] | None = None,
    resume: Path | None = None,
) -> TargetCard:
    """Train the recipe's target, write checkpoint and card to `out_dir`, and return the card.

    `held_out` prompts of each task are decoded for the card, with each kind of cache that the family can keep. `resume`
    as in `train_target`.
    """
    trained = train_target(recipe, progress=progress, resume=resume)
    export(trained, out_dir)
    target, spec = load_target(out_dir), DecodeSpec(block_length=recipe.block_length)
    caches = FAMILIES[LAYOUTS[recipe.family].architecture].caches
    card = TargetCard(
        name=recipe.name,
        weight_digest=target.traits.weight_digest,
        parameters=target.traits.parameters,
        vocab_size=target.traits.vocab_size,
        recipe=recipe,
        loss=trained.loss,
        seconds=trained.seconds,
        threads=torch.get_num_threads(),
        torch_version=str(torch.__version__),
        max_new_tokens=spec.max_new_tokens,
        held_out=tuple(
            evaluate(load_target(out_dir, cache=cache), name, spec, limit=held_out)
            for cache in caches
            for name in recipe.tasks
        ),
    )
    write_card(out_dir, card)
    return card


def export(trained: Trained, folder: Path) -> None:
    """Write weights (bfloat16), configs, tokenizer and chat template in the published layout."""
    folder.mkdir(parents=True, exist_ok=True)
    trained.tokenizer.save_pretrained(str(folder))
    shape, tokenizer, layout = trained.body.shape, trained.tokenizer, LAYOUTS[trained.recipe.family]
    weights = published(layout.weights(shape), trained.body.state_dict())
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    config = {
        "architectures": [layout.architecture],
        **layout.fields(shape, trained.recipe.max_positions),
        "block_size": trained.recipe.block_length,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "mask_token_id": tokenizer.mask_token_id,
    }
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": [tokenizer.eos_token_id]}
    for name, value in (("config.json", config), ("generation_config.json", ends)):
        (folder / name).write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def evaluate(target: Target, task_name: str, spec: DecodeSpec, *, limit: int, seed: int = HELD_OUT_SEED) -> HeldOut:
    """Decode `limit` held-out prompts of a task without drafts, grade them, and count how commits follow each other."""
    task, order = TASKS[task_name], _Order()
    correct, nfe, kept, prefill = 0, 0, 0, 0
    for prompt in task.prompts(split="test", limit=limit, seed=seed):
        made = decode(target, NoDrafter(), target.encode(prompt.text), spec=spec, seed=0, watch=order.watch)
        correct += task.score(prompt, target.decode(made.output_ids[: made.tokens_kept])).correct
        nfe += made.counters.nfe
        kept += made.tokens_kept
        prefill += made.counters.prefill_positions
    return HeldOut(
        task=task_name,
        data_digest=task.data_digest,
        seed=seed,
        correct=wilson(correct, limit),
        nfe=nfe / limit,
        tokens_kept=kept / limit,
        prefill_positions=prefill / limit,
        commits=nfe,
        leftmost=share(order.leftmost),
        stale_position=share(order.position),
        stale_token=share(order.token),
        cache=target.traits.cache,
    )


def share(found: Sequence[bool]) -> float:
    """Share of true values (0 when there are none)."""
    return sum(found) / max(1, len(found))


@dataclass(slots=True)
class _Order:
    """Watches the commits of decode calls; `last` is the distribution and commit before, within one block."""

    leftmost: list[bool] = field(default_factory=list)
    position: list[bool] = field(default_factory=list)
    token: list[bool] = field(default_factory=list)
    last: tuple[int, Stale, Commit] | None = None

    def watch(self, seen: Seen) -> None:
        start, stale, commit = seen.start, seen.fresh(), seen.verdict.commit
        if len(stale.state.open) > 1:
            self.leftmost.append(commit.position == stale.state.open[0])
            if self.last and self.last[0] == start and self.last[1].state.fill(self.last[2]) == stale.state:
                _, before, _ = self.last
                guess = max(stale.state.open, key=lambda i: (float(before.logodds_L[i]), -i))
                self.position.append(guess == commit.position)
                self.token.append(int(before.ids_LK[commit.position, 0]) == commit.token)
        self.last = (start, stale, commit)
