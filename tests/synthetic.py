"""Seeded synthetic results that look like a real sweep: cells, generations, timings and what goes wrong with them.

Draft-free outputs are a function of target, task, temperature, seed and prompt; a drafter only changes how many
forwards they took, as in real decoding. `Faults` adds failures, mismatches, near-ties, noise and hostile texts.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sweeps.belongs import record_start
from sweeps.cell import NO_DRAFTER, Cell
from sweeps.effort import MeasureSpec
from sweeps.merge import CellRows, merge_all
from sweeps.origin import Origin
from sweeps.records import Counters, Drawn, Failure, GenerationRecord, ItemResult, Provenance, TimingRecord
from sweeps.results import encode_result
from sweeps.spec import DecodeSpec, DrafterSpec, GridSpec, Noise, SweepSpec, TargetSpec, TaskSpec
from sweeps.store import RunDir
from sweeps.study import LOOK_AHEADS, TOPS, StudyRecord, is_study
from sweeps.todo import Job, Plan, item_of, jobs_of
from tests.set_rows import changed, drafted_sets, in_steps

WORDS = ("Tom ", "has ", "12", " apples", ".\n", "So ", "1", " + ", "30", " = ", "42", ". ", "The ", "answer ", "is ")
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "&lt;b&gt;",
    '"><svg onload=alert(1)>',
    "a\u2028b\u2029c\x00d\x1b[31m",
    "数学 {{ 7*7 }} {% raw %}",
    "\\cmd_{x}^2 & 50% #~$5",
)
BLOCK = 32
TIE, GAP = 2e-5, 3.5
KEEP = {"ssd": 0.35, "oracle_position": 0.97, "oracle_token": 0.45}  # chance that one more draft state comes true
CODE_DIGEST = "c0ffee" * 6
FINISHED = 1_760_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong: prompts that fail, are missing, differ or have an empty answer (in every cell); empty cells.

    `noisy` timings vary.
    """

    failed: int = 0
    missing: int = 0
    near_ties: int = 0
    bugs: int = 0
    empty: int = 0
    empty_cells: int = 0
    noisy: bool = False
    hostile: bool = False


