"""What the training commands share: names into targets, tasks and draft-free cells, the directory, what came back.

ValueErrors are one line for people and name the nearest thing that exists.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from orchestrator.collect import Collected, trace_path
from orchestrator.resolve import prompts_there_are, resolve_target, resolve_task
from orchestrator.tables import built_in_tables
from sweeps import named
from sweeps.cell import NO_DRAFTER, Cell
from sweeps.source import Source
from sweeps.spec import DEFAULT_TAU, DecodeSpec, TargetSpec, TaskSpec
from sweeps.store import RunDir
from sweeps.tables import unknown
from workers import catalog

if TYPE_CHECKING:
    from orchestrator.train_sets import SetsRequest
    from orchestrator.train_spiffy import SpiffyRequest

Split = Literal["train", "test"]
TRACES = "traces"
MAX_NEW_TOKENS = 1_000_000  # a target with fewer positions says so later


def target_spec(name: str, dtype: str) -> TargetSpec:
    """A built-in target, a directory, or a hub id, as a sweep has it; `dtype` is "" for its own."""
    target = named.targets((name,), {}, built_in_tables(), Source(name="command line", lines={}, overrides={}))[0]
    return replace(target, dtype=dtype) if dtype else target


def task_spec(name: str, split: Split = "train") -> TaskSpec:
    """A split of a built-in task, or `kind:PATH`."""
    kind, _, path = name.partition(":")
    if kind not in catalog.TASKS:
        raise ValueError(unknown("task", kind, catalog.TASKS))
    if catalog.TASKS[kind].needs_path != bool(path):
        raise ValueError(f"task {name}: {kind} {'needs a file: ' + kind + ':PATH' if not path else 'reads no file'}")
    return TaskSpec(name=name, kind=kind, path=path, split=split)


def resolved_target(name: str, *, dtype: str, cache: str, max_new_tokens: int) -> TargetSpec:
    """A target with its digests. Raises ValueError when it is absent, cannot keep that cache, or has too few
    positions.
    """
    target, facts = resolve_target(replace(target_spec(name, dtype), cache=cache))
    if facts.max_positions <= max_new_tokens:
        limit = f"below the {facts.max_positions} positions of {name}"
        raise ValueError(f"max_new_tokens is {max_new_tokens}: allowed is a number {limit}")
    return target


def resolved_task(name: str, split: Split, prompts: int) -> TaskSpec:
    """A task with the digest of its data. Raises ValueError when that split has fewer prompts than asked for."""
    task = resolve_task(task_spec(name, split))
    have = prompts_there_are(task, prompts)
    if have < prompts:
        field = "prompts" if split == "train" else "test_prompts"
        raise ValueError(f"{field} is {prompts}: allowed is a whole number up to the {have} of {name}")
    return task


def cells_of(pairs: Iterable[tuple[TargetSpec, TaskSpec]], rules: Sequence[DecodeSpec], seed: int) -> tuple[Cell, ...]:
    """The draft-free cells of some targets and tasks, each by each rule."""
    return tuple(
        Cell(target=target, task=task, decode=rule, drafter=NO_DRAFTER, seed=seed)
        for (target, task), rule in product(pairs, rules)
    )


def recorded_cells(request: "SetsRequest | SpiffyRequest", taus: Iterable[float | None]) -> tuple[Cell, ...]:
    """The draft-free cells that a settled request records: each task's train split by every tau (None: the standard
    rule) at every temperature. Raises ValueError, with the nearest name, for what does not exist.
    """
    assert request.block_length is not None
    target = resolved_target(
        request.target, dtype=request.dtype, cache=request.cache, max_new_tokens=request.max_new_tokens
    )
    tasks = [resolved_task(name, "train", request.prompts) for name in request.tasks]
    rules = [
        DecodeSpec(
            temperature=temperature,
            max_new_tokens=request.max_new_tokens,
            block_length=request.block_length,
            commit="standard" if tau is None else "threshold",
            tau=DEFAULT_TAU if tau is None else tau,
        )
        for tau, temperature in product(taus, request.temperatures)
    ]
    return cells_of([(target, task) for task in tasks], rules, request.seed)


def paths_of(cells: Sequence[Cell], collected: Collected, folder: Path) -> tuple[Path, ...]:
    """The trajectories of some of the cells."""
    folders = {trace_path(folder, cell, 0).parent for cell in cells}
    return tuple(path for path in collected.paths if path.parent in folders)


def check_folder(out: Path, *inside: str) -> None:
    """Raise ValueError when something that is no directory stands where `out` or a folder in it must be, or `out` is a
    run directory.
    """
    for folder in (*reversed(out.parents), out, *(out / name for name in inside)):
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"out is {str(out)!r}: {folder} is no directory: choose another --out")
    if RunDir(out).spec.exists():
        raise ValueError(f"out is {str(out)!r}: a sweep's run directory: choose another --out")


@contextlib.contextmanager
def interruption_told(out: Path) -> Iterator[None]:
    """While the body records or judges, Ctrl-C says that what is below `out` is kept (training says more itself)."""
    try:
        yield
    except KeyboardInterrupt as error:
        if str(error):
            raise
        what = "what was recorded and trained so far is kept"
        raise KeyboardInterrupt(f"{what} in {out}: the same command goes on from there") from None


def check_collected(cells: Sequence[Cell], collected: Collected, folder: Path) -> None:
    """Raise ValueError for a cell without any trajectory."""
    folders = {path.parent for path in collected.paths}
    for cell in cells:
        if trace_path(folder, cell, 0).parent not in folders:
            first = collected.failures[0]
            what = f"{cell.task.name} at T = {cell.decode.temperature:g} by {cell.target.name}"
            raise ValueError(f"no trajectory of {what} in {folder} ({first.type}: {first.message})")
