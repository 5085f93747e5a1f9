"""Levenshtein's distance of two token sequences: the fewest insertions, deletions and replacements between them.

Bit-parallel (Myers, JACM 46, 1999; Hyyrö 2003): a column of the table of distances is two whole numbers, the bits of
its steps up and down, so that a column takes a few operations on long integers instead of one a row.
"""

from collections.abc import Sequence


def edit_distance(one: Sequence[int], other: Sequence[int]) -> int:
    """The distance; 0 only where both are equal, at most the length of the longer one."""
    if not one:
        return len(other)
    places: dict[int, int] = {}
    for index, token in enumerate(one):
        places[token] = places.get(token, 0) | 1 << index
    every, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
    up, down, distance = every, 0, len(one)  # bit i: the distance grows or falls from row i to row i + 1
    for token in other:
        equal = places.get(token, 0)
        diagonal = (((equal & up) + up) ^ up) | equal
        grows, falls = down | ~(diagonal | up) & every, up & diagonal  # from this column to the next
        distance += bool(grows & last) - bool(falls & last)
        grows, falls = (grows << 1 | 1) & every, (falls << 1) & every
        up, down = falls | ~(equal | down | grows) & every, grows & (equal | down)
    return distance


def edit_share(one: Sequence[int], other: Sequence[int]) -> float:
    """The distance as a share of the longer sequence, in [0, 1]; 0 where both are empty."""
    longer = max(len(one), len(other))
    return edit_distance(one, other) / longer if longer else 0.0