NO_FAULTS = Faults()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Jobs with their results by cell id."""

    jobs: tuple[Job, ...]
    results: dict[str, tuple[ItemResult, ...]]

    def rows(self) -> dict[str, CellRows]:
        """The rows by cell id."""
        return merge_all(itertools.chain.from_iterable(self.results.values()))

    def write(self, root: Path, *, title: str = "A synthetic sweep") -> Path:
        """Write the run directory of this sweep, as a driver would have left it."""
        run = RunDir(root)
        targets, tasks = (tuple({getattr(job.cell, name).name for job in self.jobs}) for name in ("target", "task"))
        spec = SweepSpec(name="synthetic", title=title, grid=GridSpec(target=targets, task=tasks))
        origin = Origin(
            code_digest=CODE_DIGEST, sources={}, versions={"python": "3.11"}, command=("spot", "run", "quick")
        )
        record_start(run, Plan(spec=spec, jobs=self.jobs), origin)
        for result in itertools.chain.from_iterable(self.results.values()):
            path = run.result(result.cell_id, result.item_id)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode_result(result))
        return root


def grid(
    *,
    targets: int = 1,
    tasks: tuple[str, ...] = ("tiny-arith", "tiny-code"),
    budgets: tuple[int, ...] = (4, 8, 20),
    temperatures: tuple[float, ...] = (0.0, 1.0),
    gammas: tuple[float, ...] = (0.1,),
    seeds: tuple[int, ...] = (0,),
    noises: tuple[Noise, ...] = ("coupled",),
    oracles: bool = False,
    mark: str = "",
) -> tuple[Cell, ...]:
    """The cells of a quick sweep: draft-free, ssd, spot and spot with a mass floor; `mark` goes into every name."""
    cells = []
    axes = itertools.product(range(targets), tasks, temperatures, noises, seeds)
    for target, task, temperature, noise, seed in axes:
        if temperature == 0 and noise != noises[0]:
            continue
        base = Cell(
            target=TargetSpec(
                name=f"tiny-sdar{target or ''}{mark}",
                digest=f"{target:064x}",
                family="SDAR",
                cache="exact",
                parameters=2_097_152 >> 2 * target,
            ),
            task=TaskSpec(name=task + mark, kind=task, digest=task),
            decode=DecodeSpec(temperature=temperature, noise=noise, block_length=BLOCK),
            drafter=NO_DRAFTER,
            seed=seed,
        )
        cells += [base, *(replace(base, drafter=drafter) for drafter in drafters(budgets, gammas, mark))]
        cells += [replace(base, drafter=oracle) for oracle in (oracle_specs(budgets, mark) if oracles else ())]
    return tuple(cells)


def cached(cells: tuple[Cell, ...], *kinds: str) -> tuple[Cell, ...]:
    """The cells on targets with approximate caches, one target for each of `kinds`; `sweep` adds their references."""
    return tuple(
        replace(cell, target=replace(cell.target, name=f"{kind}-{cell.target.name}", cache=kind, exact_cache=False))
        for kind in kinds
        for cell in cells
    )


def drafters(budgets: tuple[int, ...], gammas: tuple[float, ...], mark: str = "") -> Iterator[DrafterSpec]:
    """Drafter specs of a grid."""
    for budget in budgets:
        yield DrafterSpec(name=f"ssd{mark}", kind="ssd", budget=budget, hedge=0.0, merge_states=False)
        yield DrafterSpec(name="spot", kind="spot", budget=budget, digest="s")
        for gamma in gammas:
            yield DrafterSpec(name="spot-gamma", kind="spot", budget=budget, gamma=gamma, digest="s")


def oracle_specs(budgets: tuple[int, ...], mark: str = "") -> Iterator[DrafterSpec]:
    """The three oracles at every budget."""
    for kind, budget in itertools.product(("oracle_position", "oracle_token", "oracle_joint"), budgets):
        name = f"{kind}{mark}"
        yield DrafterSpec(name=name, kind=kind, budget=budget, hedge=0.0, merge_states=False, oracle=True)


def sweep(
    cells: tuple[Cell, ...],
    *,
    prompts: int = 16,
    timed: int = 3,
    repeats: int = 3,
    studied: int = 0,
    uncached: int = 100,
    faults: Faults = NO_FAULTS,
) -> Sweep:
    """Results for `cells`; `studied` prompts for each order model, `uncached` for each approximate cache."""
    measure = MeasureSpec(
        prompts=prompts, timed_prompts=timed, repeats=repeats, studied_prompts=studied, uncached_prompts=uncached
    )
    comparable = (cell.uncached() for cell in cells if cell.is_baseline and cell.is_comparable_uncached)
    references = {cell.cell_id: cell for cell in comparable} if uncached else {}
    asked = {cell.cell_id for cell in cells}
    jobs = jobs_of(cells, measure, ("spot",), [cell for cell_id, cell in references.items() if cell_id not in asked])
    empty = {job.cell_id for job in [job for job in jobs if not job.cell.is_baseline][: faults.empty_cells]}
    return Sweep(jobs=jobs, results={job.cell_id: items(job, faults) for job in jobs if job.cell_id not in empty})


def items(job: Job, faults: Faults) -> tuple[ItemResult, ...]:
    """A decode item, a timing item, and what went wrong with them; or a study item."""
    if is_study(job.cell):
        return (study_item(job, faults),)
    cell, last = job.cell, job.prompts - faults.missing
    failing = range(0 if cell.is_baseline else faults.failed)
    generations = tuple(generation(cell, index, faults) for index in range(len(failing), last))
    decode = ItemResult(
        item_id=item_of(job, "decode", 0, last).item_id,
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
    if not job.timed_prompts:
        return (decode,)
    rows = tuple(timing(cell, row, job.repeats, faults) for row in generations[: job.timed_prompts])
    item = item_of(job, "timing", len(failing), len(failing) + len(rows))
    timings = ItemResult(
        item_id=item.item_id,
        cell_id=cell.cell_id,
        kind="timing",
        first=item.first,
        last=item.last,
        timings=rows,
        seconds=20.0,
        finished_at=FINISHED + 60,
        provenance=provenance(),
    )
    return decode, timings


def generation(cell: Cell, index: int, faults: Faults = NO_FAULTS) -> GenerationRecord:
    """One generation: the draft-free one, with the forwards that the cell's drafter would need."""
    base = draft_free(cell, index)
    place = index - faults.failed
    if 0 <= place < faults.near_ties + faults.bugs:
        base = at_margin(base, TIE if place < faults.near_ties else GAP, flip=not cell.is_baseline)
    if index < faults.empty:  # a stop id at once: everything was generated, nothing is kept
        base = replace(base, tokens_kept=0, text="")
    if faults.hostile:
        base = hostile(base, index)
    base = replace(base, drawn=drawn(cell, base))
    if cell.is_baseline:
        return base
    if cell.decode.commit == "threshold":
        return drafted_sets(base, cell, f"{cell.cell_id}/{index}")
    rng = random.Random(f"{cell.cell_id}/{index}")
    rounds, accepted, drafted = walk(rng, cell, base)
    counters = replace(
        base.counters,
        nfe=len(accepted),
        positions=sum((1 + drafts) * BLOCK for drafts in drafted),
        accepted=accepted,
        drafted=drafted,
        merged=len(accepted) // 3 if cell.drafter.merge_states else 0,
        drafter_calls=len(accepted),
    )
    return replace(base, rounds=rounds, counters=counters)


