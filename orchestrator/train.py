"""`spot train order`: trajectories on the worker pool, then training of the order model in this process.

Everything lies below one directory: `request.json` (what it is for: another request is refused), `traces/` (kept: a
second run collects only what is missing), `state.pt` (training goes on from it), `training.jsonl` (its log) and
`model/`, the checkpoint with its card, which a drafter's `checkpoint` option may name. What is only judged (test tasks,
test targets) is recorded from the split `test`.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.block_lengths import one_block_length, the_one
from orchestrator.collect import Collected, CollectProgress, collect_traces
from orchestrator.pool import Pool
from orchestrator.train_request import REQUEST_FILE, check_request, option, request_of, write_request
from orchestrator.train_shared import (
    MAX_NEW_TOKENS,
    TRACES,
    cells_of,
    check_collected,
    check_folder,
    interruption_told,
    paths_of,
    resolved_target,
    resolved_task,
    target_spec,
)
from sweeps.cell import Cell
from sweeps.effort import MAX_PROMPTS
from sweeps.lock import RunLock
from sweeps.records import Failure
from sweeps.spec import MAX_BLOCK, DecodeSpec, TargetSpec
from sweeps.store import RunDir
from workers.training.order_log import LOG_FILE, MODEL, STATE
from workers.training.order_recipe import OrderRecipe

if TYPE_CHECKING:
    from workers.training.fitting import FitProgress
    from workers.training.order import OrderTrained
    from workers.training.order_accuracy import JudgingProgress

FREE = ("--test-target", "--test-task", "--test-prompts")  # what is only judged changes no weight
FREE_UNTRAINED = ("--prompts", "--steps")
CHOICE = 3  # open positions that a block needs for its order to be a choice once one commit is known


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRequest:
    """What to train on: the first `prompts` of each task's train split, decoded draft-free by each target at each
    temperature. `test_targets` and `test_tasks` are judged and never trained on, on `test_prompts` each (None: see
    `judged_prompts`). `block_length` None and `dtype` "": the one that all targets have (`settled`); `cache` "":
    each one's own.
    """

    targets: tuple[str, ...]
    tasks: tuple[str, ...]
    test_targets: tuple[str, ...] = ()
    test_tasks: tuple[str, ...] = ()
    temperatures: tuple[float, ...] = (0.0, 1.0)
    prompts: int = 300
    test_prompts: int | None = None
    seed: int = 0
    max_new_tokens: int = 128
    block_length: int | None = None
    dtype: str = ""
    cache: str = ""

    def __post_init__(self) -> None:
        for name in ("targets", "tasks", "temperatures", "test_targets", "test_tasks"):
            values = getattr(self, name)
            if not (values or name.startswith("test")) or len(set(values)) != len(values):
                raise ValueError(f"train order: {name} is {values!r}: allowed is one or more, each once")
        for name in ("targets", "tasks"):
            both = [value for value in getattr(self, name) if value in getattr(self, f"test_{name}")]
            if both:
                trained = f"it is trained on too ({option(name)})"
                raise ValueError(f"{option(f'test_{name}')} {both[0]}: {trained}: give it as one of the two")
        for name, least, most in (
            ("prompts", 2, MAX_PROMPTS),
            ("test_prompts", 1, MAX_PROMPTS),
            ("max_new_tokens", CHOICE, MAX_NEW_TOKENS),
            ("block_length", CHOICE, MAX_BLOCK),
        ):
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                why = ": with fewer open positions there is no order to learn" if least == CHOICE else ""
                allowed = f"a whole number from {least} to {most}{why}"
                raise ValueError(f"train order: {name} is {value!r}: allowed is {allowed}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"train order: seed is {self.seed!r}: allowed is a whole number from 0 to 2**63-1")

    @property
    def judged_prompts(self) -> int:
        """Prompts of each test task: as asked for, or a sixth of those trained on (at least 4 where there are so many,
        at most 50).
        """
        return min(50, self.prompts, max(4, self.prompts // 6)) if self.test_prompts is None else self.test_prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCells:
    """The draft-free cells to record, apart by what becomes of their trajectories."""

    learnt: tuple[Cell, ...]
    judged: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOutcome:
    """The trained model and what there was to train on; `failures` are prompts without a trajectory."""

    trained: "OrderTrained"
    traces: int
    failures: tuple[Failure, ...]


def settled(request: OrderRequest) -> OrderRequest:
    """A request with the block length and dtype that its targets have, where it states none.

    Raises ValueError for a target that does not exist or has no known block length, and for targets that differ.
    """
    targets = [target_spec(name, request.dtype) for name in (*request.targets, *request.test_targets)]
    length = one_block_length(targets, request.block_length)
    return replace(request, block_length=length, dtype=the_one("dtype", targets))


def order_cells(request: OrderRequest) -> OrderCells:
    """What a settled request records. Raises ValueError, with the nearest name, for what does not exist or cannot be
    decoded.
    """
    assert request.block_length is not None
    rules = [
        DecodeSpec(temperature=temperature, max_new_tokens=request.max_new_tokens, block_length=request.block_length)
        for temperature in request.temperatures
    ]
    learnt, test = (
        [
            resolved_target(name, dtype=request.dtype, cache=request.cache, max_new_tokens=request.max_new_tokens)
            for name in names
        ]
        for names in (request.targets, request.test_targets)
    )
    different([*learnt, *test])
    tasks = [resolved_task(name, "train", request.prompts) for name in request.tasks]
    asked = [
        (target, name)
        for target, name in product([*learnt, *test], (*request.tasks, *request.test_tasks))
        if target in test or name in request.test_tasks
    ]
    judged = {name: resolved_task(name, "test", request.judged_prompts) for _, name in asked}
    return OrderCells(
        learnt=cells_of(product(learnt, tasks), rules, request.seed),
        judged=cells_of([(target, judged[name]) for target, name in asked], rules, request.seed),
    )


def different(targets: Sequence[TargetSpec]) -> None:
    """Raise ValueError when two names stand for the same weights."""
    names: dict[str, str] = {}
    for target in targets:
        if target.digest in names:
            raise ValueError(f"train order: targets {names[target.digest]} and {target.name} are the same weights")
        names[target.digest] = target.name


def train_order_command(
    request: OrderRequest,
    *,
    out: Path,
    pool: Pool,
    recipe: OrderRecipe | None = None,
    on_collect: Callable[[CollectProgress], None] | None = None,
    on_train: "Callable[[FitProgress], None] | None" = None,
    on_judge: "Callable[[JudgingProgress], None] | None" = None,
    tracking_uri: str = "",
) -> OrderOutcome:
    """Collect what is missing below `out`, then train (or go on training) and write `out/model`.

    Raises ValueError, before any work, for bad names or a directory that is in use or of another request; later when a
    cell has no trajectory at all, or the state cannot be gone on with.
    """
    check_folder(out, TRACES, MODEL)
    request = settled(request)
    cells = order_cells(request)
    recipe = recipe or replace(OrderRecipe(), seed=request.seed)
    asked = request_of("spot train order", {**asdict(request), "steps": recipe.steps}, cells.learnt)
    free = FREE if (out / STATE).exists() else (*FREE, *FREE_UNTRAINED)
    check_request(out, asked, free=free, free_untrained=FREE_UNTRAINED)
    import torch  # not at import time

    threads = torch.get_num_threads()
    with interruption_told(out), RunLock(RunDir(out)):
        if (out / REQUEST_FILE).exists() or not (out / TRACES).exists():  # older trajectories may be of another one
            write_request(out, asked)
        collected = collect_all(pool, request, cells, out / TRACES, on_collect)
        torch.set_num_threads(threads)  # an inline pool decodes with others; weights depend on their number
        from workers.training.order import train_order

        trained = train_order(
            paths_of(cells.learnt, collected, out / TRACES),
            recipe,
            test_paths=paths_of(cells.judged, collected, out / TRACES),
            out_dir=out / MODEL,
            progress=on_train,
            judging=on_judge,
            resume=out / STATE,
            log=out / LOG_FILE,
            tracking_uri=tracking_uri,
        )
        write_request(out, asked)
    return OrderOutcome(trained=trained, traces=len(collected.paths), failures=collected.failures)


def collect_all(
    pool: Pool,
    request: OrderRequest,
    cells: OrderCells,
    folder: Path,
    progress: Callable[[CollectProgress], None] | None,
) -> Collected:
    """The trajectories of all cells. Raises ValueError for a cell without any."""
    wanted = dict.fromkeys(cells.learnt, request.prompts) | dict.fromkeys(cells.judged, request.judged_prompts)
    collected = collect_traces(pool, wanted, folder, progress=progress)
    check_collected([*cells.learnt, *cells.judged], collected, folder)
    return collected
