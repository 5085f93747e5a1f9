"""What one forward leaves behind for the drafter: the stale distribution of a state, on the CPU, cut to its top K.

Shapes: L block width, K kept candidates (32). Everything is float32 or wider and made once a round, from the logits of
the last node of the walk. Rows of positions that are not open in `state` hold no information (zeros).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from sweeps.spec import DecodeSpec
from workers.decoding.rule import NO_TOKEN, Verdict, draw
from workers.decoding.state import BlockState, NextBlock
from workers.models.order_shapes import TOP_K as TOP_K


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """The stale distribution of `state` (the state that was forwarded, before its own next commit).

    `ids_LK`, `probs_LK`, `logprobs_LK`: the top K tokens of each open position by probability, best first, ties by
    lowest id, noise-free and untempered (K is smaller where the vocabulary is). `logodds_L`: top logit minus logsumexp
    of the other logits (the confidence that orders positions, -inf where not open; the drawn token's, tempered, under
    `confidence: sampled`). `entropy_L` in nats, over the whole vocabulary. `outside_L`: mass
    outside the top K.
    `drawn_ids_L2` and `drawn_scores_L2`: the best and second best token of each open position under the target's own
    token rule (T = 0: by log p; T > 0: by log p / T + G with the shared noise) with their scores. Under independent
    noise (`coupled` false, T > 0) they are the drafter's own draws and the scores their tempered log probabilities.
    `fill_order`: the open positions of the block that have been filled so far, in commit order (given tokens of a
    prompt that opens the block are not part of it). `start`: the absolute position of the block.
    `limit` is the log-odds that a confidence must exceed under the threshold rule (inf: the standard rule).
    `noise_LK` is the shared noise of the top K tokens (None: nothing is drawn, or nothing shared). `hidden_LH` are the
    target's last hidden states, as they were and where they were computed (None: recorded without). `beyond` is the
    untouched block behind, where a draft that fills this one may go on (None: it may not).
    """

    state: BlockState
    temperature: float
    ids_LK: Tensor
    probs_LK: Tensor
    logprobs_LK: Tensor
    logodds_L: Tensor
    entropy_L: Tensor
    outside_L: Tensor
    drawn_ids_L2: Tensor
    drawn_scores_L2: Tensor
    fill_order: tuple[int, ...]
    start: int
    coupled: bool = True
    limit: float = math.inf
    noise_LK: Tensor | None = None
    hidden_LH: Tensor | None = None
    beyond: NextBlock | None = None


def stale_of(
    verdict: Verdict,
    state: BlockState,
    fill_order: tuple[int, ...],
    *,
    start: int,
    spec: DecodeSpec,
    own_noise_RV: Tensor | None,
) -> Stale:
    """The stale distribution that the forward of `state` leaves, from its verdict.

    `own_noise_RV` is the drafter's own noise under independent noise, None when it shares the target's draws.
    """
    logits_RV = verdict.logits_RV
    lse_R1 = logits_RV.logsumexp(-1, keepdim=True)
    ids_RK = top_ids(logits_RV, min(TOP_K, logits_RV.shape[-1]))
    logprobs_RK = (logits_RV.gather(-1, ids_RK) - lse_R1).float().double()  # float32 values: half the size of a trace
    probs_RK = logprobs_RK.exp()
    outside_R1 = (1.0 - probs_RK.sum(-1, keepdim=True)).clamp(min=0.0)
    entropy_R1 = torch.special.entr((logits_RV - lse_R1).exp()).sum(-1, keepdim=True)

    draws = verdict.draws if own_noise_RV is None else draw(logits_RV, own_noise_RV, spec)
    second_R = draws.scores_RV.scatter(-1, draws.token_R[:, None], NO_TOKEN).argmax(-1)
    drawn_R2 = torch.stack((draws.token_R, second_R), dim=-1)
    heat = spec.temperature or 1.0
    if own_noise_RV is None:
        scores_R2 = draws.scores_RV.gather(-1, drawn_R2) - lse_R1 / heat
    else:
        scores_R2 = (logits_RV / heat).log_softmax(-1).gather(-1, drawn_R2)

    odds_R1 = draws.confidence_R[:, None]
    shared = spec.temperature > 0 and own_noise_RV is None
    noise_RV = draws.scores_RV - logits_RV / heat if shared else probs_RK[:, :0]
    noise_RK = noise_RV.gather(-1, ids_RK).nan_to_num(0.0) if shared else noise_RV  # of a token without a chance: none
    parts = (ids_RK, probs_RK, logprobs_RK, odds_R1, entropy_R1, outside_R1, drawn_R2, scores_R2, noise_RK)
    packed_RX = torch.cat([part.to(torch.float64) for part in parts], dim=-1).cpu()  # one transfer; ids stay exact
    packed_LX = packed_RX.new_zeros(len(state.tokens), packed_RX.shape[-1])
    packed_LX[list(verdict.open)] = packed_RX
    fields = torch.split(packed_LX, [part.shape[-1] for part in parts], dim=-1)
    closed = [i for i in range(len(state.tokens)) if i not in state.open]
    fields[3][closed] = NO_TOKEN
    return Stale(
        state=state,
        temperature=spec.temperature,
        ids_LK=fields[0].long(),
        probs_LK=fields[1],
        logprobs_LK=fields[2],
        logodds_L=fields[3][:, 0],
        entropy_L=fields[4][:, 0],
        outside_L=fields[5][:, 0],
        drawn_ids_L2=fields[6].long(),
        drawn_scores_L2=fields[7],
        fill_order=fill_order,
        start=start,
        coupled=own_noise_RV is None,
        limit=spec.limit,
        noise_LK=fields[8] if shared else None,
    )


def top_ids(logits_RV: Tensor, k: int) -> Tensor:
    """The k best ids of each row, best first, ties by lowest id (`topk` alone promises neither for equal values)."""
    values_RK, ids_RK = logits_RV.topk(k)
    tied_RV, tied_RK = logits_RV == values_RK[:, -1:], values_RK == values_RK[:, -1:]
    rows = (tied_RV.sum(-1) > tied_RK.sum(-1)).nonzero()[:, 0]  # an equal of the last one was left out
    if len(rows):
        ids_RK[rows] = logits_RV[rows].sort(descending=True, stable=True).indices[:, :k]
    ids_RK = ids_RK.sort(-1).values
    return ids_RK.gather(-1, logits_RV.gather(-1, ids_RK).sort(descending=True, stable=True).indices)
