"""Training of the tiny targets: one function from a recipe to weights and a tokenizer.

The warm start is block diffusion with blocks of one position, all masked: autoregressive prediction, but asked of mask
tokens as decoding does, so what it learns carries over (plain next-token prediction where a position predicts the next
one). Then blocks get their full width and random masks; whole-sequence targets go on with whole canvases. Muon for the
layers' matrices, AdamW for embedding, routers and vectors; products in bfloat16, weights and sums in float32.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812  (its usual name)
from torch import nn
from transformers import PreTrainedTokenizerFast

from workers.targets.layers import Body
from workers.tasks.base import Prompt
from workers.tasks.tiny_arith import TinyArith
from workers.tasks.tiny_code import TinyCode
from workers.training.balance import Balance
from workers.training.block_diffusion import (
    Batch,
    Bucket,
    bfloat16_attention,
    bucket,
    causal_batch,
    draw,
    noisy_batch,
)
from workers.training.layouts import LAYOUTS
from workers.training.target_recipes import TargetRecipe
from workers.training.target_state import TrainingRun
from workers.training.tiny_tokenizer import ASSISTANT, BEGIN, END, MASK, USER, train_tokenizer
from workers.training.whole_sequence import whole_batch

TASKS: dict[str, TinyArith | TinyCode] = {"tiny-arith": TinyArith(), "tiny-code": TinyCode()}
RECENT = 50  # steps whose mean loss the card states
SAVE_EVERY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One training step of the run; `phase` is `warm`, `diffusion` or `whole`, `loss` in nats per learned position."""

    phase: str
    step: int
    steps: int
    loss: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Weights (float32), tokenizer and cost of a training run; `loss` is the mean of the last steps' losses."""

    recipe: TargetRecipe
    body: Body
    tokenizer: PreTrainedTokenizerFast
    loss: float
    seconds: float


def train_target(
    recipe: TargetRecipe, *, progress: Callable[[Progress], None] | None = None, resume: Path | None = None
) -> Trained:
    """Train the recipe's target from nothing, or go on from the state file `resume`, which is kept up to date.

    A step is a function of the recipe, the weights and its number alone, so a resumed run gives the weights of an
    uninterrupted one. Deterministic for one machine, library build and number of threads. Raises ValueError when the
    state file belongs to another recipe.
    """
    pairs = list(chain.from_iterable(examples(recipe)))
    texts = (text for prompt, answer in pairs for text in (prompt.text, answer))
    tokenizer = train_tokenizer(texts, words=recipe.words)
    mask_id, end_id = (tokenizer.convert_tokens_to_ids(token) for token in (MASK, END))
    buckets = bucket(encoded(tokenizer, pairs), block_length=recipe.block_length, end_id=end_id)
    torch.manual_seed(recipe.seed)
    body = Body(recipe.shape(len(tokenizer)))
    initialise(body)
    run = TrainingRun(recipe, body)
    if resume and resume.exists():
        run.restore(resume)
    balance, total = Balance(body, recipe.balance_rate), sum(steps for _, steps in recipe.phases)
    started = time.perf_counter() - run.seconds
    for step in range(run.step, total):
        phase, into = phase_of(recipe, step)
        if into == 0 and step:
            run.fresh_optimizers()
        batch = step_batch(recipe, buckets, step, mask_id, end_id)
        run.losses = [*run.losses, train_step(body, batch, run.optimizers, rate_scale(recipe, step))][-RECENT:]
        balance.step()
        run.step, run.seconds = step + 1, time.perf_counter() - started
        if progress:
            progress(Progress(phase=phase, step=step + 1, steps=total, loss=run.losses[-1], seconds=run.seconds))
        if resume and run.step % SAVE_EVERY == 0:
            run.save(resume)
    loss = sum(run.losses) / len(run.losses)
    return Trained(recipe=recipe, body=body.eval(), tokenizer=tokenizer, loss=loss, seconds=run.seconds)


def examples(recipe: TargetRecipe) -> Iterator[Iterator[tuple[Prompt, str]]]:
    """The worked training examples of each task of the recipe."""
    for name in recipe.tasks:
        yield TASKS[name].examples(split="train", limit=recipe.examples_per_task, seed=recipe.seed)


def phase_of(recipe: TargetRecipe, step: int) -> tuple[str, int]:
    """The phase of a step, and the number of the step in it."""
    for name, steps in recipe.phases:
        if step < steps:
            return name, step
        step -= steps
    raise AssertionError("a step behind the last one")


def step_batch(recipe: TargetRecipe, buckets: Sequence[Bucket], step: int, mask_id: int, end_id: int) -> Batch:
    """The batch of a step; its randomness is the recipe's seed and the step's number."""
    rng = torch.Generator().manual_seed(recipe.seed * 1_000_003 + step)
    phase, shift = phase_of(recipe, step)[0], LAYOUTS[recipe.family].shift
    rows = draw(buckets, recipe.whole_batch if phase == "whole" else recipe.batch, rng)
    if phase == "warm":
        if shift:
            return causal_batch(rows)
        return noisy_batch(rows, block_length=1, copies=1, full_mask=1.0, mask_id=mask_id, rng=rng)
    if phase == "diffusion":
        return noisy_batch(
            rows,
            block_length=recipe.block_length,
            copies=recipe.copies,
            full_mask=recipe.full_mask,
            mask_id=mask_id,
            rng=rng,
            shift=shift,
        )
    return whole_batch(
        rows,
        block_length=recipe.block_length,
        new_tokens=recipe.new_tokens,
        full_mask=recipe.full_mask,
        behind=recipe.behind,
        mask_id=mask_id,
        end_id=end_id,
        rng=rng,
        shift=shift,
    )


def train_step(body: Body, batch: Batch, optimizers: Sequence[torch.optim.Optimizer], scale: float) -> float:
    """One optimizer step at `scale` times the base rates; returns the loss in nats per learned position."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden_BTH = body(batch.ids_BT, batch.positions_T, bfloat16_attention(batch.visible_TT))
        learned_BT = batch.labels_BT >= 0
        logits_XV = hidden_BTH[learned_BT] @ body.embed_tokens.weight.T
    loss = F.cross_entropy(logits_XV.float(), batch.labels_BT[learned_BT])
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(body.parameters(), 1.0)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["base_rate"] * scale
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


def rate_scale(recipe: TargetRecipe, step: int) -> float:
    """Share of the base rates: each phase rises linearly; the last falls to zero over its last part."""
    phase, into = phase_of(recipe, step)
    last, steps = [named for named in recipe.phases if named[1]][-1]
    fall = (steps - into) / max(1.0, recipe.decay * steps) if phase == last else 1.0
    return min(1.0, (into + 1) / recipe.rise, fall)


def encoded(
    tokenizer: PreTrainedTokenizerFast, pairs: Sequence[tuple[Prompt, str]]
) -> Iterator[tuple[list[int], list[int]]]:
    """Ids of each prompt in the chat template, and of its answer."""
    raw = tokenizer.backend_tokenizer
    for first in range(0, len(pairs), 500):  # encodings are large: a few at a time
        part = pairs[first : first + 500]
        asked = raw.encode_batch([f"{BEGIN}{USER}{prompt.text}{ASSISTANT}" for prompt, _ in part])
        told = raw.encode_batch([answer for _, answer in part])
        for question, answer in zip(asked, told, strict=True):
            yield question.ids, answer.ids
