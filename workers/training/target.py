"""Training of the tiny block-diffusion targets: one function from a recipe to weights and a tokenizer.

Short autoregressive warm start, then the block-diffusion loss at masked positions. Muon for the layers' matrices, AdamW
for the embedding and the norms; products in bfloat16, weights and sums in float32. State is saved now and then, so a
run can go on.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812  (its usual name)
from torch import nn
from transformers import PreTrainedTokenizerFast

from workers.targets.layers import Body, dense_attention
from workers.tasks.base import Prompt
from workers.tasks.tiny_arith import TinyArith
from workers.tasks.tiny_code import TinyCode
from workers.training.block_diffusion import Batch, batches, bucket, noisy_batch
from workers.training.recipes import TargetRecipe
from workers.training.tiny_tokenizer import ASSISTANT, BEGIN, END, MASK, USER, train_tokenizer

TASKS: dict[str, TinyArith | TinyCode] = {"tiny-arith": TinyArith(), "tiny-code": TinyCode()}
SAVE_EVERY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One training step: `phase` is `warm` or `diffusion`, `loss` is nats per learned position, `seconds` since the
    start.
    """

    phase: str
    step: int
    steps: int
    loss: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Weights (float32), tokenizer and cost of a training run."""

    body: Body
    tokenizer: PreTrainedTokenizerFast
    steps: int
    seconds: float
    final_loss: float


def examples(recipe: TargetRecipe) -> dict[str, list[tuple[Prompt, str]]]:
    """The training examples of each task of the recipe."""
    return {
        name: list(TASKS[name].examples(split="train", limit=recipe.examples_per_task, seed=recipe.seed))
        for name in recipe.tasks
    }


def train_target(
    recipe: TargetRecipe, *, progress: Callable[[Progress], None] | None = None, resume: Path | None = None
) -> Trained:
    """Train the recipe's target from nothing, or go on from the state file `resume`, which is also written to.

    Deterministic for one machine, library build and number of threads. Raises ValueError when `resume` holds another
    recipe.
    """
    torch.manual_seed(recipe.seed)
    rng = torch.Generator().manual_seed(recipe.seed)
    data = examples(recipe)
    pairs = list(chain.from_iterable(data.values()))
    tokenizer = train_tokenizer(text for prompt, answer in pairs for text in (prompt.text, answer))
    end_id, mask_id = (tokenizer.convert_tokens_to_ids(token) for token in (END, MASK))
    buckets = bucket(_encoded(tokenizer, pairs), block_length=recipe.block_length, end_id=end_id)
    body = Body(recipe.shape(len(tokenizer)))
    initialise(body)
    started, loss = time.perf_counter(), 0.0
    rows = batches(buckets, recipe.batch, rng)
    plan: Sequence[tuple[str, int]] = (("warm", recipe.warm_start), ("diffusion", recipe.steps))
    for phase, steps in plan:
        optimizers = _optimizers(body, recipe)
        for step in range(steps):
            batch = noisy_batch(
                next(rows),
                block_length=1 if phase == "warm" else recipe.block_length,
                copies=1 if phase == "warm" else recipe.copies,
                full_mask=1.0 if phase == "warm" else recipe.full_mask,
                mask_id=mask_id,
                rng=rng,
            )
            scale = _rate_scale(step, steps, recipe, decays=phase == "diffusion")
            loss = train_step(body, batch, optimizers, scale)
            if progress:
                seconds = time.perf_counter() - started
                progress(Progress(phase=phase, step=step + 1, steps=steps, loss=loss, seconds=seconds))
    return Trained(
        body=body.eval(),
        tokenizer=tokenizer,
        steps=recipe.warm_start + recipe.steps,
        seconds=time.perf_counter() - started,
        final_loss=loss,
    )


def train_step(body: Body, batch: Batch, optimizers: Sequence[torch.optim.Optimizer], scale: float) -> float:
    """One optimizer step at `scale` times the base rates; returns the loss in nats per learned position."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden_BTH = body(batch.ids_BT, batch.positions_T, dense_attention(batch.visible_11TT))
        learned_BT = batch.labels_BT >= 0
        logits_XV = hidden_BTH[learned_BT] @ body.embed_tokens.weight.T
    loss = F.cross_entropy(logits_XV.float(), batch.labels_BT[learned_BT])
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(body.parameters(), 1.0)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["base_lr"] * scale
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def initialise(body: Body) -> None:
    """Normal weights of standard deviation 1/sqrt(fan in); what writes to the residual stream starts smaller."""
    shrink = (2 * body.shape.layers) ** -0.5
    for name, weight in body.named_parameters():
        if weight.dim() == 2:
            narrow = shrink if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
            nn.init.normal_(weight, std=weight.shape[1] ** -0.5 * narrow)


def _optimizers(body: Body, recipe: TargetRecipe) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    matrices = [p for name, p in body.named_parameters() if p.dim() == 2 and "embed" not in name]
    others = [p for name, p in body.named_parameters() if p.dim() != 2 or "embed" in name]
    muon = torch.optim.Muon(
        matrices, lr=recipe.muon_rate, weight_decay=0.01, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    adam = torch.optim.AdamW(others, lr=recipe.adam_rate, betas=(0.9, 0.95), weight_decay=0.0)
    for optimizer in (muon, adam):
        for group in optimizer.param_groups:
            group["base_lr"] = group["lr"]
    return muon, adam


def _rate_scale(step: int, steps: int, recipe: TargetRecipe, *, decays: bool) -> float:
    rise = min(1.0, (step + 1) / recipe.rise)
    fall = (steps - step) / max(1.0, recipe.decay * steps) if decays else 1.0
    return min(rise, fall, 1.0)


def _encoded(
    tokenizer: PreTrainedTokenizerFast, pairs: Iterable[tuple[Prompt, str]]
) -> Iterator[tuple[list[int], list[int]]]:
    raw = tokenizer.backend_tokenizer
    pairs = list(pairs)
    asked = raw.encode_batch([f"{BEGIN}{USER}{prompt.text}{ASSISTANT}" for prompt, _ in pairs])
    told = raw.encode_batch([answer for _, answer in pairs])
    for question, answer in zip(asked, told, strict=True):
        yield question.ids, answer.ids
