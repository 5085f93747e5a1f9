"""Acceptance rules: how much of a drafted step may be committed, judged at its parent's fresh distribution.

Each rule is a pure function of the drafted step, the target's verdict in the parent and the decoding rule; it returns
the accepted commits: the whole step, or (`cut` alone) a part of it, or nothing. decoding.md section 6 has them; only
`exact` keeps the output of threshold decoding. Whatever the rule, the target's own step is always accepted.

- `exact`: the drafted step is the target's own one, position by position and token by token;
- `subset`: it is a part of it, so that every token is one which the target commits in that very state;
- `cut`: as subset, and of a step that is not, the part in the target's own one;
- `product`: the geometric mean of its tokens' confidences is at least tau, or it is the target's own step. The
  confidence of a drafted token is its probability, the tempered one under `confidence: sampled`.
"""

import math
from collections.abc import Callable, Mapping

import torch

from sweeps.spec import Acceptance, DecodeSpec
from workers.decoding.rule import Verdict
from workers.decoding.state import Commit

Step = tuple[Commit, ...]
Rule = Callable[[Step, Verdict, DecodeSpec], Step]


def exact(drafted: Step, verdict: Verdict, spec: DecodeSpec) -> Step:
    """The step, if it is the target's own."""
    return drafted if set(drafted) == set(verdict.step) else ()


def subset(drafted: Step, verdict: Verdict, spec: DecodeSpec) -> Step:
    """The step, if it is a part of the target's own."""
    return drafted if set(drafted) <= set(verdict.step) else ()


def cut(drafted: Step, verdict: Verdict, spec: DecodeSpec) -> Step:
    """The part of the step that is in the target's own."""
    own = set(verdict.step)
    return tuple(commit for commit in drafted if commit in own)


def product(drafted: Step, verdict: Verdict, spec: DecodeSpec) -> Step:
    """The step, if the geometric mean of its confidences reaches tau, or if it is the target's own."""
    if set(drafted) == set(verdict.step):
        return drafted
    return drafted if log_confidence(drafted, verdict, spec) >= math.log(spec.tau) else ()


def log_confidence(drafted: Step, verdict: Verdict, spec: DecodeSpec) -> float:
    """Mean log confidence of a step's tokens in the state that `verdict` is about: the log of the geometric mean."""
    rows = [verdict.open.index(commit.position) for commit in drafted]
    tempered = spec.confidence == "sampled" and spec.temperature > 0
    logits_SV = verdict.logits_RV[rows] / (spec.temperature if tempered else 1.0)
    token_S1 = torch.tensor([[commit.token] for commit in drafted], device=logits_SV.device)
    return float(logits_SV.log_softmax(-1).gather(-1, token_S1).mean())


RULES: Mapping[Acceptance, Rule] = {"exact": exact, "subset": subset, "cut": cut, "product": product}
