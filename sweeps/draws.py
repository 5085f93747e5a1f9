"""How tokens were drawn in a cell: shares and means over commits, with intervals over prompts.

The commits of one prompt depend on each other, so prompts are the sampling unit here as everywhere: every number is a
ratio of sums over prompts. Rows that nobody watched are left out.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sweeps.records import NO_STALE, Drawn, GenerationRecord
from sweeps.spec import DecodeSpec
from sweeps.statistics import Estimate, ratio_of_sums, undefined


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawStats:
    """The draws of a cell.

    `argmax`: share of commits whose token is the fresh distribution's best. The others are over the `commits` that had
    a stale distribution (all but a block's first): `distance` d, the total variation between stale and fresh tempered
    distribution at the position; `agreement`, the share whose token the drafter's own stale draw hit; `bound`, the mean
    of (1-d)/(1+d), which bounds the agreement from below under coupled noise (arXiv 2610.22543, Proposition 2).
    """

    argmax: Estimate
    distance: Estimate
    agreement: Estimate
    bound: Estimate
    commits: int

    @property
    def below_bound(self) -> bool:
        """Whether the agreement's whole interval lies below the bound."""
        return self.bound.value is not None and self.agreement.below(self.bound.value)


NO_DRAWS = DrawStats(argmax=undefined(), distance=undefined(), agreement=undefined(), bound=undefined(), commits=0)


def bound_holds_for(decode: DecodeSpec) -> bool:
    """Whether the proposition speaks of these draws: shared noise, and positions chosen without looking at it."""
    return decode.noise == "coupled" and decode.confidence == "top1"


def draw_stats(rows: Iterable[GenerationRecord]) -> DrawStats:
    """The draws of the rows that were watched."""
    drawn = [row.drawn for row in rows if row.drawn is not None]
    if not drawn:
        return NO_DRAWS
    commits = [len(one.agreed) - one.agreed.count(NO_STALE) for one in drawn]
    distances = [known(one) for one in drawn]
    return DrawStats(
        argmax=share([one.argmax.count("1") for one in drawn], [len(one.argmax) for one in drawn]),
        distance=share([math.fsum(row) for row in distances], commits),
        agreement=share([one.agreed.count("1") for one in drawn], commits),
        bound=share([math.fsum((1 - d) / (1 + d) for d in row) for row in distances], commits),
        commits=sum(commits),
    )


def known(drawn: Drawn) -> list[float]:
    """The distances of the commits that have one."""
    return [distance for distance in drawn.distances if distance is not None]


def share(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """A share of commits or of seconds (or a mean of numbers up to 1): its interval ends at 1."""
    estimate = ratio_of_sums(above, below)
    return estimate if estimate.high is None else replace(estimate, high=min(1.0, estimate.high))
