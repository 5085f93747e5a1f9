"""Trajectories as training examples of the order model: compact rows of all steps, and batches drawn from them.

An example is (stale distribution at step s, the true commits s .. s+k as virtual prefix, label: the position committed
next). Only virtual states with at least two open positions are examples: with one there is nothing to predict, and a
full state is never drafted.

Shapes: R rows (masked positions of all steps), S steps, E examples (step and depth), B batch, A padded rows of a step,
L block width, K candidates.
"""

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from workers.decoding.stale import TOP_K
from workers.models.features import stale_features
from workers.training.order_card import Source
from workers.training.order_part import Ints, Key, Part, digest_of, kept_prompts, read_parts, repeated
from workers.training.virtual import VirtualBatch


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
    """All steps of some traces of one block length; those of sources that are only judged come last.

    `order_SL[s, i]` is the number of the commit that filled position i, counted from step s (0: its own commit,
    negative: before), COMMITTED for given tokens, BEYOND for positions that are never filled. `choices_S` is the
    number of depths that are examples, `rows_S` that of masked positions, `source_S` indexes `sources`. `learnt_S`
    marks what is trained on, `judged_S` steps of prompts that are trained on nowhere; steps of one prompt (of whatever
    target and temperature) share a number in `prompt_S`. Counts and `data_digest` are
    those of the traces to train on; `test_traces` and `test_digest` those of the others.
    """

    block_length: int
    data_digest: str
    test_digest: str
    traces: int
    test_traces: int
    steps: int
    prompts: int
    held_out_prompts: int
    sources: tuple[Source, ...]
    logprobs_RK: Tensor
    logodds_R: Tensor
    entropy_R: Tensor
    outside_R: Tensor
    rows_S: Ints
    first_row_S: Tensor
    order_SL: Tensor
    choices_S: Ints
    source_S: Ints
    prompt_S: Ints
    learnt_S: NDArray[np.bool_]
    judged_S: NDArray[np.bool_]

    @classmethod
    def read(cls, paths: Sequence[Path], *, held_out: float, test_paths: Sequence[Path] = ()) -> Self:
        """The traces to train on in `paths`, and those to judge only in `test_paths`.

        The share `held_out` of the prompts to train on is held out, at every temperature and of every target; prompts
        are split in the order of a hash, so what is judged only moves nothing. Raises ValueError on bad files, mixed
        block lengths or too few prompts to hold any out.
        """
        learnt = read_parts(paths, partial(Part.of, role="trained on"))
        test = read_parts(test_paths, partial(Part.of, role="out of domain"))
        if not learnt:
            raise ValueError("traces: none given")
        parts = [*learnt, *test]
        length = parts[0].block_length
        for part in parts:
            if part.block_length != length:
                raise ValueError(f"{part.path}: block length {part.block_length}: the others have {length}")
        prompts = {part.prompt for part in learnt}
        kept = kept_prompts(prompts, held_out)
        seen = prompts - kept
        labels = labels_of(parts)
        keys = sorted({part.key for part in parts}, key=lambda key: (key[0] != "trained on", *key))
        numbers = {prompt: number for number, prompt in enumerate(sorted({part.prompt for part in parts}))}
        row_counts = np.concatenate([part.rows_S for part in parts])
        spread = partial(repeated, steps=[len(part.rows_S) for part in parts])
        return cls(
            block_length=length,
            data_digest=digest_of(part.sha256 for part in learnt),
            test_digest=digest_of(part.sha256 for part in test) if test else "",
            traces=len(learnt),
            test_traces=len(test),
            steps=sum(len(part.rows_S) for part in learnt),
            prompts=len(prompts),
            held_out_prompts=len(kept),
            sources=tuple(source_of(key, parts, seen, labels) for key in keys),
            logprobs_RK=_joined([part.arrays["logprobs"] for part in parts], width=TOP_K),
            logodds_R=_joined([part.arrays["logodds"] for part in parts]),
            entropy_R=_joined([part.arrays["entropy"] for part in parts]),
            outside_R=_joined([part.arrays["outside"] for part in parts]),
            rows_S=row_counts,
            first_row_S=torch.from_numpy(np.cumsum(row_counts) - row_counts),
            order_SL=torch.from_numpy(np.concatenate([part.order_SL for part in parts])),
            choices_S=np.concatenate([part.choices_S for part in parts]),
            source_S=spread((keys.index(part.key) for part in parts), kind=np.int64),
            prompt_S=spread((numbers[part.prompt] for part in parts), kind=np.int64),
            learnt_S=spread((part.role == "trained on" and part.prompt in seen for part in parts), kind=np.bool_),
            judged_S=spread((part.prompt not in seen for part in parts), kind=np.bool_),
        )

    def batch(self, steps: Ints, depths: Ints) -> Batch:
        """The examples (steps[i], depths[i]): the commits steps[i] .. steps[i] + depths[i] are filled."""
        states = VirtualBatch.of(
            steps, depths, order_SL=self.order_SL, first_row_S=self.first_row_S, logodds_R=self.logodds_R
        )
        row_BA, open_BA = states.row_BA, states.open_BA
        logprobs_BAK = self.logprobs_RK[row_BA]
        rows = (
            logprobs_BAK.exp(),
            logprobs_BAK,
            self.logodds_R[row_BA],
            self.entropy_R[row_BA],
            self.outside_R[row_BA],
        )
        return Batch(
            features_BAF=stale_features(*rows, states.rank_BA, block_length=self.block_length),
            columns_BAC=states.columns_BAC,
            open_BA=open_BA,
            seen_BA=states.seen_BA,
            label_B=states.asked_BA.long().argmax(-1),
            stale_best_B=states.rank_BA.masked_fill(~open_BA, self.block_length + 1).argmin(-1),
            fresh_BA=torch.where(open_BA, self.logodds_R[states.fresh_row_BA], 0.0),
        )


def labels_of(parts: Sequence[Part]) -> dict[str, str]:
    """A name for each weight digest: the target's own, with the digest behind it where two share a name."""
    names = {part.target_digest: part.target for part in parts}
    shared = [name for name, count in Counter(names.values()).items() if count > 1]
    return {digest: f"{name} ({digest[:8]})" if name in shared else name for digest, name in names.items()}


def source_of(key: Key, parts: Sequence[Part], seen: Container[str], labels: Mapping[str, str]) -> Source:
    """A source, with its prompts counted; `seen` are those trained on."""
    role, _, target_digest, task, temperature = key
    prompts = {part.prompt for part in parts if part.key == key}
    return Source(
        role=role,
        target=labels[target_digest],
        target_digest=target_digest,
        task=task,
        temperature=temperature,
        prompts=len(prompts),
        judged=sum(prompt not in seen for prompt in prompts),
    )


def _joined(parts: list[NDArray[Any]], width: int = 0) -> Tensor:
    """The rows of all parts in float32; with `width`, candidates that a small vocabulary lacks count as impossible."""
    tensors = [torch.from_numpy(part.astype(np.float32, copy=False)) for part in parts]
    if width:
        tensors = [functional.pad(rows, (0, width - rows.shape[-1]), value=-math.inf) for rows in tensors]
    return torch.cat(tensors)
