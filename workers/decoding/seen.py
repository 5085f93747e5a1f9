"""One step as a watcher of the decoder sees it, with the distributions before and behind it.

Recording a trajectory, the observation study and the temperature study all look over the decoder's shoulder through
this noun; decoding itself never reads it, and nobody who does not watch pays for it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from workers.decoding.acceptance import Step
from workers.decoding.rule import Verdict
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """`step` was committed in `state`, a state of the block at absolute position `start`.

    It is the target's own one there, `verdict.step`, unless a lenient acceptance rule took another.

    `stale` is what the drafter knew in this round and `known` the verdict it comes from (both None at a block's first
    forward); without a drafter `stale` is made when it is read. `fresh()` is the stale distribution that this verdict
    itself leaves; it may only be called at once, while the decoder waits.
    """

    start: int
    state: BlockState
    verdict: Verdict
    step: Step
    known: Verdict | None
    recall: Callable[[], Stale] | None
    fresh: Callable[[], Stale]

    @property
    def stale(self) -> Stale | None:
        """What the drafter knew in this round."""
        return self.recall() if self.recall else None


Watcher = Callable[[Seen], None]
