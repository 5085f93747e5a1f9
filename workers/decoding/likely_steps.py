"""The steps that may follow a state, heaviest first, from the chances of its open positions.

Positions are taken as independent: a step's chance is the product over the open positions, of P * p(token) where it
fills one and of 1 - P where it does not (decoding.md section 6). The heaviest step takes the better of the two at each
position; every other one *flips* some of them. So with flips sorted by what they leave of the chance, the next heaviest
steps are reached by flipping one position more, or the next position instead of the last: a heap holds only those, and
k steps cost about k log k, though 2^R - 1 there are. Where tokens are certain this fills what has P > 1/2, and flips
the least certain positions first.

Order: heavier, then fewer flips, then the less certain (lower, among equals) positions. Both moves give a chance that
is no larger in floating point either, so the order is exact, ties included. A step fills at least one position.

Shapes: R open positions.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from workers.decoding.acceptance import Step
from workers.decoding.state import Commit


def likely_steps(
    open: Sequence[int], include_R: Sequence[float], token_R: Sequence[int], sure_R: Sequence[float]
) -> Iterator[tuple[float, Step]]:
    """(chance, step) of every step that has a chance, in order. `sure_R` is p(token) of the likeliest tokens."""
    fill_R = [include * sure for include, sure in zip(include_R, sure_R, strict=True)]
    leave_R = [1.0 - include for include in include_R]
    base, flips = 1.0, list[tuple[float, int]]()
    for row, (fill, leave) in enumerate(zip(fill_R, leave_R, strict=True)):
        best, other = max(fill, leave), min(fill, leave)
        base *= best
        if other > 0:
            flips.append((-other / best, row))
    flips.sort()
    filled = frozenset(row for row in range(len(open)) if fill_R[row] > leave_R[row])
    heap: list[tuple[float, int, tuple[int, ...]]] = [(-base, 0, ())]
    before: dict[tuple[int, ...], float] = {}  # the chance without the last flip
    while heap:
        negative, count, flipped = heapq.heappop(heap)
        if negative == 0:  # so has everything behind it
            return
        rows = sorted(filled ^ {flips[index][1] for index in flipped})
        if rows:
            yield -negative, tuple(Commit(open[row], token_R[row]) for row in rows)
        following = flipped[-1] + 1 if flipped else 0
        less = before.pop(flipped, 1.0)
        if following == len(flips):
            continue
        kept = -flips[following][0]
        more = (*flipped, following)
        before[more] = -negative
        heapq.heappush(heap, (negative * kept, count + 1, more))
        if flipped:
            instead = (*flipped[:-1], following)
            before[instead] = less
            heapq.heappush(heap, (-less * kept, count, instead))


@dataclass(slots=True)
class Listed:
    """An iterator's items by number, drawn when they are first asked for."""

    source: Iterator[tuple[float, Step]]
    items: list[tuple[float, Step]] = field(default_factory=list)

    def at(self, index: int) -> tuple[float, Step] | None:
        """Item number `index`; None behind the last. Asked for one after another."""
        while len(self.items) <= index:
            item = next(self.source, None)
            if item is None:
                return None
            self.items.append(item)
        return self.items[index]
