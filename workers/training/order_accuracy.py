"""How often the order model is right, beside reading the stale confidences, at each depth of the draft.

Depth d is the d-th draft commit: the known commit and d - 1 true ones are filled, and the position of the next one is
asked for. The rival predicts the most confident stale position that is still open. Both are asked only where at least
two positions are open. Examples of one prompt are not independent: intervals take the prompt as their unit, and so many
examples of a source as `JUDGED_EXAMPLES` say as much as all of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from workers.models.order_model import OrderModel
from workers.training.order_card import ROLES, DepthAccuracy, Role, Share, Source
from workers.training.order_data import Trajectories
from workers.training.order_part import Ints

EVALUATION_BATCH = 512
JUDGED_EXAMPLES = 8192  # of each source: about 800 a depth
JUDGED_SEED = 20261
Group = tuple[Role, str, str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingProgress:
    """Source number `number` of `total` is being judged."""

    number: int
    total: int
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Negative log-likelihoods (nats) of some examples, and who was right about each. `depths` counts from 0; examples
    of one prompt share a number in `prompts`.
    """

    losses: NDArray[np.float64]
    right: NDArray[np.bool_]
    stale_right: NDArray[np.bool_]
    depths: Ints
    prompts: Ints

    @property
    def loss(self) -> float | None:
        """The mean loss (None: no examples)."""
        return float(self.losses.mean()) if len(self.losses) else None

    def at(self, depth: int) -> "tuple[Share, Share, int]":
        """Order model and stale confidence at one depth (from 1), and the number of prompts behind them."""
        chosen = self.depths == depth - 1
        known, prompt = np.unique(self.prompts[chosen], return_inverse=True)
        trials_P = np.bincount(prompt, minlength=len(known))
        ours_P, stale_P = (
            np.bincount(prompt[right[chosen]], minlength=len(known)) for right in (self.right, self.stale_right)
        )
        return Share.clustered(ours_P, trials_P), Share.clustered(stale_P, trials_P), len(known)

    @classmethod
    def joined(cls, tallies: "Sequence[Tally]") -> "Tally":
        """The examples of all of them."""
        return cls(
            losses=np.concatenate([tally.losses for tally in tallies]),
            right=np.concatenate([tally.right for tally in tallies]),
            stale_right=np.concatenate([tally.stale_right for tally in tallies]),
            depths=np.concatenate([tally.depths for tally in tallies]),
            prompts=np.concatenate([tally.prompts for tally in tallies]),
        )