def drawn(cell: Cell, row: GenerationRecord) -> Drawn:
    """Draws that leave the argmax and the stale distribution the more often the higher the temperature."""
    rng, heat = random.Random(f"drawn/{cell.cell_id}/{row.prompt_index}"), cell.decode.temperature
    blocks = [(row.prompt_tokens + position) // BLOCK for position in row.order]
    first = [place == 0 or blocks[place - 1] != block for place, block in enumerate(blocks)]
    moved = [round(min(1.0, 0.2 * heat * rng.random()), 6) if heat else float(rng.random() < 0.05) for _ in blocks]
    hit = [rng.random() >= (distance if cell.decode.noise == "coupled" else 2 * distance) for distance in moved]
    return Drawn(
        argmax="".join("01"[rng.random() >= 0.05 * heat] for _ in blocks),
        agreed="".join("-" if alone else "01"[true] for alone, true in zip(first, hit, strict=True)),
        distances=tuple(None if alone else distance for alone, distance in zip(first, moved, strict=True)),
    )


def draft_free(cell: Cell, index: int) -> GenerationRecord:
    """The draft-free generation of a prompt; an approximate cache changes a token of every third one."""
    if cell.decode.commit == "threshold":
        key, plain = f"{cell.baseline().cell_id}/{index}", draft_free(cell.baseline().timed_beside(), index)
        return in_steps(changed(plain, key, 0.1), key, cell.decode.tau, BLOCK)
    if not cell.target.exact_cache:
        return drifted(draft_free(cell.uncached(), index), f"{cell.target.cache}/{index}")
    rng = random.Random(f"{cell.baseline().cell_id}/{index}")
    prompt_tokens = rng.randrange(20, 60)
    length = rng.choice((2, 3, 3, 4)) * BLOCK - prompt_tokens % BLOCK
    order: list[int] = []
    for first, last in itertools.pairwise([0, *range(BLOCK - prompt_tokens % BLOCK, length, BLOCK), length]):
        order += sorted(range(first, last), key=lambda position: position + rng.gauss(0, 4))
    ids = tuple(rng.randrange(len(WORDS)) for _ in range(length))
    pieces = tuple(WORDS[i] for i in ids)
    return GenerationRecord(
        prompt_id=f"{cell.task.name}/{index}",
        prompt_index=index,
        prompt_tokens=prompt_tokens,
        output_ids=ids,
        tokens_generated=length,
        tokens_kept=length - rng.randrange(1, 20),
        finish_reason="stop",
        text="".join(pieces),
        pieces=pieces,
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
            positions=length * (BLOCK if cell.target.cache != "none" else prompt_tokens + length),
            accepted=(0,) * length,
            drafted=(0,) * length,
            merged=0,
            drafter_calls=0,
        ),
    )


