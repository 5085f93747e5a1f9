"""The naive decoder that everything is compared with: no cache, no drafts, one step a forward, plain loops.

It reads the rule of decoding.md section 1 word by word and shares nothing with the decoder but the definition of the
noise. Every forward starts a fresh sequence, so no state survives from one to the next.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from sweeps.spec import DecodeSpec
from workers.decoding.noise import TARGET_STREAM, gumbel, mixed
from workers.targets.base import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What the naive decoder gives: generated ids, output indices in commit order, and how many of them each forward
    filled.
    """

    output_ids: tuple[int, ...]
    order: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def forwards(self) -> int:
        """The number of forwards."""
        return len(self.steps)


def reference(target: Target, prompt_ids: Sequence[int], *, spec: DecodeSpec, seed: int) -> Reference:
    """Decode `prompt_ids` the slow way."""
    traits, length = target.traits, spec.block_length
    end = len(prompt_ids) + spec.max_new_tokens
    sequence = list(prompt_ids) + [traits.mask_id] * (math.ceil(end / length) * length - len(prompt_ids))
    order: list[int] = []
    steps: list[int] = []
    for start in range(len(prompt_ids) // length * length, end, length):
        places = range(max(start, len(prompt_ids)), min(start + length, end))
        while any(sequence[place] == traits.mask_id for place in places):
            given = max(start, len(prompt_ids))  # tokens that were there when the block began
            session = target.start(sequence[:given], block_length=length, max_new_tokens=end - given)
            hidden_1LH = session.forward(torch.tensor([sequence[start : start + length]], device=traits.device))
            logits_LV = target.logits(hidden_1LH[0]).double().cpu()
            choices = []
            for place in places:
                if sequence[place] == traits.mask_id:
                    noise_V = noise_at(spec, seed, len(steps), place, traits.vocab_size)
                    token, confidence = choose(logits_LV[place - start].tolist(), noise_V, spec)
                    choices.append((confidence, place, token))
            step = chosen(choices, spec)
            for _, place, token in step:
                sequence[place] = token
                order.append(place - len(prompt_ids))
            steps.append(len(step))
        output = sequence[len(prompt_ids) : places[-1] + 1]
        if not spec.ignore_eos and any(token in traits.stop_ids for token in output):
            break
    return Reference(output_ids=tuple(output), order=tuple(order), steps=tuple(steps))


def chosen(choices: Sequence[tuple[float, int, int]], spec: DecodeSpec) -> list[tuple[float, int, int]]:
    """Which of the (log-odds of the confidence, position, token) of all masked positions a forward fills."""
    if spec.commit == "threshold":
        sure = [choice for choice in choices if choice[0] > math.log(spec.tau / (1 - spec.tau))]
        if sure:
            return sure
    highest = max(confidence for confidence, _, _ in choices)
    return [next(choice for choice in choices if choice[0] == highest)]  # among equals the lowest position


def noise_at(spec: DecodeSpec, seed: int, forward: int, place: int, vocab_size: int) -> list[float] | None:
    """The Gumbel noise of one position: shared (coupled), or of one forward's root (independent)."""
    if spec.temperature == 0:
        return None
    key = seed if spec.noise == "coupled" else mixed(seed, TARGET_STREAM, forward, 0)
    noise_V: list[float] = gumbel(key, torch.tensor([place]), vocab_size)[0].tolist()
    return noise_V


def choose(logits_V: list[float], noise_V: list[float] | None, spec: DecodeSpec) -> tuple[int, float]:
    """Token of one position and the log-odds of the confidence in it."""
    top = lowest_best(logits_V)
    if noise_V is None:
        return top, log_odds(logits_V, top)
    tempered_V = [logit / spec.temperature for logit in logits_V]
    token = lowest_best([logit + noise for logit, noise in zip(tempered_V, noise_V, strict=True)])
    return token, log_odds(tempered_V, token) if spec.confidence == "sampled" else log_odds(logits_V, top)


def lowest_best(values: list[float]) -> int:
    """Index of the largest value, the lowest among equals."""
    return values.index(max(values))


def log_odds(logits_V: list[float], token: int) -> float:
    """log p(token) - log(1 - p(token)), without forming p."""
    others = [logit for index, logit in enumerate(logits_V) if index != token]
    highest = max(others)
    if highest == -math.inf:
        return math.inf
    return logits_V[token] - highest - math.log(math.fsum(math.exp(logit - highest) for logit in others))
