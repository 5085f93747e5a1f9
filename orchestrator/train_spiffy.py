"""`spot train spiffy`: trajectories on the worker pool, then calibration of a draft graph in this process.

Everything lies below one directory: `request.json` (what it is for: another request is refused), `traces/` (kept: a
second run collects only what is missing) and `graph/`, the graph with its card, which a drafter's `checkpoint` option
may name. Equal trajectories give an equal file.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from orchestrator.block_lengths import one_block_length
from orchestrator.collect import CollectProgress, collect_traces
from orchestrator.pool import Pool
from orchestrator.train_request import check_request, request_of, write_request
from orchestrator.train_shared import (
    MAX_NEW_TOKENS,
    TRACES,
    check_collected,
    check_folder,
    recorded_cells,
    target_spec,
)
from sweeps.checks import check
from sweeps.effort import MAX_PROMPTS
from sweeps.lock import RunLock
from sweeps.records import Failure
from sweeps.spec import MAX_BLOCK, check_tau
from sweeps.store import RunDir
from workers.models.draft_graph import DraftGraph
from workers.training.spiffy_recipe import SpiffyRecipe

GRAPH = "graph"
FREE = ("--prompts", "--budget-max")  # a graph is counted anew each time
CHOICE = 3  # open positions of a block without which nothing can be drafted: one is known, one stays open


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiffyRequest:
    """What to calibrate on: the first `prompts` of each task's train split, decoded draft-free at each temperature, by
    the threshold rule where `tau` is given.

    `block_length` None, `dtype` and `cache` "": the target's own.
    """

    target: str
    tasks: tuple[str, ...]
    temperatures: tuple[float, ...] = (0.0, 1.0)
    prompts: int = 32
    seed: int = 0
    max_new_tokens: int = 128
    block_length: int | None = None
    dtype: str = ""
    cache: str = ""
    tau: float | None = None

    def __post_init__(self) -> None:
        for name in ("tasks", "temperatures"):
            values = getattr(self, name)
            check(bool(values) and len(set(values)) == len(values), name, values, "one or more, each once")
        for name, least, most in (
            ("prompts", 2, MAX_PROMPTS),
            ("max_new_tokens", CHOICE, MAX_NEW_TOKENS),
            ("block_length", CHOICE, MAX_BLOCK),
        ):
            value = getattr(self, name)
            check(value is None or least <= value <= most, name, value, f"a whole number from {least} to {most}")
        if self.tau is not None:
            check_tau("tau", self.tau)
        check(0 <= self.seed < 2**63, "seed", self.seed, "a whole number from 0 to 2**63-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiffyOutcome:
    """The graph, where it lies, and what there was to count; `failures` are prompts without a trajectory."""

    graph: DraftGraph
    path: Path
    traces: int
    failures: tuple[Failure, ...]


def settled(request: SpiffyRequest) -> SpiffyRequest:
    """A request with the target's own block length and dtype where it states none. Raises ValueError for a target that
    does not exist or has no known block length.
    """
    target = target_spec(request.target, request.dtype)
    return replace(request, block_length=one_block_length([target], request.block_length), dtype=target.dtype)


def train_spiffy_command(
    request: SpiffyRequest,
    *,
    out: Path,
    pool: Pool,
    recipe: SpiffyRecipe | None = None,
    on_collect: Callable[[CollectProgress], None] | None = None,
) -> SpiffyOutcome:
    """Collect what is missing below `out`, then calibrate and write `out/graph`.

    Raises ValueError, before any work, for bad names or a directory that is in use or of another request; later when a
    cell has no trajectory at all, or there is nothing to count in them.
    """
    check_folder(out, TRACES, GRAPH)
    request = settled(request)
    cells = recorded_cells(request, (request.tau,))
    recipe = recipe or SpiffyRecipe()
    options = {**asdict(request), "budget_max": recipe.budget_max}
    asked = request_of("spot train spiffy", options, cells)
    check_request(out, asked, free=FREE)
    with RunLock(RunDir(out)):
        write_request(out, asked)
        wanted = dict.fromkeys(cells, request.prompts)
        collected = collect_traces(pool, wanted, out / TRACES, progress=on_collect)
        check_collected(cells, collected, out / TRACES)
        from workers.training.spiffy import calibrate  # torch: not before there is something to count

        graph = calibrate(collected.paths, recipe, out_dir=out / GRAPH)
    return SpiffyOutcome(graph=graph, path=out / GRAPH, traces=len(collected.paths), failures=collected.failures)
