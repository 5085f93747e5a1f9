"""How often the order model is right, beside reading the stale confidences, at each depth of the draft.

Depth d is the d-th draft commit: the known commit and d - 1 true ones are filled, and the position of the next one is
asked for. The rival predicts the most confident stale position that is still open. Both are asked only where at least
two positions are open. Examples of one prompt are not independent, so the intervals (Wilson) are somewhat too narrow.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from workers.models.order_model import OrderModel
from workers.training.order_card import ROLES, DepthAccuracy, Role, Share, Source
from workers.training.order_data import Trajectories
from workers.training.order_part import Ints

EVALUATION_BATCH = 512
Group = tuple[Role, str, str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Mean negative log-likelihood (nats) of some examples, and who was right about each. `depths` counts from 0."""

    losses: NDArray[np.float64]
    right: NDArray[np.bool_]
    stale_right: NDArray[np.bool_]
    depths: Ints

    @property
    def loss(self) -> float | None:
        """The mean loss (None: no examples)."""
        return float(self.losses.mean()) if len(self.losses) else None

    def shares(self, chosen: NDArray[np.bool_], depth: int) -> tuple[Share, Share]:
        """Order model and stale confidence on the `chosen` examples of one depth (from 1)."""
        at = chosen & (self.depths == depth - 1)
        return Share.of(int(self.right[at].sum()), int(at.sum())), Share.of(
            int(self.stale_right[at].sum()), int(at.sum())
        )


def judged_examples(data: Trajectories, role: Role, max_depth: int, limit: int = 0) -> tuple[Ints, Ints]:
    """Steps and depths of all judged examples of a role up to `max_depth`.

    They are evenly thinned to about `limit` of them (0: all).
    """
    of_role = np.array([source.role == role for source in data.sources])
    steps = np.flatnonzero(data.judged_S & of_role[data.source_S])
    counts = np.minimum(data.choices_S[steps], max_depth)
    depths = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    stride = max(1, len(depths) // limit) if limit else 1
    return np.repeat(steps, counts)[::stride], depths[::stride]


def judge_examples(model: OrderModel, data: Trajectories, steps: Ints, depths: Ints) -> Tally:
    """Ask the model about some examples (in evaluation mode; its weights are left alone)."""
    losses = np.zeros(len(steps))
    right, stale_right = np.zeros(len(steps), dtype=np.bool_), np.zeros(len(steps), dtype=np.bool_)
    order = np.argsort(data.rows_S[steps], kind="stable")  # equal widths together: less padding
    model.eval()
    with torch.inference_mode():
        for at in np.split(order, range(EVALUATION_BATCH, len(order), EVALUATION_BATCH)):
            if not len(at):
                continue
            batch = data.batch(steps[at], depths[at])
            hidden_BAW = model.encode(model.embed_stale(batch.features_BAF), batch.columns_BAC, batch.seen_BA)
            logq_BA = model.log_order(hidden_BAW, batch.open_BA)
            losses[at] = -logq_BA.gather(-1, batch.label_B[:, None]).squeeze(-1).numpy()
            right[at] = (logq_BA.argmax(-1) == batch.label_B).numpy()
            stale_right[at] = (batch.stale_best_B == batch.label_B).numpy()
    return Tally(losses=losses, right=right, stale_right=stale_right, depths=depths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """All accuracies of a model, and its mean loss in nats for each role (None: nothing to judge)."""

    accuracy: tuple[DepthAccuracy, ...]
    loss: dict[Role, float | None]


def judge(model: OrderModel, data: Trajectories, max_depth: int) -> Judged:
    """Accuracies at each depth from 1, of every role, target, task and temperature that there is (see `groups_of`)."""
    rows: list[DepthAccuracy] = []
    loss: dict[Role, float | None] = {}
    for role in ROLES:
        steps, depths = judged_examples(data, role, max_depth)
        tally = judge_examples(model, data, steps, depths)
        loss[role] = tally.loss
        for group in groups_of([source for source in data.sources if source.role == role]):
            of_group = np.array([belongs(source, group) for source in data.sources])
            chosen = of_group[data.source_S[steps]]
            for depth in range(1, max_depth + 1):
                ours, stale = tally.shares(chosen, depth)
                _, target, task, temperature = group
                rows.append(
                    DepthAccuracy(
                        role=role,
                        target=target,
                        task=task,
                        temperature=temperature,
                        depth=depth,
                        order_model=ours,
                        stale_confidence=stale,
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
