"""Cells and rows of threshold decoding for synthetic sweeps: sets as steps, drafts of sets, and lossy outputs.

By the threshold rule a prompt's draft-free generation is that of the standard rule in fewer, larger steps, now and then
with another token. Lossy acceptance changes more tokens, in fewer steps; what `exact` accepts changes nothing.
"""

import itertools
import random
from dataclasses import replace

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.records import GenerationRecord
from sweeps.spec import Acceptance, DrafterSpec

LOSS: dict[Acceptance, float] = {"exact": 0.0, "subset": 0.1, "cut": 0.2, "product": 0.6}  # chance of another output
RULES: tuple[Acceptance, ...] = tuple(LOSS)
OTHER = 15  # tokens are below


def set_cells(
    base: Cell,
    *,
    taus: tuple[float, ...] = (0.9,),
    budgets: tuple[int, ...] = (8,),
    standard: bool = True,
    drafters: tuple[DrafterSpec, ...] = (),
) -> tuple[Cell, ...]:
    """Draft-free by both rules and, by the threshold rule, `drafters` (none: `by_rule`) at every tau and budget."""
    cells = [replace(base, drafter=NO_DRAFTER)] if standard else []
    for tau in taus:
        free = replace(base, decode=replace(base.decode, commit="threshold", tau=tau), drafter=NO_DRAFTER)
        own = drafters or by_rule()
        cells += [
            free,
            *(replace(free, drafter=replace(one, budget=D)) for D, one in itertools.product(budgets, own)),
        ]
    return tuple(cells)


def by_rule(name: str = "spot-sets") -> tuple[DrafterSpec, ...]:
    """One drafter under each acceptance rule, lossy ones with max-commit."""
    return tuple(sets(name, acceptance=rule, max_commit=rule != "exact") for rule in RULES)


def rungs() -> tuple[DrafterSpec, ...]:
    """The drafters of a ladder, in its order."""
    options: dict[str, object] = {}
    made = []
    for name, more in (
        ("sets", {}),
        ("floor", {"gamma": 0.1}),
        ("cross", {"cross_block": True}),
        ("fresh", {"refresh": True}),
        ("product", {"acceptance": "product", "max_commit": True}),
    ):
        options |= more
        made.append(sets(name, **options))
    return tuple(made)


def sets(name: str, **options: object) -> DrafterSpec:
    """A set drafter."""
    return DrafterSpec(name=name, kind="spot-sets", digest="s" * 64, hedge=0.0, merge_states=False, **options)  # type: ignore[arg-type]


def in_steps(row: GenerationRecord, key: str, tau: float, block: int) -> GenerationRecord:
    """The generation with its commits in larger steps, none across blocks; a lower tau makes them larger."""
    rng, most = random.Random(f"steps/{key}"), max(2, round(4 / tau))
    sizes: list[int] = []
    for _, own in itertools.groupby((row.prompt_tokens + position) // block for position in row.order):
        left = len(list(own))
        while left:
            sizes.append(min(left, rng.randrange(1, 2 * most)))
            left -= sizes[-1]
    return stepped(row, sizes, block)


def stepped(row: GenerationRecord, sizes: list[int], block: int) -> GenerationRecord:
    """The generation in steps of these sizes, one a forward."""
    ends = (0, *itertools.accumulate(sizes))
    order = [place for first, last in itertools.pairwise(ends) for place in sorted(row.order[first:last])]
    none = (0,) * len(sizes)
    counters = replace(row.counters, nfe=len(sizes), positions=len(sizes) * block, accepted=none, drafted=none)
    rounds = tuple(step for step, size in enumerate(sizes) for _ in range(size))
    return replace(row, order=tuple(order), steps=tuple(sizes), rounds=rounds, counters=counters)


def changed(row: GenerationRecord, key: str, chance: float) -> GenerationRecord:
    """With this chance another output: some tokens replaced, and perhaps a wrong answer."""
    rng = random.Random(f"changed/{key}")
    if rng.random() >= chance:
        return row
    ids = list(row.output_ids)
    for place in rng.sample(range(row.tokens_kept), min(5, row.tokens_kept)):
        ids[place] = (ids[place] + 1 + rng.randrange(OTHER - 1)) % OTHER
    return replace(row, output_ids=tuple(ids), correct=rng.random() < 0.7)


def drafted_sets(row: GenerationRecord, cell: Cell, key: str) -> GenerationRecord:
    """The generation with drafts of sets: rounds that take several steps, none across blocks."""
    rng, block = random.Random(f"sets/{key}"), cell.decode.block_length
    row = changed(row, key, LOSS[cell.drafter.acceptance])
    firsts = [row.order[start] for start in (0, *itertools.accumulate(row.step_sizes))[:-1]]
    accepted: list[int] = []
    for _, own in itertools.groupby((row.prompt_tokens + position) // block for position in firsts):
        left = len(list(own))
        took = 0 if not cell.drafter.refresh else rng.randrange(0, 2)
        while left:
            accepted.append(min(left - 1, took))
            left -= 1 + accepted[-1]
            took = rng.randrange(0, 4)
    drafted = tuple(max(took, rng.randrange(1, cell.drafter.budget + 1)) for took in accepted)
    rounds_of_steps = [number for number, took in enumerate(accepted) for _ in range(1 + took)]
    counters = replace(
        row.counters,
        nfe=len(accepted),
        positions=sum((1 + drafts) * block for drafts in drafted),
        accepted=tuple(accepted),
        drafted=drafted,
        drafter_calls=len(accepted),
    )
    rounds = tuple(number for number, size in zip(rounds_of_steps, row.step_sizes, strict=True) for _ in range(size))
    return replace(row, rounds=rounds, counters=counters)
