"""Trajectories as training examples of the order model: compact rows of all steps, and batches drawn from them.

An example is (stale distribution at step s, the true commits s .. s+k as virtual prefix, label: the position committed
next). Only virtual states with at least two open positions are examples: with one there is nothing to predict, and a
full state is never drafted.

Shapes: R rows (masked positions of all steps), S steps, E examples (step and depth), B batch, A padded rows of a step,
L block width, K candidates.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.models.features import BEYOND, COMMITTED, OPEN, confidence_rank, path_columns, stale_features
from workers.replay.trace import Trace, decode_trace

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Input and labels of B examples: `label_B` indexes the A rows, `stale_best_B` is the row of the most confident
    stale position that is still open (the prediction to beat). `fresh_BA` is the log-odds that the target gives each
    open position in the very state that is asked about (0 elsewhere): what decides the label.
    """

    features_BAF: Tensor
    columns_BAC: Tensor
    open_BA: Tensor
    seen_BA: Tensor
    label_B: Tensor
    stale_best_B: Tensor
    fresh_BA: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectories:
    """All steps of some traces of one target and block length.

    `order_SL[s, i]` is the number of the commit that filled position i, counted from step s (0: its own commit,
    negative: before), COMMITTED for given tokens, BEYOND for positions that are never filled. `choices_S` is the
    number of depths that are examples, `rows_S` that of masked positions, `group_S` indexes `groups` (task,
    temperature), `held_out_S` marks prompts kept for validation.
    """

    block_length: int
    target: str
    target_digest: str
    data_digest: str
    traces: int
    prompts: int
    held_out_prompts: int
    groups: tuple[tuple[str, float], ...]
    logprobs_RK: Tensor
    logodds_R: Tensor
    entropy_R: Tensor
    outside_R: Tensor
    rows_S: Ints
    first_row_S: Tensor
    order_SL: Tensor
    choices_S: Ints
    group_S: Ints
    held_out_S: NDArray[np.bool_]

    @classmethod
    def read(cls, paths: Sequence[Path], *, held_out: float) -> Self:
        """The traces in some files. Raises ValueError on bad files, mixed targets or too few prompts to hold any
        out.
        """
        if not paths:
            raise ValueError("traces: none given")
        digest = hashlib.sha256()
        parts: list[_Part] = []
        for path in sorted(paths):
            data = path.read_bytes()
            digest.update(hashlib.sha256(data).digest())
            try:
                parts.append(_Part.of(decode_trace(data)))
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
        first = parts[0]
        for path, part in zip(sorted(paths), parts, strict=True):
            if (part.target_digest, part.block_length) != (first.target_digest, first.block_length):
                what = f"target {part.target_digest[:12]}, block length {part.block_length}"
                raise ValueError(f"{path}: {what}: the others have {first.target_digest[:12]}, {first.block_length}")
        groups = tuple(sorted({part.group for part in parts}))
        prompts = sorted({part.prompt for part in parts}, key=lambda prompt: hashlib.sha256(prompt.encode()).digest())
        kept = set(prompts[: math.ceil(held_out * len(prompts))])
        if len(kept) == len(prompts):
            raise ValueError(f"traces: {len(prompts)} prompts: at least 2 are needed, one of them held out")
        row_counts = np.concatenate([part.rows_S for part in parts])
        return cls(
            block_length=first.block_length,
            target=first.target,
            target_digest=first.target_digest,
            data_digest=digest.hexdigest(),
            traces=len(parts),
            prompts=len(prompts),
            held_out_prompts=len(kept),
            groups=groups,
            logprobs_RK=_joined([part.arrays["logprobs"] for part in parts]),
            logodds_R=_joined([part.arrays["logodds"] for part in parts]),
            entropy_R=_joined([part.arrays["entropy"] for part in parts]),
            outside_R=_joined([part.arrays["outside"] for part in parts]),
            rows_S=row_counts,
            first_row_S=torch.from_numpy(np.cumsum(row_counts) - row_counts),
            order_SL=torch.from_numpy(np.concatenate([part.order_SL for part in parts])),
            choices_S=np.concatenate([part.choices_S for part in parts]),
            group_S=np.concatenate([np.full(len(part.rows_S), groups.index(part.group)) for part in parts]),
            held_out_S=np.concatenate([np.full(len(part.rows_S), part.prompt in kept) for part in parts]),
        )

    def draw(self, rng: np.random.Generator, steps: Ints, count: int, max_depth: int) -> tuple[Ints, Ints]:
        """`count` random examples among `steps` (each with a choice): steps, and depths drawn evenly."""
        chosen = rng.choice(steps, count)
        return chosen, rng.integers(0, np.minimum(self.choices_S[chosen], max_depth))

    def batch(self, steps: Ints, depths: Ints) -> Batch:
        """The examples (steps[i], depths[i]): the commits steps[i] .. steps[i] + depths[i] are filled."""
        order_BL = self.order_SL[torch.from_numpy(steps)].long()
        depth_B1 = torch.from_numpy(depths)[:, None]
        masked_BL = (order_BL >= 0) & (order_BL < BEYOND)
        depth_BL = torch.where(masked_BL & (order_BL > depth_B1), OPEN, order_BL.clamp(min=COMMITTED))
        count_B = masked_BL.sum(-1)
        width = int(count_B.max())
        seen_BA = torch.arange(width) < count_B[:, None]
        at_BA = torch.argsort((~masked_BL).byte(), dim=-1, stable=True)[:, :width]  # masked positions first, ascending
        row_BA = (self.first_row_S[torch.from_numpy(steps)][:, None] + torch.arange(width)).clamp(
            max=len(self.logodds_R) - 1
        )
        logodds_BL = torch.full(order_BL.shape, -math.inf).masked_scatter_(masked_BL, self.logodds_R[row_BA[seen_BA]])
        rank_BL = confidence_rank(logodds_BL, masked_BL)
        rank_BA = rank_BL.gather(-1, at_BA)
        logprobs_BAK = self.logprobs_RK[row_BA]
        rows = (
            logprobs_BAK.exp(),
            logprobs_BAK,
            self.logodds_R[row_BA],
            self.entropy_R[row_BA],
            self.outside_R[row_BA],
        )
        columns_BLC = path_columns(depth_BL, rank_BL)
        open_BA = (depth_BL == OPEN).gather(-1, at_BA)
        label_BL = order_BL == depth_B1 + 1
        asked_B = torch.from_numpy(steps + depths + 1)  # the step whose state is the virtual one
        fresh_row_BA = (self.first_row_S[asked_B][:, None] + open_BA.cumsum(-1) - 1).clamp(min=0)
        return Batch(
            features_BAF=stale_features(*rows, rank_BA, block_length=self.block_length),
            columns_BAC=columns_BLC.gather(1, at_BA[..., None].expand(-1, -1, columns_BLC.shape[-1])),
            open_BA=open_BA,
            seen_BA=seen_BA,
            label_B=label_BL.gather(-1, at_BA).long().argmax(-1),
            stale_best_B=rank_BA.masked_fill(~open_BA, self.block_length + 1).argmin(-1),
            fresh_BA=torch.where(open_BA, self.logodds_R[fresh_row_BA], 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What is kept of one trace."""

    target: str
    target_digest: str
    block_length: int
    prompt: str
    group: tuple[str, float]
    rows_S: Ints
    order_SL: NDArray[np.int32]
    choices_S: Ints
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, trace: Trace) -> Self:
        header, length = trace.header, trace.header.decode.block_length
        order_SL = np.empty((len(trace), length), dtype=np.int32)
        bounds = np.array(trace.rows, dtype=np.int64)
        rows_S = bounds[1:] - bounds[:-1]
        starts = np.array([step.start for step in trace.steps])
        for start in np.unique(starts):
            steps = np.flatnonzero(starts == start)
            first = trace.steps[steps[0]].state
            order_L = np.where(np.array(first.tokens) == header.mask_id, BEYOND, COMMITTED)
            order_L[[trace.commits[step].position for step in steps]] = np.arange(len(steps))
            relative = order_L - np.arange(len(steps))[:, None]
            order_SL[steps] = np.where((order_L == BEYOND) | (order_L == COMMITTED), order_L, relative)
        if not np.array_equal(((order_SL >= 0) & (order_SL < BEYOND)).sum(-1), rows_S):
            raise ValueError("trace: it ends within a block")
        return cls(
            target=header.target,
            target_digest=header.target_digest,
            block_length=length,
            prompt=f"{header.task}/{header.prompt_id}",
            group=(header.task, header.decode.temperature),
            rows_S=rows_S,
            order_SL=order_SL,
            choices_S=np.maximum(rows_S - 2, 0),  # the known commit and the deepest prefix leave two open
            arrays={name: trace.arrays[name] for name in ("logprobs", "logodds", "entropy", "outside")},
        )


def _joined(parts: list[NDArray[Any]]) -> Tensor:
    return torch.from_numpy(np.concatenate([part.astype(np.float32, copy=False) for part in parts]))