def drifted(base: GenerationRecord, key: str) -> GenerationRecord:
    """What an approximate cache makes of an uncached generation: fewer positions, and now and then other tokens."""
    rng = random.Random(f"drift/{key}")
    counters = replace(base.counters, positions=base.tokens_generated * BLOCK)
    base = replace(base, counters=counters)
    if base.prompt_index % 3:
        return base
    place = rng.randrange(base.tokens_kept)
    ids = (*base.output_ids[:place], (base.output_ids[place] + 1) % len(WORDS), *base.output_ids[place + 1 :])
    return replace(base, output_ids=ids, correct=rng.random() < 0.5)


def walk(rng: random.Random, cell: Cell, base: GenerationRecord) -> tuple[tuple[int, ...], ...]:
    """Round of each commit; accepted and drafted of each round. Walks grow with the budget and end at a block."""
    budget, gamma = cell.drafter.budget, cell.drafter.gamma
    keep = KEEP.get(cell.drafter.kind, 0.72) - 0.05 * (cell.decode.temperature > 0) - 0.1 * gamma
    keep = 1.0 if cell.drafter.kind == "oracle_joint" else keep * (1 - 0.5 / (1 + budget))
    rounds: list[int] = []
    accepted: list[int] = []
    drafted: list[int] = []
    while len(rounds) < base.tokens_generated:
        left = BLOCK - (base.prompt_tokens + len(rounds)) % BLOCK
        alone = not rounds or left == BLOCK  # a block's first forward
        most = 0 if alone else max(0, min(budget, left - 1))
        took = next((step for step in range(most) if rng.random() >= keep), most)
        offered = rng.randrange(1, budget + 1) if gamma else budget
        accepted.append(took)
        drafted.append(max(took, min(offered, 3 * most)))
        rounds += [len(accepted) - 1] * (1 + took)
    return tuple(rounds), tuple(accepted), tuple(drafted)


def at_margin(base: GenerationRecord, margin: float, *, flip: bool) -> GenerationRecord:
    """`base` with a given margin at the commit in the middle of its order, and there, if `flip`, another token."""
    step = len(base.order) // 2
    ids = list(base.output_ids)
    ids[base.order[step]] = (ids[base.order[step]] + flip) % len(WORDS)
    margins = (*base.margins[:step], margin, *base.margins[step + 1 :])
    return replace(base, output_ids=tuple(ids), margins=margins)


def timing(cell: Cell, row: GenerationRecord, repeats: int, faults: Faults) -> TimingRecord:
    """Times in which a forward costs 10 ms plus 0.2 ms a draft state, a drafter call 1 ms."""
    rng = random.Random(f"time/{cell.cell_id}/{row.prompt_index}")
    spread = 0.4 if faults.noisy else 0.02
    base = generation(cell.timed_beside(), row.prompt_index, faults)
    seconds = sum(0.010 + 0.0002 * drafts for drafts in row.counters.drafted) + 0.001 * row.counters.nfe
    variant = tuple(seconds * (1 + rng.uniform(-spread, spread)) for _ in range(repeats))
    plain = tuple(0.010 * base.counters.nfe * (1 + rng.uniform(-spread, spread)) for _ in range(repeats))
    return TimingRecord(
        prompt_id=row.prompt_id,
        prompt_index=row.prompt_index,
        tokens_kept=row.tokens_kept,
        nfe=row.counters.nfe,
        baseline_nfe=base.counters.nfe,
        identical=row.output_ids == base.output_ids,
        variant_seconds=variant,
        baseline_seconds=plain,
        drafter_seconds=0.08 * sum(variant),
        forward_seconds=0.85 * sum(variant),
        walk_seconds=0.05 * sum(variant),
        baseline_forward_seconds=0.9 * sum(plain),
        baseline_tokens_kept=base.tokens_kept,
    )


