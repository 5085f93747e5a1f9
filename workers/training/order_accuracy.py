"""How often the order model is right, beside reading the stale confidences, at each depth of the draft.

Depth d is the d-th draft commit: the known commit and d - 1 true ones are filled, and the position of the next one is
asked for. The rival predicts the most confident stale position that is still open. Both are asked only where at least
two positions are open. Examples of one prompt are not independent, so the intervals (Wilson) are somewhat too narrow.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from sweeps.statistics import wilson
from workers.models.order_model import OrderModel
from workers.training.order_data import Ints, Trajectories

EVALUATION_BATCH = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """`hits` of `n`, with Wilson's 95 % interval (None where n is 0)."""

    hits: int
    n: int
    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, hits: int, n: int) -> "Share":
        """The share of `hits` in `n`."""
        estimate = wilson(hits, n)
        return cls(hits=hits, n=n, value=estimate.value, low=estimate.low, high=estimate.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthAccuracy:
    """Next-commit accuracy at one draft depth; `task` "" and `temperature` None stand for all."""

    task: str
    temperature: float | None
    depth: int
    order_model: Share
    stale_confidence: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Mean negative log-likelihood (nats) of some examples, and who was right about each."""

    loss: float
    right: NDArray[np.bool_]
    stale_right: NDArray[np.bool_]


def held_out_examples(data: Trajectories, max_depth: int, limit: int = 0) -> tuple[Ints, Ints]:
    """Steps and depths of all held-out examples up to `max_depth`; evenly thinned to about `limit` of them (0: all)."""
    steps = np.flatnonzero(data.held_out_S)
    counts = np.minimum(data.choices_S[steps], max_depth)
    depths = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    stride = max(1, len(depths) // limit) if limit else 1
    return np.repeat(steps, counts)[::stride], depths[::stride]


def judge_examples(model: OrderModel, data: Trajectories, steps: Ints, depths: Ints) -> Tally:
    """Ask the model about some examples (in evaluation mode; its weights are left alone)."""
    loss, right, stale_right = 0.0, np.zeros(len(steps), dtype=np.bool_), np.zeros(len(steps), dtype=np.bool_)
    order = np.argsort(data.rows_S[steps], kind="stable")  # equal widths together: less padding
    model.eval()
    with torch.inference_mode():
        for at in np.split(order, range(EVALUATION_BATCH, len(order), EVALUATION_BATCH)):
            batch = data.batch(steps[at], depths[at])
            hidden_BAW = model.encode(model.embed_stale(batch.features_BAF), batch.columns_BAC, batch.seen_BA)
            logq_BA = model.log_order(hidden_BAW, batch.open_BA)
            loss -= float(logq_BA.gather(-1, batch.label_B[:, None]).sum())
            right[at] = (logq_BA.argmax(-1) == batch.label_B).numpy()
            stale_right[at] = (batch.stale_best_B == batch.label_B).numpy()
    return Tally(loss=loss / max(len(steps), 1), right=right, stale_right=stale_right)


def accuracy_table(model: OrderModel, data: Trajectories, max_depth: int) -> tuple[float, tuple[DepthAccuracy, ...]]:
    """Held-out loss and accuracies: over all, then for each task and temperature, at each depth from 1."""
    steps, depths = held_out_examples(data, max_depth)
    tally = judge_examples(model, data, steps, depths)
    groups = data.group_S[steps]
    rows = []
    for number, (task, temperature) in ((None, ("", None)), *enumerate(data.groups)):
        for depth in range(max_depth):
            chosen = (depths == depth) & (True if number is None else groups == number)
            n = int(chosen.sum())
            rows.append(
                DepthAccuracy(
                    task=task,
                    temperature=temperature,
                    depth=depth + 1,
                    order_model=Share.of(int(tally.right[chosen].sum()), n),
                    stale_confidence=Share.of(int(tally.stale_right[chosen].sum()), n),
                )
            )
    return tally.loss, tuple(rows)
