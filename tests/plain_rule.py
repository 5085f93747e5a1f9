"""The threshold rule and the acceptance rules once more, in plain Python: what recorded generations are checked by.

Nothing of `workers.decoding.{rule,acceptance,walk}` is used. A state is forwarded afresh, alone, by a sequence of its
own; what the target does there is worked out by the naive decoder's own functions, probabilities by `math`.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from sweeps.spec import DecodeSpec
from workers.decoding.reference import choose, chosen, noise_at
from workers.decoding.tally import Generation
from workers.targets.base import Target

Pair = tuple[int, int]
Pairs = frozenset[Pair]
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Taken:
    """One step of a generation: its pairs (position in the block, token), where it was taken, and in which round."""

    prefix: Tokens
    tokens: Tokens
    open: tuple[int, ...]
    pairs: Pairs
    round: int


def steps_taken(run: Generation, prompt: Sequence[int], spec: DecodeSpec, mask: int) -> Iterator[Taken]:
    """Every step of a generation with the state it was taken in, from its order and steps alone."""
    length, end = spec.block_length, len(prompt) + spec.max_new_tokens
    whole = [*prompt, *[mask] * (math.ceil(end / length) * length - len(prompt))]
    first = 0
    for size in run.steps:
        places = [len(prompt) + index for index in run.order[first : first + size]]
        (start,) = {place // length * length for place in places}
        block = tuple(whole[start : start + length])
        yield Taken(
            prefix=tuple(whole[:start]),
            tokens=block,
            open=tuple(i for i in range(length) if block[i] == mask and start + i < end),
            pairs=frozenset((place - start, run.output_ids[place - len(prompt)]) for place in places),
            round=run.rounds[first],
        )
        for place in places:
            assert whole[place] == mask, "a position is filled twice"
            whole[place] = run.output_ids[place - len(prompt)]
        first += size


@dataclass
class PlainRule:
    """The target's own steps and probabilities in any state, with T = 0 or shared noise."""

    target: Target
    spec: DecodeSpec
    seed: int
    known: dict[tuple[Tokens, Tokens], list[list[float]]] = field(default_factory=dict)

    def logits(self, prefix: Tokens, tokens: Tokens) -> list[list[float]]:
        """The logits of every position of a block behind a prefix of whole blocks."""
        if (prefix, tokens) not in self.known:
            session = self.target.start(prefix, block_length=len(tokens), max_new_tokens=len(tokens))
            hidden_1LH = session.forward(torch.tensor([tokens]))
            self.known[prefix, tokens] = self.target.logits(hidden_1LH[0]).double().tolist()
        return self.known[prefix, tokens]

    def own(self, prefix: Tokens, tokens: Tokens, open: Collection[int]) -> Pairs:
        """The step that the target takes by itself."""
        rows, vocabulary = self.logits(prefix, tokens), self.target.traits.vocab_size
        choices = []
        for position in open:
            noise_V = noise_at(self.spec, self.seed, 0, len(prefix) + position, vocabulary)
            token, confidence = choose(rows[position], noise_V, self.spec)
            choices.append((confidence, position, token))
        return frozenset((position, token) for _, position, token in chosen(choices, self.spec))

    def probabilities(self, prefix: Tokens, tokens: Tokens, step: Collection[Pair]) -> list[float]:
        """The confidence of every pair of a step: tempered where the drawn token's own one counts."""
        heat = self.spec.temperature if self.spec.confidence == "sampled" and self.spec.temperature else 1.0
        rows = self.logits(prefix, tokens)
        return [probability([logit / heat for logit in rows[position]], token) for position, token in sorted(step)]

    def accepted(self, rule: str, prefix: Tokens, tokens: Tokens, open: Collection[int], step: Pairs) -> Pairs:
        """What a rule accepts of a drafted step."""
        own = self.own(prefix, tokens, open)
        if step == own:
            return step
        if rule == "product":
            return step if mean_of(self.probabilities(prefix, tokens, step)) >= self.spec.tau else frozenset()
        if rule == "cut":
            return step & own
        return step if rule == "subset" and step < own else frozenset()


def probability(logits_V: Sequence[float], token: int) -> float:
    """softmax(logits)[token]."""
    top = max(logits_V)
    return math.exp(logits_V[token] - top) / math.fsum(math.exp(logit - top) for logit in logits_V)


def mean_of(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.prod(values) ** (1 / len(values))
