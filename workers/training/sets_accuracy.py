"""How often a set model foresees the target's next step, beside reading the stale distribution by the rule itself.

Depth d is the d-th drafted step: the known step and d - 1 true ones are filled, and the next one is asked for,
positions and tokens. Both readers are judged alike: positions they would fill and, for each, a token. Examples of one
prompt are not independent: intervals take the prompt as their unit.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.models.set_model import SetModel
from workers.training.order_accuracy import batches, examples_of, some_of
from workers.training.order_card import Share
from workers.training.order_part import Ints
from workers.training.sets_card import Reading, SetAccuracy
from workers.training.sets_data import SetBatch, SetTrajectories
from workers.training.sets_step import SetAnswer, answer, losses_of

EVALUATION_BATCH = 256
JUDGED_EXAMPLES = 32_768
MODEL, STALE = 0, 1
Group = tuple[str, float | None, float | None]
COUNTS = ("exact", "asked", "hit", "guessed", "filled", "token")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTally:
    """Counts of both readers (`counts[name][reader, example]`), losses in nats, and what the examples are of."""

    losses: NDArray[np.float64]
    counts: dict[str, NDArray[np.int64]]
    depths: Ints
    prompts: Ints
    sources: Ints

    @property
    def loss(self) -> float:
        """The mean loss."""
        return float(self.losses.mean())

    def total(self, depth: int) -> Reading:
        """The model on all examples at one depth (from 1)."""
        model, _, _ = self.at(depth, np.ones(len(self.depths), dtype=np.bool_))
        return model

    def at(self, depth: int, chosen: NDArray[np.bool_]) -> tuple[Reading, Reading, int]:
        """Model and stale reading of the chosen examples at one depth (from 1), and the prompts behind them."""
        chosen = chosen & (self.depths == depth - 1)
        known, prompt = np.unique(self.prompts[chosen], return_inverse=True)

        def share(hits: str, of: str, reader: int) -> Share:
            ours, all_of_them = (self.counts[name][reader, chosen] for name in (hits, of))
            hits_P, trials_P = (np.bincount(prompt, column, len(known)) for column in (ours, all_of_them))
            return Share.clustered(hits_P.astype(np.int64), trials_P.astype(np.int64))

        model, stale = (
            Reading(
                exact=share("exact", "asked", reader),
                precision=share("hit", "guessed", reader),
                recall=share("hit", "filled", reader),
                tokens=share("token", "filled", reader),
            )
            for reader in (MODEL, STALE)
        )
        return model, stale, len(known)


def held_out_examples(data: SetTrajectories, max_depth: int, limit: int) -> tuple[Ints, Ints]:
    """Steps and depths of the examples of held-out prompts up to `max_depth`: `limit` of them by a fixed seed."""
    return some_of(*examples_of(data.choices_S, ~data.learnt_S, max_depth), limit)


def judge_examples(
    model: SetModel, data: SetTrajectories, embedded_VH: Tensor, steps: Ints, depths: Ints, other_weight: float
) -> SetTally:
    """Ask the model about some examples (in evaluation mode; its weights are left alone)."""
    losses = np.zeros(len(steps))
    counts = {name: np.zeros((2, len(steps)), dtype=np.int64) for name in COUNTS}
    model.eval()
    with torch.inference_mode():
        for at in batches(data.rows_S[steps], EVALUATION_BATCH):
            batch = data.batch(steps[at], depths[at])
            found = answer(model, batch, embedded_VH)
            losses[at] = losses_of(found, batch, other_weight).double().numpy()
            even = torch.zeros_like(batch.limit_B)
            readers = ((found.odds_BA, even, tokens_of(found, batch)), (batch.odds_BA, batch.limit_B, batch.drawn_BA))
            for reader, (odds_BA, limit_B, tokens_BA) in enumerate(readers):
                for name, count_B in counted(odds_BA, limit_B, tokens_BA, batch).items():
                    counts[name][reader, at] = count_B.numpy()
    return SetTally(
        losses=losses, counts=counts, depths=depths, prompts=data.prompt_S[steps], sources=data.source_S[steps]
    )


def tokens_of(found: SetAnswer, batch: SetBatch) -> Tensor:
    """The tokens that the drafter would draft, `tokens_BA`: the likeliest, or drawn with the shared noise."""
    heat_B11 = batch.heat_B[:, None, None]
    scores_BAC = found.logp_BAC / torch.where(heat_B11 > 0, heat_B11, 1.0) + batch.noise_BAC
    return batch.ids_BAC.gather(-1, scores_BAC.argmax(-1, keepdim=True)).squeeze(-1)


def counted(odds_BA: Tensor, limit_B: Tensor, tokens_BA: Tensor, batch: SetBatch) -> dict[str, Tensor]:
    """What reading the next step off log-odds and tokens is worth: fill what exceeds the limit, or else the best."""
    odds_BA = odds_BA.masked_fill(~batch.open_BA, -torch.inf)
    guessed_BA = odds_BA > limit_B[:, None]
    best_BA = torch.zeros_like(guessed_BA).scatter_(-1, odds_BA.argmax(-1, keepdim=True), True)
    guessed_BA = torch.where(guessed_BA.any(-1, keepdim=True), guessed_BA, best_BA)
    right_BA = batch.member_BA & (tokens_BA == batch.tokens_BA)
    same_B = (guessed_BA == batch.member_BA).all(-1)
    return {
        "exact": same_B & (right_BA == batch.member_BA).all(-1),
        "asked": torch.ones_like(same_B),
        "hit": (guessed_BA & batch.member_BA).sum(-1),
        "guessed": guessed_BA.sum(-1),
        "filled": batch.member_BA.sum(-1),
        "token": right_BA.sum(-1),
    }


def accuracies(tally: SetTally, data: SetTrajectories, max_depth: int) -> tuple[SetAccuracy, ...]:
    """At each depth from 1: over everything, each tau, and each task and temperature."""
    sources = data.sources
    groups: dict[Group, list[int]] = {("", None, None): list(range(len(sources)))}
    for number, source in enumerate(sources):
        both: tuple[Group, ...] = ((source.task, source.temperature, None), ("", None, source.tau))
        for group in both:
            groups.setdefault(group, []).append(number)
    rows = []
    for group in sorted(groups, key=lambda group: (group[0], group[2] or 0.0, group[1] or 0.0)):
        task, temperature, tau = group
        chosen = np.isin(tally.sources, groups[group])
        for depth in range(1, max_depth + 1):
            model, stale, prompts = tally.at(depth, chosen)
            rows.append(
                SetAccuracy(
                    depth=depth,
                    model=model,
                    stale=stale,
                    prompts=prompts,
                    task=task,
                    temperature=temperature,
                    tau=tau,
                )
            )
    return tuple(rows)