def study_item(job: Job, faults: Faults) -> ItemResult:
    """The study of a job's cell: the first prompts failed, the last are missing."""
    last, failing = job.studied_prompts - faults.missing, range(min(faults.failed, job.studied_prompts))
    item = item_of(job, "study", 0, last)
    return ItemResult(
        item_id=item.item_id,
        cell_id=job.cell_id,
        kind="study",
        first=0,
        last=last,
        studies=tuple(study(job.cell, index) for index in range(len(failing), last)),
        failures=tuple(failure(index, faults) for index in failing),
        finished_at=FINISHED,
        provenance=provenance(),
    )


def study(cell: Cell, index: int) -> StudyRecord:
    """Counts in which tokens are foretold well, positions by the model better than by confidence, all worse further."""
    rng = random.Random(f"study/{cell.cell_id}/{index}")

    def hits(asked: tuple[int, ...], share: float) -> tuple[int, ...]:
        return tuple(sum(rng.random() < share for _ in range(n)) for n in asked)

    asked = tuple(
        tuple(3 if ahead <= place <= BLOCK - 2 else 0 for place in range(BLOCK)) for ahead in range(1, LOOK_AHEADS + 1)
    )
    tops = [tuple(hits(row, 0.96 - 0.02 * far) for far, row in enumerate(asked))]
    for _ in TOPS[1:]:  # half of what was missed is among twice as many
        missed = tuple(
            tuple(a - h for a, h in zip(row, found, strict=True)) for row, found in zip(asked, tops[-1], strict=True)
        )
        more = tuple(hits(row, 0.5) for row in missed)
        tops.append(tuple(tuple(map(sum, zip(row, new, strict=True))) for row, new in zip(tops[-1], more, strict=True)))
    return StudyRecord(
        prompt_id=f"{cell.task.name}/{index}",
        prompt_index=index,
        commits=3 * BLOCK,
        asked=asked,
        in_top=tuple(tops),
        drawn=tops[0],
        by_confidence=tuple(hits(row, 0.5 / (1 + far)) for far, row in enumerate(asked)),
        by_model=tuple(hits(row, 0.8 - 0.02 * far) for far, row in enumerate(asked)),
    )


def failure(index: int, faults: Faults) -> Failure:
    """A deterministic failure of one prompt."""
    message = HOSTILE[index % len(HOSTILE)] if faults.hostile else f"prompt of {300 + index} tokens passes the limit"
    return Failure(
        kind="deterministic",
        type="ValueError",
        message=message,
        traceback=f"Traceback (most recent call last):\n  ...\nValueError: {message}",
        prompt_index=index,
        prompt_id=f"prompt-{index}",
    )


def hostile(row: GenerationRecord, index: int) -> GenerationRecord:
    """`row` with markup, separators and other languages' syntax in every text."""
    text = HOSTILE[index % len(HOSTILE)]
    pieces = (text, *row.pieces[1:])
    return replace(row, prompt_id=f"{text}/{index}", text="".join(pieces), pieces=pieces, score_reason=text)


def provenance() -> Provenance:
    """A provenance record."""
    versions = {"python": "3.11.2", "torch": "2.13.0", "ray": "2.60.0"}
    return Provenance(host="node-a", device="cpu", threads=1, code_digest=CODE_DIGEST, versions=versions)
