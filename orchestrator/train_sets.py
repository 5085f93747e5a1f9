"""`spot train sets`: trajectories of threshold decoding on the worker pool, then training of a set model right here.

Everything lies below one directory: `request.json` (what it is for: another request is refused), `traces/` (kept: a
second run collects only what is missing), `state.pt` (training goes on from it), `training.jsonl` (its log) and
`model/`, the checkpoint with its card, which a drafter's `checkpoint` option may name. With `calibrate_from` the same
trajectories of another target are used to fit a trained model's input layer to it, and nothing else of it changes.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.block_lengths import one_block_length
from orchestrator.collect import CollectProgress, collect_traces
from orchestrator.pool import Pool
from orchestrator.train_request import check_request, request_of, write_request
from orchestrator.train_shared import (
    MAX_NEW_TOKENS,
    TRACES,
    check_collected,
    check_folder,
    interruption_told,
    recorded_cells,
    target_spec,
)
from sweeps.cell import Cell
from sweeps.checks import check
from sweeps.effort import MAX_PROMPTS
from sweeps.lock import RunLock
from sweeps.records import Failure
from sweeps.spec import MAX_BLOCK, check_tau
from sweeps.store import RunDir
from workers.models.set_facts import SetConfig, find_set_model, inspect_set_model
from workers.training.order_log import LOG_FILE, MODEL, STATE
from workers.training.sets_recipe import SetRecipe

if TYPE_CHECKING:
    from workers.training.fitting import FitProgress
    from workers.training.sets import SetTrained

FREE_UNTRAINED = ("--prompts", "--steps")
CALIBRATION_STEPS = 600
CHOICE = 3  # open positions that a block needs for a step behind the known one to leave any


@dataclass(frozen=True, slots=True, kw_only=True)
class SetsRequest:
    """What to train on: the first `prompts` of each task's train split, each decoded draft-free by one of the rules
    (a temperature and a tau), which are dealt out in turn.

    `width` and `layers` are the model's (those of the base model with `calibrate_from`, a checkpoint). `block_length`
    None, `dtype` and `cache` "": the target's own.
    """

    target: str
    tasks: tuple[str, ...]
    temperatures: tuple[float, ...] = (0.0, 1.0)
    taus: tuple[float, ...] = (0.7, 0.8, 0.9, 0.95)
    prompts: int = 300
    seed: int = 0
    max_new_tokens: int = 128
    block_length: int | None = None
    dtype: str = ""
    cache: str = ""
    width: int | None = None
    layers: int | None = None
    calibrate_from: str = ""

    def __post_init__(self) -> None:
        for name in ("tasks", "temperatures", "taus"):
            values = getattr(self, name)
            check(bool(values) and len(set(values)) == len(values), name, values, "one or more, each once")
        for tau in self.taus:
            check_tau("tau", tau)
        rules = len(self.temperatures) * len(self.taus)
        for name, least, most in (
            ("prompts", max(2, rules), MAX_PROMPTS),
            ("max_new_tokens", CHOICE, MAX_NEW_TOKENS),
            ("block_length", CHOICE, MAX_BLOCK),
        ):
            value, why = getattr(self, name), f": one for each of {rules} rules" if name == "prompts" else ""
            check(value is None or least <= value <= most, name, value, f"a whole number from {least} to {most}{why}")
        check(0 <= self.seed < 2**63, "seed", self.seed, "a whole number from 0 to 2**63-1")
        if self.calibrate_from:
            for name in ("width", "layers"):
                check(getattr(self, name) is None, name, getattr(self, name), "that of the model it is calibrated from")
        elif self.block_length is not None:
            self.sizes(self.block_length)

    def sizes(self, block_length: int) -> SetConfig:
        """The shape of a new model, whatever the target's width. Raises ValueError for one that no model can have."""
        default = SetConfig(block_length=block_length, hidden=1)
        width, layers = (asked if asked is not None else getattr(default, name) for name, asked in self.asked())
        return SetConfig.sized(block_length=block_length, hidden=1, width=width, layers=layers)

    def asked(self) -> tuple[tuple[str, int | None], ...]:
        """Width and layers as they were stated."""
        return ("width", self.width), ("layers", self.layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetsOutcome:
    """The trained model and what there was to train on; `failures` are prompts without a trajectory."""

    trained: "SetTrained"
    traces: int
    failures: tuple[Failure, ...]


def settled(request: SetsRequest) -> SetsRequest:
    """A request with the target's own block length and dtype where it states none, and the base model's path.

    Raises ValueError for a target or base model that does not exist, or that do not fit.
    """
    target = target_spec(request.target, request.dtype)
    length = one_block_length([target], request.block_length)
    request = replace(request, block_length=length, dtype=target.dtype)
    if not request.calibrate_from:
        request.sizes(length)
        return request
    facts = inspect_set_model(find_set_model(request.calibrate_from))
    if facts.block_length != length:
        allowed = f"the {facts.block_length} of the model it is calibrated from"
        raise ValueError(f"block_length is {length}: allowed is {allowed}")
    return request


def recipe_of(request: SetsRequest, steps: int | None) -> SetRecipe:
    """The recipe of a settled request."""
    assert request.block_length is not None
    recipe = SetRecipe(seed=request.seed)
    if request.calibrate_from:
        facts = inspect_set_model(find_set_model(request.calibrate_from))
        recipe = replace(
            recipe,
            calibrate_from=facts.digest,
            width=facts.width,
            layers=facts.layers,
            steps=CALIBRATION_STEPS,
        )
    else:
        sizes = request.sizes(request.block_length)
        recipe = replace(recipe, width=sizes.width, layers=sizes.layers)
    return recipe if steps is None else replace(recipe, steps=steps)


def sets_cells(request: SetsRequest) -> dict[Cell, range]:
    """The draft-free cells that a settled request records, and the prompts of each: a task's are dealt out over its
    rules. Raises ValueError, with the nearest name, for what does not exist.
    """
    dealt = len(request.taus) * len(request.temperatures)
    cells = recorded_cells(request, request.taus)
    return {cell: range(number % dealt, request.prompts, dealt) for number, cell in enumerate(cells)}


def train_sets_command(
    request: SetsRequest,
    *,
    out: Path,
    pool: Pool,
    steps: int | None = None,
    on_collect: Callable[[CollectProgress], None] | None = None,
    on_train: "Callable[[FitProgress], None] | None" = None,
    tracking_uri: str = "",
) -> SetsOutcome:
    """Collect what is missing below `out`, then train (or go on training) and write `out/model`.

    Raises ValueError, before any work, for bad names or a directory that is in use or of another request; later when a
    cell has no trajectory at all, or the state cannot be gone on with.
    """
    check_folder(out, TRACES, MODEL)
    request = settled(request)
    recipe, cells = recipe_of(request, steps), sets_cells(request)
    options = {**asdict(request), "calibrate_from": recipe.calibrate_from, "width": recipe.width}
    options |= {"layers": recipe.layers, "steps": recipe.steps}
    asked = request_of("spot train sets", options, cells)
    check_request(out, asked, free=() if (out / STATE).exists() else FREE_UNTRAINED, free_untrained=FREE_UNTRAINED)
    import torch  # not at import time

    threads = torch.get_num_threads()
    with interruption_told(out), RunLock(RunDir(out)):
        write_request(out, asked)
        collected = collect_traces(pool, cells, out / TRACES, states=True, progress=on_collect)
        check_collected(tuple(cells), collected, out / TRACES)
        torch.set_num_threads(threads)  # an inline pool decodes with others; weights depend on their number
        from workers.loading import Loaded
        from workers.models.set_model import embeddings_of
        from workers.training.sets import train_sets

        target = next(iter(cells)).target
        trained = train_sets(
            collected.paths,
            recipe,
            embedded_VH=embeddings_of(Loaded("cpu").get_target(target)),  # of the target nothing else is kept
            out_dir=out / MODEL,
            base=find_set_model(request.calibrate_from) if request.calibrate_from else None,
            progress=on_train,
            resume=out / STATE,
            log=out / LOG_FILE,
            tracking_uri=tracking_uri,
        )
    return SetsOutcome(trained=trained, traces=len(collected.paths), failures=collected.failures)
