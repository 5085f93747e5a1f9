"""`spot train order`: trajectories on the worker pool, then training of the order model in this process.

Everything lies below one directory: `traces/` (kept: a second run collects only what is missing), `state.pt` (training
goes on from it) and `model/`, the checkpoint with its card, which a drafter's `checkpoint` option may name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.collect import Collected, CollectProgress, collect_traces
from orchestrator.pool import Pool
from orchestrator.resolve import resolve_target, resolve_task
from sweeps.cell import NO_DRAFTER, Cell
from sweeps.records import Failure
from sweeps.spec import DecodeSpec, TargetSpec, TaskSpec
from sweeps.tables import unknown
from workers import catalog
from workers.training.order_recipe import OrderRecipe

if TYPE_CHECKING:
    from workers.training.order import OrderProgress, OrderTrained

TRACES, STATE, MODEL = "traces", "state.pt", "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRequest:
    """What to train on: the first `prompts` of each task's train split, decoded draft-free at each temperature."""

    target: str
    tasks: tuple[str, ...]
    temperatures: tuple[float, ...] = (0.0, 1.0)
    prompts: int = 300
    seed: int = 0
    max_new_tokens: int = 128
    block_length: int = 32
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("tasks", "temperatures"):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise ValueError(f"train order: {name} is {values!r}: allowed is one or more, each once")
        if self.prompts < 2:
            raise ValueError(f"train order: prompts is {self.prompts!r}: allowed is a whole number from 2")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"train order: seed is {self.seed!r}: allowed is a whole number from 0 to 2**63-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOutcome:
    """The trained model and what there was to train on; `failures` are prompts without a trajectory."""

    trained: "OrderTrained"
    traces: int
    failures: tuple[Failure, ...]


def order_cells(request: OrderRequest) -> tuple[Cell, ...]:
    """The draft-free cells to record. Raises ValueError, with the nearest name, for what does not exist."""
    target, facts = resolve_target(target_spec(request.target, request.dtype))
    if facts.max_positions <= request.max_new_tokens:
        limit = f"below the target's {facts.max_positions} positions"
        raise ValueError(f"train order: max_new_tokens is {request.max_new_tokens}: allowed is a number {limit}")
    tasks = [resolve_task(task_spec(name)) for name in request.tasks]
    rules = [
        DecodeSpec(temperature=temperature, max_new_tokens=request.max_new_tokens, block_length=request.block_length)
        for temperature in request.temperatures
    ]
    return tuple(
        Cell(target=target, task=task, decode=rule, drafter=NO_DRAFTER, seed=request.seed)
        for task in tasks
        for rule in rules
    )


def target_spec(name: str, dtype: str) -> TargetSpec:
    """A built-in target, a directory, or a hub id."""
    if name in catalog.TARGETS:
        entry = catalog.TARGETS[name]
        return TargetSpec(name=name, path=entry.path, revision=entry.revision, dtype=dtype)
    if "/" in name:
        return TargetSpec(name=name, path=name, dtype=dtype)
    raise ValueError(unknown("target", name, catalog.TARGETS) + " (a directory or hub id contains a `/`)")


def task_spec(name: str) -> TaskSpec:
    """A built-in task, or `kind:PATH`, with its train split."""
    kind, _, path = name.partition(":")
    if kind not in catalog.TASKS:
        raise ValueError(unknown("task", kind, catalog.TASKS))
    if catalog.TASKS[kind].needs_path != bool(path):
        raise ValueError(f"task {name}: {kind} {'needs a file: ' + kind + ':PATH' if not path else 'reads no file'}")
    return TaskSpec(name=name, kind=kind, path=path, split="train")


def train_order_command(
    request: OrderRequest,
    *,
    out: Path,
    pool: Pool,
    recipe: OrderRecipe | None = None,
    on_collect: Callable[[CollectProgress], None] | None = None,
    on_train: "Callable[[OrderProgress], None] | None" = None,
) -> OrderOutcome:
    """Collect what is missing below `out`, then train (or go on training) and write `out/model`.

    Raises ValueError, before any work, for bad names; later when a cell has no trajectory at all.
    """
    check_folder(out)
    cells = order_cells(request)
    collected = collect_traces(pool, cells, request.prompts, out / TRACES, progress=on_collect)
    check_collected(cells, collected, out / TRACES)
    from workers.training.order import train_order

    recipe = recipe or replace(OrderRecipe(), seed=request.seed)
    trained = train_order(collected.paths, recipe, out_dir=out / MODEL, progress=on_train, resume=out / STATE)
    return OrderOutcome(trained=trained, traces=len(collected.paths), failures=collected.failures)


def check_folder(out: Path) -> None:
    """Raise ValueError when something that is no directory stands where `out` or a folder in it must be."""
    for folder in (*reversed(out.parents), out, out / TRACES, out / MODEL):
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"train order: out is {str(out)!r}: {folder} is no directory: choose another --out")


def check_collected(cells: Sequence[Cell], collected: Collected, folder: Path) -> None:
    """Raise ValueError for a cell without any trajectory."""
    folders = {path.parent.name for path in collected.paths}
    for cell in cells:
        if not any(name.endswith(cell.cell_id) for name in folders):
            first = collected.failures[0]
            what = f"{cell.task.name} at T = {cell.decode.temperature:g}"
            raise ValueError(f"train order: no trajectory of {what} in {folder} ({first.type}: {first.message})")
