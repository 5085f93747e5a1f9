"""What the draws of a generation were like: against the fresh distribution's best token, and against the stale one.

For the temperature study. The observer looks over the decoder's shoulder and changes nothing; it keeps two rows of
logits a commit and works on many commits at a time, so that watching costs little.

Shapes: C commits, R open positions, V vocabulary.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from sweeps.records import NO_STALE, Drawn
from sweeps.spec import DecodeSpec
from workers.decoding.rule import Verdict
from workers.decoding.seen import Seen

AT_ONCE = 32
DIGITS = 6


class Held(NamedTuple):
    """A commit that is not worked on yet: its token, its position's logits fresh and stale, and the stale draw."""

    token: int
    fresh_V: Tensor
    stale_V: Tensor | None
    guess: int | None


@dataclass(slots=True)
class Observer:
    """A watcher of one `decode` call under `spec`; `drawn()` is what it saw.

    The distance at a commit is the total variation between softmax(log p / T) of the stale and of the fresh
    distribution at its position, over the whole vocabulary. At T = 0 both are points: equal (0) or not (1).
    """

    spec: DecodeSpec
    held: list[Held] = field(default_factory=list)
    argmax: list[bool] = field(default_factory=list)
    agreed: list[bool | None] = field(default_factory=list)
    distances: list[float | None] = field(default_factory=list)

    def __call__(self, seen: Seen) -> None:
        """One step, commit by commit."""
        for position, token in seen.step:
            stale_V = None if seen.known is None else row_at(seen.known, position)
            self.held.append(Held(token, row_at(seen.verdict, position), stale_V, self.guess(seen, position)))
            if len(self.held) == AT_ONCE:
                self.work()

    def guess(self, seen: Seen, position: int) -> int | None:
        """The drafter's own draw at a position; None at a block's first forward.

        Where noise is shared it is the target's draw in the state before, so no stale distribution need be made.
        """
        if seen.known is None:
            return None
        if self.spec.noise == "coupled":
            return int(seen.known.draws.token_R[seen.known.open.index(position)])
        assert seen.stale is not None, "a known verdict leaves a stale distribution"
        return int(seen.stale.drawn_ids_L2[position, 0])

    def work(self) -> None:
        """Turn the rows at hand into numbers."""
        fresh_CV = torch.stack([held.fresh_V for held in self.held])
        stale_CV = torch.stack([held.fresh_V if held.stale_V is None else held.stale_V for held in self.held])
        best, distances = fresh_CV.argmax(-1).tolist(), self.distance(stale_CV, fresh_CV).tolist()
        for held, top, distance in zip(self.held, best, distances, strict=True):
            self.argmax.append(held.token == top)
            self.agreed.append(None if held.guess is None else held.guess == held.token)
            self.distances.append(None if held.stale_V is None else round(distance, DIGITS))
        self.held.clear()

    def distance(self, stale_CV: Tensor, fresh_CV: Tensor) -> Tensor:
        """Total variation `d_C` between tempered distributions."""
        if self.spec.temperature == 0:
            return (stale_CV.argmax(-1) != fresh_CV.argmax(-1)).double()
        p_CV, q_CV = ((logits_CV / self.spec.temperature).softmax(-1) for logits_CV in (stale_CV, fresh_CV))
        return (p_CV - q_CV).abs().sum(-1) / 2

    def drawn(self) -> Drawn:
        """Everything seen so far."""
        if self.held:
            self.work()
        letters = {True: "1", False: "0", None: NO_STALE}
        return Drawn(
            argmax="".join(letters[value] for value in self.argmax),
            agreed="".join(letters[value] for value in self.agreed),
            distances=tuple(self.distances),
        )


def row_at(verdict: Verdict, position: int) -> Tensor:
    """Logits of one open position, copied: a view would keep those of all positions in memory."""
    return verdict.logits_RV[verdict.open.index(position)].clone()
