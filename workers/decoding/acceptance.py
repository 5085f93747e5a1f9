"""Acceptance rules: how much of drafted steps may be committed, judged at their parent's fresh distribution.

Each rule is a pure function of the drafted steps of one parent, the target's verdict in that parent and the decoding
rule; it returns what it accepts of each: the whole step, or (`cut` alone) a part of it, or nothing. decoding.md section
6 has them; only `exact` keeps the output of threshold decoding. Whatever the rule, the target's own step is always
accepted. All steps are judged at once because what a rule reads of a device makes the host wait, however little it is.

- `exact`: the drafted step is the target's own one, position by position and token by token;
- `subset`: it is a part of it, so that every token is one which the target commits in that very state;
- `cut`: as subset, and of a step that is not, the part in the target's own one;
- `product`: the geometric mean of its tokens' confidences is at least tau, or it is the target's own step. The
  confidence of a drafted token is its probability, the tempered one under `confidence: sampled`.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from sweeps.spec import Acceptance, DecodeSpec
from workers.decoding.rule import Verdict
from workers.decoding.state import Commit

Step = tuple[Commit, ...]
Rule = Callable[[Sequence[Step], Verdict, DecodeSpec], list[Step]]


def exact(drafted: Sequence[Step], verdict: Verdict, spec: DecodeSpec) -> list[Step]:
    """Each step, if it is the target's own."""
    own = set(verdict.step)
    return [step if set(step) == own else () for step in drafted]


def subset(drafted: Sequence[Step], verdict: Verdict, spec: DecodeSpec) -> list[Step]:
    """Each step, if it is a part of the target's own."""
    own = set(verdict.step)
    return [step if set(step) <= own else () for step in drafted]


def cut(drafted: Sequence[Step], verdict: Verdict, spec: DecodeSpec) -> list[Step]:
    """The part of each step that is in the target's own."""
    own = set(verdict.step)
    return [tuple(commit for commit in step if commit in own) for step in drafted]


def product(drafted: Sequence[Step], verdict: Verdict, spec: DecodeSpec) -> list[Step]:
    """Each step, if the geometric mean of its confidences reaches tau, or if it is the target's own."""
    own, least = set(verdict.step), math.log(spec.tau)
    others = [step for step in drafted if set(step) != own]
    sure = dict(zip(others, log_confidences(others, verdict, spec), strict=True))
    return [step if step not in sure or sure[step] >= least else () for step in drafted]


def log_confidences(drafted: Sequence[Step], verdict: Verdict, spec: DecodeSpec) -> list[float]:
    """Of each step the mean log confidence of its tokens in the state that `verdict` is about: the log of their
    geometric mean. One read of the device for all of them (none where there is no step).
    """
    if not drafted:
        return []
    row_of = {position: row for row, position in enumerate(verdict.open)}
    rows = [row_of[commit.position] for step in drafted for commit in step]
    first, last = min(rows), max(rows)  # a view: only rows between these are normalised
    tempered = spec.confidence == "sampled" and spec.temperature > 0
    logits_SV = verdict.logits_RV[first : last + 1] / (spec.temperature if tempered else 1.0)
    vocabulary, tokens = logits_SV.shape[-1], [commit.token for step in drafted for commit in step]
    places = [(row - first) * vocabulary + token for row, token in zip(rows, tokens, strict=True)]
    at_N = torch.tensor(places, device=logits_SV.device)
    logp_N = torch.tensor(logits_SV.log_softmax(-1).view(-1).gather(0, at_N).tolist(), dtype=torch.float64)
    return [float(logp_S.mean()) for logp_S in torch.split(logp_N, [len(step) for step in drafted])]


RULES: Mapping[Acceptance, Rule] = {"exact": exact, "subset": subset, "cut": cut, "product": product}
