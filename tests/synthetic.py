"""Seeded synthetic results that look like a real sweep: cells, generations, timings, failures, mismatches, near-ties.

Draft-free outputs are a function of target, task, temperature, seed and prompt; a drafter only changes how many forwards
they took, as in real decoding. `Faults` adds what goes wrong, so that reports and aggregates can be tested on it.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.records import Counters, Failure, GenerationRecord, ItemResult, Provenance, TimingRecord
from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec, TaskSpec

WORDS = (
    "Tom ",
    "has ",
    "12",
    " apples",
    ".\n",
    "So ",
    "12",
    " + ",
    "30",
    " = ",
    "42",
    ". ",
    "The ",
    "answer ",
    "is ",
    "42",
)
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "&lt;b&gt;",
    '"><svg onload=alert(1)>',
    "a\u2028b\u2029c\x00\ud800".encode("utf-8", "replace").decode(),
    "数学 {{ 7*7 }} {% raw %}",
    "\\cmd_{x}^2 & 50% #~$5",
)
BLOCK = 32
FINISHED = 1_760_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong: prompts that fail or are missing in every cell, mismatches, whole cells without results."""

    failed: int = 0
    missing: int = 0
    near_ties: int = 0
    bugs: int = 0
    empty_cells: int = 0
    noisy: bool = False
    hostile: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Cells with their results."""

    cells: tuple[Cell, ...]
    results: dict[str, tuple[ItemResult, ...]]
    prompts: int


def grid(
    *,
    targets: int = 1,
    tasks: tuple[str, ...] = ("tiny-arith", "tiny-code"),
    budgets: tuple[int, ...] = (4, 8, 20),
    temperatures: tuple[float, ...] = (0.0, 1.0),
    gammas: tuple[float, ...] = (0.1,),
    seeds: tuple[int, ...] = (0,),
    hostile: bool = False,
) -> tuple[Cell, ...]:
    """The cells of a quick sweep: draft-free, ssd, spot and spot with a mass floor."""
    mark = HOSTILE[0] if hostile else ""
    cells = []
    for target in range(targets):
        spec = TargetSpec(
            name=f"tiny-sdar{'' if target == 0 else f'-{target}'}{mark}", digest=f"{target:064x}", family="SDAR"
        )
        for task in tasks:
            for temperature in temperatures:
                for seed in seeds:
                    base = Cell(
                        target=spec,
                        task=TaskSpec(name=task, kind=task, digest=task),
                        decode=DecodeSpec(temperature=temperature, block_length=BLOCK),
                        drafter=NO_DRAFTER,
                        seed=seed,
                    )
                    cells += [base, *(replace(base, drafter=drafter) for drafter in drafters(budgets, gammas, mark))]
    return tuple(cells)


def drafters(budgets: tuple[int, ...], gammas: tuple[float, ...], mark: str = "") -> Iterator[DrafterSpec]:
    """Drafter specs of a grid."""
    for budget in budgets:
        yield DrafterSpec(name=f"ssd{mark}", kind="ssd", budget=budget, hedge=0.0, merge_states=False)
        yield DrafterSpec(name="spot", kind="spot", budget=budget, digest="s")
        for gamma in gammas:
            yield DrafterSpec(name="spot-gamma", kind="spot", budget=budget, gamma=gamma, digest="s")


def sweep(
    cells: tuple[Cell, ...], *, prompts: int = 16, timed: int = 3, repeats: int = 3, faults: Faults = Faults()
) -> Sweep:
    """Results for `cells`."""
    results = {}
    for number, cell in enumerate(cells):
        skip = faults.empty_cells and not cell.is_baseline and number % max(1, len(cells) // faults.empty_cells) == 1
        results[cell.cell_id] = (
            () if skip else items(cell, prompts=prompts, timed=timed, repeats=repeats, faults=faults)
        )
    return Sweep(cells=cells, results=results, prompts=prompts)


def items(cell: Cell, *, prompts: int, timed: int, repeats: int, faults: Faults) -> tuple[ItemResult, ...]:
    """A decode item, a timing item, and what went wrong with them."""
    last = prompts - faults.missing
    failing = set() if cell.is_baseline else set(range(faults.failed))
    generations = tuple(generation(cell, index, faults) for index in range(last) if index not in failing)
    decode = ItemResult(
        item_id=f"{cell.cell_id}-decode-0-{last}",
        cell_id=cell.cell_id,
        kind="decode",
        first=0,
        last=last,
        generations=generations,
        failures=tuple(failure(index, faults) for index in failing),
        seconds=12.5,
        load_seconds=1.5,
        finished_at=FINISHED,
        provenance=provenance(),
    )
    if cell.is_baseline or not timed:
        return (decode,)
    rows = tuple(timing(cell, row, repeats, faults) for row in generations[:timed])
    timings = replace(decode, item_id=f"{cell.cell_id}-timing-0-{timed}", kind="timing", first=0, last=timed)
    return (decode, replace(timings, generations=(), failures=(), timings=rows, finished_at=FINISHED + 60))


def generation(cell: Cell, index: int, faults: Faults = Faults()) -> GenerationRecord:
    """One generation: the draft-free one, with the forwards that the cell's drafter would need."""
    base = draft_free(cell, index)
    if cell.is_baseline:
        return hostile(base, index) if faults.hostile else base
    if index >= 1 + faults.failed and index < 1 + faults.failed + faults.near_ties + faults.bugs:
        tie = index < 1 + faults.failed + faults.near_ties
        base = diverged(base, step=len(base.order) // 2, margin=2e-5 if tie else 3.5)
    rng = random.Random(f"{cell.cell_id}/{index}")
    rounds, accepted, drafted = walk(rng, cell, base)
    nfe = len(accepted)
    counters = replace(
        base.counters,
        nfe=nfe,
        positions=sum((1 + drafts) * BLOCK for drafts in drafted),
        accepted=accepted,
        drafted=drafted,
        merged=nfe // 3 if cell.drafter.merge_states else 0,
        drafter_calls=nfe,
    )
    return replace(base, rounds=rounds, counters=counters)


def draft_free(cell: Cell, index: int) -> GenerationRecord:
    """The draft-free generation of a prompt."""
    rng = random.Random(f"{cell.baseline().cell_id}/{index}")
    blocks = rng.choice((2, 3, 3, 4))
    prompt_tokens = rng.randrange(20, 60)
    length = blocks * BLOCK - prompt_tokens % BLOCK
    edges = [0, *range(BLOCK - prompt_tokens % BLOCK, length, BLOCK), length]
    order: list[int] = []
    for first, last in zip(edges, edges[1:], strict=False):
        block = list(range(first, last))
        block.sort(key=lambda position: position + rng.gauss(0, 4))
        order += block
    ids = tuple(rng.randrange(len(WORDS)) for _ in range(length))
    return GenerationRecord(
        prompt_id=f"{cell.task.name}/{index}",
        prompt_index=index,
        prompt_tokens=prompt_tokens,
        output_ids=ids,
        tokens_generated=length,
        tokens_kept=length - rng.randrange(1, 20),
        finish_reason="stop",
        text="".join(WORDS[i] for i in ids),
        pieces=tuple(WORDS[i] for i in ids),
        correct=rng.random() < (0.95 if cell.decode.temperature == 0 else 0.8),
        score_reason="last number",
        order=tuple(order),
        rounds=tuple(range(length)),
        margins=tuple(None if i == length - 1 else round(rng.expovariate(0.5) + 0.01, 6) for i in range(length)),
        counters=Counters(
            nfe=length,
            prefill_forwards=1,
            prefill_positions=prompt_tokens // BLOCK * BLOCK,
            kv_passes=0,
            positions=length * BLOCK,
            accepted=(0,) * length,
            drafted=(0,) * length,
            merged=0,
            drafter_calls=0,
        ),
    )


def walk(rng: random.Random, cell: Cell, base: GenerationRecord) -> tuple[tuple[int, ...], ...]:
    """Rounds of each commit, accepted and drafted of each round: the number accepted grows with the budget."""
    budget = cell.drafter.budget
    keep = {"ssd": 0.35}.get(cell.drafter.kind, 0.72) - 0.05 * (cell.decode.temperature > 0) - 0.1 * cell.drafter.gamma
    keep *= 1 - 0.5 / (1 + budget)
    rounds: list[int] = []
    accepted: list[int] = []
    drafted: list[int] = []
    edges = {BLOCK * k - base.prompt_tokens % BLOCK for k in range(1, 10)}
    committed = 0
    while committed < base.tokens_generated:
        left = next(edge for edge in sorted(edges) if edge > committed) - committed
        draftable = max(0, min(budget, left - 2)) if len(drafted) else 0
        took = 0
        while took < draftable and rng.random() < keep:
            took += 1
        accepted.append(took)
        drafted.append(
            min(budget if not cell.drafter.gamma else rng.randrange(1, budget + 1), 3 * draftable) if draftable else 0
        )
        drafted[-1] = max(drafted[-1], took)
        rounds += [len(accepted) - 1] * (1 + took)
        committed += 1 + took
    return tuple(rounds), tuple(accepted), tuple(drafted)


def diverged(base: GenerationRecord, *, step: int, margin: float) -> GenerationRecord:
    """`base` with another token at commit `step`; the margin of both runs there is set by the caller of `baseline_tie`."""
    position = base.order[step]
    ids = list(base.output_ids)
    ids[position] = (ids[position] + 1) % len(WORDS)
    margins = (*base.margins[:step], margin, *base.margins[step + 1 :])
    return replace(base, output_ids=tuple(ids), margins=margins)


def timing(cell: Cell, row: GenerationRecord, repeats: int, faults: Faults) -> TimingRecord:
    """Times in which a forward costs 10 ms plus 0.2 ms a draft state, a drafter call 1 ms."""
    rng = random.Random(f"time/{cell.cell_id}/{row.prompt_index}")
    spread = 0.4 if faults.noisy else 0.02
    base = draft_free(cell, row.prompt_index)
    forward = sum(0.010 + 0.0002 * drafts for drafts in row.counters.drafted)
    drafter = 0.001 * row.counters.nfe
    variant = tuple((forward + drafter) * (1 + rng.uniform(-spread, spread)) for _ in range(repeats))
    plain = tuple(0.010 * base.counters.nfe * (1 + rng.uniform(-spread, spread)) for _ in range(repeats))
    total = sum(variant)
    return TimingRecord(
        prompt_id=row.prompt_id,
        prompt_index=row.prompt_index,
        tokens_kept=row.tokens_kept,
        nfe=row.counters.nfe,
        baseline_nfe=base.counters.nfe,
        identical=row.output_ids == base.output_ids,
        variant_seconds=variant,
        baseline_seconds=plain,
        drafter_seconds=0.08 * total,
        forward_seconds=0.85 * total,
        walk_seconds=0.05 * total,
    )


def failure(index: int, faults: Faults) -> Failure:
    """A deterministic failure of one prompt."""
    message = (
        HOSTILE[index % len(HOSTILE)] if faults.hostile else f"prompt of {300 + index} tokens passes the limit of 256"
    )
    return Failure(
        kind="deterministic",
        type="ValueError",
        message=message,
        traceback="Traceback (most recent call last):\n  ...\n" + message,
        prompt_index=index,
        prompt_id=f"prompt-{index}",
    )


def hostile(row: GenerationRecord, index: int) -> GenerationRecord:
    """`row` with markup, separators and other people's syntax in every text."""
    text = HOSTILE[index % len(HOSTILE)]
    pieces = (text, *row.pieces[1:])
    return replace(row, prompt_id=f"{text}/{index}", text="".join(pieces), pieces=pieces, score_reason=text)


def provenance() -> Provenance:
    """A provenance record."""
    versions = {"python": "3.11.2", "torch": "2.13.0", "ray": "2.60.0"}
    return Provenance(host="node-a", device="cpu", threads=1, code_digest="c0ffee" * 6, versions=versions)
