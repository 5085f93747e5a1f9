"""Trajectories of threshold decoding as training examples of the set model, and batches drawn from them.

An example is (stale distribution at step s, the known step s and the true steps s+1 .. s+k as virtual prefix, label:
the step s+k+1): which open positions it fills, and what the target then thinks of the stale candidates there.

Shapes: R rows (masked positions of all steps), S steps, E examples (step and depth), B batch, A padded rows of a step,
L block width, K candidates kept, C those that may be taken, H the target's width.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from workers.models.features import stale_features
from workers.models.order_shapes import TOP_K
from workers.models.set_features import ABSENT, candidates_of, with_tau
from workers.training.order_part import Ints, digest_of, kept_prompts, read_parts, repeated
from workers.training.sets_card import SetSource
from workers.training.sets_part import SetPart
from workers.training.virtual import VirtualBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBatch:
    """Input and labels of B examples.

    `tokens_BA` are those that the positions hold in the end, which is what the model is shown of filled ones;
    `member_BA` marks the positions that the asked step fills; `fresh_BAC` is the probability that the target gives each
    stale candidate at that step (0 at filled positions). The rest is what the stale distribution says by itself: its
    draws `drawn_BA`, log-odds `odds_BA` and their limit; `heat_B` is the temperature, `noise_BAC` the shared noise.
    """

    features_BAF: Tensor
    hidden_BAH: Tensor
    ids_BAC: Tensor
    logprobs_BAC: Tensor
    columns_BAC: Tensor
    open_BA: Tensor
    seen_BA: Tensor
    tokens_BA: Tensor
    member_BA: Tensor
    fresh_BAC: Tensor
    drawn_BA: Tensor
    odds_BA: Tensor
    limit_B: Tensor
    heat_B: Tensor
    noise_BAC: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTrajectories:
    """All steps of some traces of one target and block length.

    `order_SL[s, i]` is the number of the step that filled position i, counted from step s (see `fill_order`).
    `choices_S` is the number of depths that are examples, `rows_S` that of masked positions, `source_S` indexes
    `sources`. `learnt_S` marks what is trained on; the other steps are of held-out prompts. Steps of one prompt share a
    number in `prompt_S`.
    """

    block_length: int
    data_digest: str
    traces: int
    prompts: int
    held_out_prompts: int
    sources: tuple[SetSource, ...]
    ids_RK: Tensor
    logprobs_RK: Tensor
    logodds_R: Tensor
    entropy_R: Tensor
    outside_R: Tensor
    hidden_RH: Tensor
    noise_RK: Tensor
    drawn_R: Tensor
    rows_S: Ints
    first_row_S: Tensor
    order_SL: Tensor
    tokens_SL: Tensor
    limit_S: Tensor
    heat_S: Tensor
    choices_S: Ints
    source_S: Ints
    prompt_S: Ints
    learnt_S: NDArray[np.bool_]

    @classmethod
    def read(cls, paths: Sequence[Path], *, held_out: float) -> Self:
        """The traces in `paths`; the share `held_out` of the prompts is held out, by every tau and temperature.

        Raises ValueError on bad files, several targets or block lengths, or too few prompts to hold any out.
        """
        parts = read_parts(paths, SetPart.of)
        if not parts:
            raise ValueError("traces: none given")
        for part in parts:
            for name in ("block_length", "target_digest"):
                found, first = getattr(part, name), getattr(parts[0], name)
                if found != first:
                    raise ValueError(f"{part.path}: {name} is {found}: the others have {first}")
        prompts = sorted({part.prompt for part in parts})
        kept = kept_prompts(prompts, held_out)
        keys = sorted({part.key for part in parts})
        row_counts = np.concatenate([part.rows_S for part in parts])
        spread = partial(repeated, steps=[len(part.rows_S) for part in parts])

        def joined(name: str, kind: type) -> Tensor:
            return torch.from_numpy(np.concatenate([part.arrays[name] for part in parts]).astype(kind, copy=False))

        return cls(
            block_length=parts[0].block_length,
            data_digest=digest_of(part.sha256 for part in parts),
            traces=len(parts),
            prompts=len(prompts),
            held_out_prompts=len(kept),
            sources=tuple(SetSource.of(key, [part.prompt for part in parts if part.key == key], kept) for key in keys),
            ids_RK=widened(joined("ids", np.int32), ABSENT),
            logprobs_RK=widened(joined("logprobs", np.float32), -math.inf),
            logodds_R=joined("logodds", np.float32),
            entropy_R=joined("entropy", np.float32),
            outside_R=joined("outside", np.float32),
            hidden_RH=joined("hidden", np.float16),
            noise_RK=widened(joined("noise", np.float32), 0.0),
            drawn_R=joined("drawn", np.int64),
            rows_S=row_counts,
            first_row_S=torch.from_numpy(np.cumsum(row_counts) - row_counts),
            order_SL=torch.from_numpy(np.concatenate([part.order_SL for part in parts])),
            tokens_SL=torch.from_numpy(np.concatenate([part.tokens_SL for part in parts])),
            limit_S=torch.from_numpy(spread((part.limit for part in parts), kind=np.float64)),
            heat_S=torch.from_numpy(spread((part.temperature for part in parts), kind=np.float64)),
            choices_S=np.concatenate([part.choices_S for part in parts]),
            source_S=spread((keys.index(part.key) for part in parts), kind=np.int64),
            prompt_S=spread((prompts.index(part.prompt) for part in parts), kind=np.int64),
            learnt_S=spread((part.prompt not in kept for part in parts), kind=np.bool_),
        )

    @property
    def steps(self) -> int:
        """Recorded steps."""
        return len(self.rows_S)

    @property
    def hidden(self) -> int:
        """The target's width."""
        return self.hidden_RH.shape[-1]

    def batch(self, steps: Ints, depths: Ints) -> SetBatch:
        """The examples (steps[i], depths[i]): the steps steps[i] .. steps[i] + depths[i] are filled."""
        states = VirtualBatch.of(
            steps, depths, order_SL=self.order_SL, first_row_S=self.first_row_S, logodds_R=self.logodds_R
        )
        at_B, row_BA, open_BA = torch.from_numpy(steps), states.row_BA, states.open_BA
        logprobs_BAK = self.logprobs_RK[row_BA]
        features_BAF = stale_features(
            logprobs_BAK.exp(),
            logprobs_BAK,
            self.logodds_R[row_BA],
            self.entropy_R[row_BA],
            self.outside_R[row_BA],
            states.rank_BA,
            block_length=self.block_length,
        )
        ids_BAC, logprobs_BAC = candidates_of(self.ids_RK[row_BA], logprobs_BAK)
        return SetBatch(
            features_BAF=with_tau(features_BAF, self.limit_S[at_B]),
            hidden_BAH=self.hidden_RH[row_BA],
            ids_BAC=ids_BAC,
            logprobs_BAC=logprobs_BAC,
            columns_BAC=states.columns_BAC,
            open_BA=open_BA,
            seen_BA=states.seen_BA,
            tokens_BA=self.tokens_SL[at_B].long().gather(-1, states.at_BA),
            member_BA=states.asked_BA & open_BA,
            fresh_BAC=self.fresh(ids_BAC, states.fresh_row_BA) * open_BA[..., None],
            drawn_BA=self.drawn_R[row_BA],
            odds_BA=self.logodds_R[row_BA],
            limit_B=self.limit_S[at_B],
            heat_B=self.heat_S[at_B],
            noise_BAC=self.noise_RK[row_BA][..., : ids_BAC.shape[-1]],
        )

    def fresh(self, ids_BAC: Tensor, row_BA: Tensor) -> Tensor:
        """What the rows say of some candidates, `probs_BAC`; 0 for what is outside of their top K."""
        same_BACK = ids_BAC[..., :, None] == self.ids_RK[row_BA][..., None, :]
        probs_BAK = self.logprobs_RK[row_BA].exp()
        return (same_BACK * probs_BAK[..., None, :]).sum(-1) * (ids_BAC != ABSENT)


def widened(rows_RK: Tensor, value: float) -> Tensor:
    """Rows of the top K, with `value` for candidates that a small vocabulary lacks."""
    return functional.pad(rows_RK, (0, TOP_K - rows_RK.shape[-1]), value=value)
