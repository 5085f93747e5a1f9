"""What a plan says of memory when it is certain: the target's shape is known, and this machine could never hold it.

Reckoned against all the memory there is, not what is free now: a worker asks that itself before it loads anything.
"""

from collections.abc import Iterable, Iterator

from orchestrator.absent import NotHereError
from orchestrator.checkpoints import checkpoint_folder
from orchestrator.machine import Machine
from sweeps.cell import Cell
from sweeps.effort import ResourceSpec
from sweeps.spec import TargetSpec
from workers import catalog
from workers.room import shortage, size_of
from workers.targets.inspect import config_of
from workers.targets.memory import MemoryNeed, gigabytes, memory_need
from workers.targets.shape import BodyShape


def memory_notes(cells: Iterable[Cell], resources: ResourceSpec, workers: int, machine: Machine) -> Iterator[str]:
    """A line for each target that one worker cannot hold on this machine, or that all workers together cannot."""
    gpu = resources.gpus > 0
    most = max((one.memory for one in machine.gpus), default=0) if gpu else machine.memory
    where = "the largest GPU" if gpu else "all RAM"
    for target, need in largest_needs(cells, gpu=gpu).items():
        line = shortage(target, need, most, where)
        if line:
            yield f"not on this machine: {line}"
        elif not gpu and most and workers * need.weights > most:
            together = f"{gigabytes(workers * need.weights)} GB together, {gigabytes(most)} GB are there"
            fewer = f"give resources.workers={int(most // need.total)}"
            yield f"target {target}: the weights that {workers} workers hold are {together}: {fewer}"


def largest_needs(cells: Iterable[Cell], *, gpu: bool) -> dict[str, MemoryNeed]:
    """What the most demanding cell of each target takes, by the target's name, where its shape is known."""
    shapes: dict[TargetSpec, BodyShape | None] = {}
    needs: dict[str, MemoryNeed] = {}
    for cell in cells:
        if cell.target not in shapes:
            shapes[cell.target] = shape_of(cell.target)
        if (shape := shapes[cell.target]) is None:
            continue
        size = size_of(cell.decode, cell.drafter, cache=cell.target.cache)
        need, name = memory_need(shape, cell.target.dtype, size, gpu=gpu), cell.target.name
        needs[name] = max(needs.get(name, need), need, key=lambda one: one.total)
    return needs


def shape_of(target: TargetSpec) -> BodyShape | None:
    """The widths of a target's body by its own config, or as published where that is not here; None where neither is
    known, or its family has a loader of its own.
    """
    family = catalog.FAMILIES.get(target.family)
    if family is None or not family.read:
        return None
    try:
        return config_of(checkpoint_folder(target)).shape
    except NotHereError:
        entry = catalog.target_at(target.path)
        return entry.published.shape if entry and entry.published else None
