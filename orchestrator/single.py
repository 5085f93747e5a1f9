"""One cell from command-line options, by the same rules as a cell of a sweep: names, digests, impossible pairs."""

from collections.abc import Mapping
from dataclasses import replace
from shlex import join
from typing import Any

from orchestrator.absent import NotHereError, argument_of, cost_to_measure, ways_to
from orchestrator.artifacts import artifact_of, costs_of
from orchestrator.block_lengths import check_block_length
from orchestrator.resolve import resolve_target
from orchestrator.tables import built_in_tables
from sweeps import named
from sweeps.cell import Cell
from sweeps.effort import MeasureSpec
from sweeps.expand import Dropped, expand
from sweeps.facts import Artifact, Facts
from sweeps.source import Source, SweepError
from sweeps.spec import GridSpec, SweepSpec, TaskSpec
from sweeps.tables import unknown
from workers import catalog

NO_TASK = TaskSpec(name="prompt", kind="prompt")


def single_cell(
    *,
    target: str,
    drafter: str,
    options: Mapping[str, Any],
    grid: Mapping[str, Any],
    ignore_eos: bool = False,
    cache: str = "",
) -> Cell:
    """The cell of a target (a name, a directory or a hub id) and a drafter kind with `options` of it.

    `cache` is the target's kind of cache ("": its family's default); `grid` holds single values of the other axes.
    Raises ValueError with one line for whatever cannot be.
    """
    tables, source = built_in_tables(), Source(name="command line", lines={}, overrides={})
    if drafter not in tables.drafters:
        raise SweepError(unknown("drafter", drafter, tables.drafters))
    found = replace(named.targets((target,), {}, tables, source)[0], cache=cache)
    if "block_length" not in grid:
        check_block_length(found, ("--block-length N",))
    drafters = named.drafters((drafter,), {drafter: dict(options)}, tables, source)
    resolved, checkpoint = resolve_target(found)
    artifact = artifact_of(resolved, drafters[0])
    kind = catalog.DRAFTERS[drafter].artifact
    spec = SweepSpec(
        name="decode",
        grid=GridSpec(target=(target,), task=(NO_TASK.name,), **{axis: (value,) for axis, value in grid.items()}),
        targets=(resolved,),
        tasks=(NO_TASK,),
        drafters=drafters,
        ignore_eos=ignore_eos,
        measure=MeasureSpec(uncached_prompts=0),
    )
    try:
        measure = cost_to_measure(spec, resolved, drafter, "", drafters[0].checkpoint)
        costs = costs_of(drafters[0], (resolved,), f"measure it: {measure.shown()}")
    except NotHereError as error:
        made = cost_to_measure(spec, resolved, drafter, str(error), drafters[0].checkpoint)
        raise SweepError(f"drafter {drafter}: {error}: measure one: {join(made.command)}") from None
    ways = {}
    if kind:
        make = f"{catalog.ARTIFACTS[kind].command} --target {argument_of(resolved)}"
        ways[resolved.name, drafter] = ways_to(kind, make, "--checkpoint ")
    facts = Facts(
        kinds=tables.drafters,
        max_positions={resolved.name: checkpoint.max_positions},
        artifacts={(resolved.name, drafter): artifact} if artifact else {},
        costs=costs,
        ways=ways,
        hidden={resolved.name: checkpoint.hidden},
    )
    expansion = expand(spec, facts)
    if not expansion.cells:
        raise SweepError(f"{drafter} on {target}: {refusal(expansion.dropped[0], kind, artifact)}")
    return expansion.cells[-1].cell


def refusal(gone: Dropped, kind: str, artifact: Artifact | None) -> str:
    """Why a cell cannot be, and which options would have to change; `kind` is the artifact that its drafter needs."""
    standard = gone.axes.get("commit") == "standard"
    options = [f"--{axis.replace('_', '-')}" for axis in gone.axes if axis not in ("target", "drafter", "commit")]
    if kind and "drafter" in gone.axes:
        free = " | ".join(name for name, entry in catalog.DRAFTERS.items() if not (entry.artifact or entry.oracle))
        options += ["--checkpoint"] if artifact else []
        options += [f"--drafter ({free} need no {catalog.ARTIFACTS[kind].noun})"]
    ways = ["--tau 0.9 (the rule threshold)"] if standard else []
    ways += [f"another {' | '.join(options)}"] if options else []
    return f"{gone.reason}; ways out: {' | '.join(ways)}" if ways else gone.reason
