"""The target's own rule: which position of a block state it fills next, and with which token (decoding.md section 1).

Everything is decided in float64, whatever dtype the target computes in. Ties go to the lowest position, then to the
lowest token id: `argmax` returns the first maximum, `topk` promises nothing, so it names no winner here.

Shapes: R open positions of the state, ascending; V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from sweeps.spec import DecodeSpec
from workers.decoding.state import Commit

NO_TOKEN = -math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the target does next in one state, and by how much.

    `margin` says how far the nearest other commit is: the lesser of two gaps, log-odds between the best and second best
    position, and between the best and second best token score there (inf where there is no rival); with `confidence:
    sampled` also that of `other_draws`. `logits_RV` (float64) is what it was judged by.
    """

    commit: Commit
    margin: float
    open: tuple[int, ...]
    logits_RV: Tensor
    draws: "Draws"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Per open position: the token drawn, its score and the runner-up's, and the confidence in it.

    `scores_RV` are logits at T = 0 and logits / T + noise above. `confidence_R` is a log-odds: the top logit (or, for
    `confidence: sampled`, the drawn token's tempered logit) minus the logsumexp of all others. It orders positions as
    the probability does and does not saturate when that rounds to 1.
    """

    scores_RV: Tensor
    token_R: Tensor
    confidence_R: Tensor


def draw(logits_RV: Tensor, noise_RV: Tensor | None, spec: DecodeSpec) -> Draws:
    """Token and confidence of every open position. `noise_RV` is Gumbel noise, None at T = 0."""
    if noise_RV is None:
        token_R = logits_RV.argmax(-1)
        return Draws(scores_RV=logits_RV, token_R=token_R, confidence_R=log_odds(logits_RV, token_R))
    tempered_RV = logits_RV / spec.temperature
    scores_RV = tempered_RV + noise_RV
    token_R = scores_RV.argmax(-1)
    if spec.confidence == "sampled":
        confidence_R = log_odds(tempered_RV, token_R)
    else:
        confidence_R = log_odds(logits_RV, logits_RV.argmax(-1))
    return Draws(scores_RV=scores_RV, token_R=token_R, confidence_R=confidence_R)


def log_odds(logits_RV: Tensor, token_R: Tensor) -> Tensor:
    """Logit of `token_R` minus the logsumexp of every other logit: inf where no other token can be had."""
    token_R1 = token_R[:, None]
    others_RV = logits_RV.scatter(-1, token_R1, NO_TOKEN)
    return logits_RV.gather(-1, token_R1)[:, 0] - others_RV.logsumexp(-1)


def judge(logits_RV: Tensor, noise_RV: Tensor | None, open: tuple[int, ...], spec: DecodeSpec) -> Verdict:
    """The target's next commit. Raises ValueError when a logit is NaN or +inf, or leaves no token to choose."""
    logits_RV = logits_RV.to(torch.float64)
    draws = draw(logits_RV, noise_RV, spec)
    confidences: list[float] = draws.confidence_R.tolist()
    best = max(range(len(open)), key=confidences.__getitem__)  # max keeps the first of equals
    rivals = confidences[:best] + confidences[best + 1 :]
    score_V, token_1 = draws.scores_RV[best], draws.token_R[best : best + 1]
    others_V = score_V.scatter(0, token_1, NO_TOKEN)
    read = torch.cat((token_1.to(torch.float64), score_V.gather(0, token_1), others_V.max()[None]))
    place, top, second = read.tolist()  # one read of the device: each makes the host wait
    token = int(place)
    if not math.isfinite(top) or any(math.isnan(value) for value in confidences):
        what = f"NaN, infinite or without a candidate (temperature {spec.temperature})"
        raise ValueError(f"target: logits are {what}, so the next commit is undefined")
    margin = min(gap(confidences[best], max(rivals, default=NO_TOKEN)), gap(top, second))
    if noise_RV is not None and spec.confidence == "sampled":
        margin = min(margin, other_draws(draws, logits_RV / spec.temperature, best))
    return Verdict(commit=Commit(open[best], token), margin=margin, open=open, logits_RV=logits_RV, draws=draws)


def other_draws(draws: Draws, tempered_RV: Tensor, best: int) -> float:
    """How far it is to a commit elsewhere by drawing another token there, when confidence is that of the drawn token.

    Such a token must win the draw of its position and then be more confident than the best position: the greater of the
    two distances counts, and the least over all tokens of all other positions is returned (inf when there is none).
    """
    logp_RV = tempered_RV.log_softmax(-1)
    behind_RV = draws.confidence_R[best] - (logp_RV - (-logp_RV.expm1()).log())
    token_R1 = draws.token_R[:, None]
    lost_RV = draws.scores_RV.gather(-1, token_R1) - draws.scores_RV
    distance_RV = torch.maximum(lost_RV, behind_RV.nan_to_num(nan=0.0, posinf=math.inf, neginf=-math.inf))
    distance_RV = distance_RV.scatter(-1, token_R1, math.inf)
    distance_RV[best] = math.inf
    return float(distance_RV.min())


def gap(best: float, second: float) -> float:
    """How far `second` is behind; two equal infinities are a tie, not NaN."""
    return 0.0 if best == second else best - second
