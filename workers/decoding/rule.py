"""The target's own rule: which positions of a block state it fills next, and with which tokens (decoding.md section 1).

One forward makes one step. The standard rule fills the most confident position. The threshold rule fills every position
whose confidence exceeds tau, and where none does, the most confident one: the standard rule is the case that tau is 1.

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

    `step` holds its commits in ascending position: one under the standard rule, one or more under the threshold rule.
    `margin` says how far the nearest other step is (inf where there is none): the least of the distances at which other
    positions would be filled (`position_margin`), of the gaps between best and second best token score at the filled
    positions, and with `confidence: sampled` also of `other_draws`. `logits_RV` (float64) is what it was judged by.
    """

    step: tuple[Commit, ...]
    margin: float
    open: tuple[int, ...]
    logits_RV: Tensor
    draws: "Draws"

    @property
    def commit(self) -> Commit:
        """The commit of a step that has one, as every step of the standard rule."""
        (commit,) = self.step
        return commit


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
    """The target's next step. Raises ValueError when a logit is NaN or +inf, or leaves no token to choose."""
    logits_RV = logits_RV.to(torch.float64)
    draws = draw(logits_RV, noise_RV, spec)
    confidences: list[float] = draws.confidence_R.tolist()
    best = max(range(len(open)), key=confidences.__getitem__)  # max keeps the first of equals
    rows = [row for row, confidence in enumerate(confidences) if confidence > spec.limit] or [best]
    span = slice(rows[0], rows[-1] + 1)  # a view: to pick rows by an index makes the host wait for the device
    scores_SV, token_S1 = draws.scores_RV[span], draws.token_R[span, None]
    others_SV = scores_SV.scatter(-1, token_S1, NO_TOKEN)
    read_3S = torch.stack((token_S1[:, 0].to(torch.float64), scores_SV.gather(-1, token_S1)[:, 0], others_SV.amax(-1)))
    read = list(zip(*read_3S.tolist(), strict=True))  # one read of the device: each makes the host wait
    drawn = [read[row - rows[0]] for row in rows]
    if not all(math.isfinite(top) for _, top, _ in drawn) or any(math.isnan(value) for value in confidences):
        what = f"NaN, infinite or without a candidate (temperature {spec.temperature})"
        raise ValueError(f"target: logits are {what}, so the next commit is undefined")
    margin = min(position_margin(confidences, rows, spec.limit), *(gap(top, second) for _, top, second in drawn))
    if noise_RV is not None and spec.confidence == "sampled":
        bar = min(confidences[rows[0]], spec.limit)
        margin = min(margin, other_draws(draws, logits_RV / spec.temperature, rows, bar))
    step = tuple(Commit(open[row], int(token)) for row, (token, _, _) in zip(rows, drawn, strict=True))
    return Verdict(step=step, margin=margin, open=open, logits_RV=logits_RV, draws=draws)


def position_margin(confidences: list[float], rows: list[int], limit: float) -> float:
    """How far it is to other positions than `rows`, in log-odds; inf where there are none.

    Several rows stay the same while nothing crosses the limit. A single one stays while no other row crosses the limit
    or overtakes it: that it falls below the limit itself changes nothing, since the most confident row is filled
    anyway.
    """
    if len(rows) > 1:
        return min(abs(confidence - limit) for confidence in confidences)
    rivals = confidences[: rows[0]] + confidences[rows[0] + 1 :]
    return gap(min(confidences[rows[0]], limit), max(rivals, default=NO_TOKEN))


def other_draws(draws: Draws, tempered_RV: Tensor, rows: list[int], bar: float) -> float:
    """How far it is to filling other positions than `rows` by drawing another token there, when confidence is that of
    the drawn token.

    Such a token must win the draw of its position and then be more confident than `bar`: the greater of the two
    distances counts, and the least over all tokens of all other positions is returned (inf when there is none).
    """
    logp_RV = tempered_RV.log_softmax(-1)
    behind_RV = bar - (logp_RV - (-logp_RV.expm1()).log())
    token_R1 = draws.token_R[:, None]
    lost_RV = draws.scores_RV.gather(-1, token_R1) - draws.scores_RV
    distance_RV = torch.maximum(lost_RV, behind_RV.nan_to_num(nan=0.0, posinf=math.inf, neginf=-math.inf))
    distance_RV = distance_RV.scatter(-1, token_R1, math.inf)
    filled_S = torch.tensor(rows, device=distance_RV.device)
    return float(distance_RV.index_fill(0, filled_S, math.inf).min())


def gap(best: float, second: float) -> float:
    """How far `second` is behind; two equal infinities are a tie, not NaN."""
    return 0.0 if best == second else best - second