def judged_examples(data: Trajectories, role: Role, max_depth: int, limit: int = 0) -> tuple[Ints, Ints]:
    """Steps and depths of all judged examples of a role up to `max_depth`.

    They are evenly thinned to about `limit` of them (0: all).
    """
    of_role = np.array([source.role == role for source in data.sources])
    steps, depths = examples_of(data.choices_S, data.judged_S & of_role[data.source_S], max_depth)
    stride = max(1, len(depths) // limit) if limit else 1
    return steps[::stride], depths[::stride]


def source_examples(data: Trajectories, source: int, max_depth: int, limit: int) -> tuple[Ints, Ints]:
    """Steps and depths of the judged examples of a source up to `max_depth`: `limit` of them by a fixed seed, or all
    there are.
    """
    return some_of(*examples_of(data.choices_S, data.judged_S & (data.source_S == source), max_depth), limit)


def some_of(steps: Ints, depths: Ints, limit: int) -> tuple[Ints, Ints]:
    """`limit` of some examples by a fixed seed, or all there are."""
    if len(steps) <= limit:
        return steps, depths
    kept = np.sort(np.random.default_rng(JUDGED_SEED).choice(len(steps), limit, replace=False))
    return steps[kept], depths[kept]


def examples_of(choices_S: Ints, chosen_S: NDArray[np.bool_], max_depth: int) -> tuple[Ints, Ints]:
    """All examples of the chosen steps, each of which has so many depths."""
    steps = np.flatnonzero(chosen_S)
    counts = np.minimum(choices_S[steps], max_depth)
    depths = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(steps, counts), depths


def batches(rows_E: Ints, size: int) -> Iterator[Ints]:
    """Indices of examples of so many rows, at most `size` at once: equal widths together, which needs less padding."""
    order = np.argsort(rows_E, kind="stable")
    for first in range(0, len(order), size):
        yield order[first : first + size]


def judge_examples(model: OrderModel, data: Trajectories, steps: Ints, depths: Ints) -> Tally:
    """Ask the model about some examples (in evaluation mode; its weights are left alone)."""
    losses = np.zeros(len(steps))
    right, stale_right = np.zeros(len(steps), dtype=np.bool_), np.zeros(len(steps), dtype=np.bool_)
    model.eval()
    with torch.inference_mode():
        for at in batches(data.rows_S[steps], EVALUATION_BATCH):
            batch = data.batch(steps[at], depths[at])
            hidden_BAW = model.encode(model.embed_stale(batch.features_BAF), batch.columns_BAC, batch.seen_BA)
            logq_BA = model.log_order(hidden_BAW, batch.open_BA)
            losses[at] = -logq_BA.gather(-1, batch.label_B[:, None]).squeeze(-1).numpy()
            right[at] = (logq_BA.argmax(-1) == batch.label_B).numpy()
            stale_right[at] = (batch.stale_best_B == batch.label_B).numpy()
    prompts = data.prompt_S[steps]
    return Tally(losses=losses, right=right, stale_right=stale_right, depths=depths, prompts=prompts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """All accuracies of a model, and its mean loss in nats for each role (None: nothing to judge)."""

    accuracy: tuple[DepthAccuracy, ...]
    loss: dict[Role, float | None]


def judge(
    model: OrderModel,
    data: Trajectories,
    max_depth: int,
    *,
    limit: int = JUDGED_EXAMPLES,
    progress: Callable[[JudgingProgress], None] | None = None,
) -> Judged:
    """Accuracies at each depth from 1, of every role, target, task and temperature that there is (see `groups_of`).

    Of each source at most `limit` examples are asked; what is counted together counts what was asked.
    """
    tallies: dict[Source, Tally] = {}
    for index, source in enumerate(data.sources):
        if progress:
            progress(JudgingProgress(number=index + 1, total=len(data.sources), source=source))
        tallies[source] = judge_examples(model, data, *source_examples(data, index, max_depth, limit))
    loss: dict[Role, float | None] = dict.fromkeys(ROLES)
    rows: list[DepthAccuracy] = []
    for group in (group for role in ROLES for group in groups_of([s for s in data.sources if s.role == role])):
        role, target, task, temperature = group
        tally = Tally.joined([tallies[source] for source in data.sources if belongs(source, group)])
        if group == (role, "", "", None):
            loss[role] = tally.loss
        for depth in range(1, max_depth + 1):
            ours, stale, prompts = tally.at(depth)
            rows.append(
                DepthAccuracy(
                    role=role,
                    target=target,
                    task=task,
                    temperature=temperature,
                    depth=depth,
                    order_model=ours,
                    stale_confidence=stale,
                    prompts=prompts,
                )
            )
    return Judged(accuracy=tuple(rows), loss=loss)


def groups_of(sources: Sequence[Source]) -> tuple[Group, ...]:
    """What is counted together within one role: everything; each target and each task, where there are several; and
    each source.
    """
    if not sources:
        return ()
    role = sources[0].role
    targets, tasks = (list(dict.fromkeys(getattr(s, name) for s in sources)) for name in ("target", "task"))
    groups: list[Group] = [(role, "", "", None)]
    groups += [(role, target, "", None) for target in targets if len(targets) > 1]
    groups += [(role, "", task, None) for task in tasks if len(tasks) > 1]
    groups += [(role, source.target, source.task, source.temperature) for source in sources]
    return tuple(groups)


def belongs(source: Source, group: Group) -> bool:
    """Whether a source is counted in a group."""
    role, target, task, temperature = group
    return (
        source.role == role
        and target in ("", source.target)
        and task in ("", source.task)
        and temperature in (None, source.temperature)
    )
