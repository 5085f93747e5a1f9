"""Draft graphs for tests: from sets of pairs, with counts that fall along the list unless they are given."""

from collections.abc import Iterable, Sequence
from itertools import chain, combinations, zip_longest
from pathlib import Path

from workers.models.draft_graph import DraftGraph, DraftNode, write_draft_graph

Pairs = Iterable[tuple[int, int]]


def graph_of(
    sets: Sequence[Pairs], *, block_length: int = 8, counts: Sequence[int] = (), **options: object
) -> DraftGraph:
    """The graph of these nodes, in this order."""
    counts = counts or range(2 * len(sets), len(sets), -1)
    nodes = tuple(
        DraftNode(pairs=tuple(sorted(pairs)), count=count, gain=1) for pairs, count in zip(sets, counts, strict=True)
    )
    values: dict[str, object] = {
        "block_length": block_length,
        "target": "toy",
        "target_digest": "t" * 64,
        "dtype": "float64",
        "max_new_tokens": 16,
        "seed": 0,
        "sources": (),
        "traces": 1,
        "steps": 1 + 2 * max(counts),
        "data_digest": "d" * 64,
        "budget_max": 64,
        "nodes": nodes,
        "held_out": (),
    }
    return DraftGraph(**(values | options))  # type: ignore[arg-type]


def write_wide_graph(folder: Path, *, block_length: int, tau: float | None = None) -> Path:
    """A graph with every set of up to three pairs over position ranks 0 to 3 that fits: most have several parents.

    For the threshold rule sizes take turns, the largest first: a small budget has large steps as well as ones that fit
    a block which is almost full.
    """
    ranks = [(rank, token) for rank in range(min(4, block_length - 1)) for token in (0, 1)]
    by_size = [
        [chosen for chosen in combinations(ranks, size) if len({rank for rank, _ in chosen}) == size]
        for size in range(1, min(4, block_length - 1))
    ]
    turns = chain.from_iterable(zip_longest(*reversed(by_size)))
    sets = list(chain(*by_size)) if tau is None else [chosen for chosen in turns if chosen]
    write_draft_graph(folder, graph_of(sets, block_length=block_length, tau=tau))
    return folder
