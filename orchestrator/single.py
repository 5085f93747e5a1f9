"""One cell from command-line options, by the same rules as a cell of a sweep: names, digests, impossible pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from shlex import join
from typing import Any

from orchestrator.absent import NotHereError, cost_to_measure, own_tasks
from orchestrator.artifacts import artifact_of, costs_of
from orchestrator.block_lengths import check_block_length
from orchestrator.resolve import resolve_target
from orchestrator.tables import built_in_tables
from orchestrator.ways import ways_of
from sweeps import named
from sweeps.cell import Cell
from sweeps.effort import MeasureSpec
from sweeps.expand import Dropped, expand
from sweeps.facts import Facts
from sweeps.source import Source, SweepError
from sweeps.spec import DrafterSpec, GridSpec, SweepSpec, TaskSpec
from sweeps.tables import unknown
from workers import catalog
from workers.targets.inspect import CheckpointFacts

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
    facts = facts_of(spec, checkpoint)
    expansion = expand(spec, replace(facts, costs=costs))
    if not expansion.cells:
        others = others_that_draft(spec, checkpoint)
        raise SweepError(f"{drafter} on {target}: {refusal(expansion.dropped[0], drafter, others)}")
    return expansion.cells[-1].cell


def drafter_for(target: str, *, threshold: bool, checkpoint: str | None) -> str:
    """The drafter of who names none: by the threshold rule one that drafts for it, with a set model (the target's own,
    or the `checkpoint` that is given) spot-sets.
    """
    if not threshold:
        return "spot"
    tables, source = built_in_tables(), Source(name="command line", lines={}, overrides={})
    entry = catalog.target_at(named.targets((target,), {}, tables, source)[0].path)
    return "spot-sets" if checkpoint or (entry and "set_model" in entry.artifacts) else "freedave"


def facts_of(spec: SweepSpec, checkpoint: CheckpointFacts) -> Facts:
    """What `expand` needs of one target and one drafter, cost curves apart."""
    (target,), (drafter,) = spec.targets, spec.drafters
    artifact, hidden = artifact_of(target, drafter), {target.name: checkpoint.hidden}
    artifacts = {(target.name, drafter.name): artifact} if artifact else {}
    found = ways_of(replace(spec, tasks=own_tasks(target)), artifacts, hidden, "--checkpoint ")
    return Facts(
        kinds=built_in_tables().drafters,
        max_positions={target.name: checkpoint.max_positions},
        artifacts=artifacts,
        ways=found.ways,
        fits=found.fits,
        remakes=found.remakes,
        hidden=hidden,
    )


def others_that_draft(spec: SweepSpec, checkpoint: CheckpointFacts) -> tuple[str, ...]:
    """The drafters that could decode the same by themselves: with what the target has, by its commit rule."""
    kinds = [kind for kind, entry in catalog.DRAFTERS.items() if not entry.oracle and kind != spec.drafters[0].kind]
    alone = {kind: replace(spec, drafters=(DrafterSpec(name=kind, kind=kind),)) for kind in kinds}
    return tuple(kind for kind, other in alone.items() if expand(other, facts_of(other, checkpoint)).cells)


def refusal(gone: Dropped, drafter: str, others: Sequence[str]) -> str:
    """Why a cell cannot be, and which options would have to change; `others` are the drafters that could decode it."""
    kind, commit, ways = catalog.DRAFTERS[drafter], gone.axes.get("commit"), []
    if commit == "standard":
        ways.append("--tau 0.9 (the rule threshold)")
    if gone.instead:
        ways.append(f"no {' '.join(f'--{name}'.replace('_', '-') for name in gone.instead)}")
    if commit == "threshold" and commit not in kind.commits:
        ways.append("no --tau (the rule standard)")
    options = [f"--{axis.replace('_', '-')}" for axis in gone.axes if axis not in ("target", "drafter", "commit")]
    if kind.artifact and gone.reason.startswith(f"its {catalog.ARTIFACTS[kind.artifact].noun}"):
        options.append("--checkpoint")
    if "drafter" in gone.axes and others and (commit != "standard" or commit in kind.commits):
        options.append(f"--drafter ({' | '.join(others)})")
    ways += [f"another {' | '.join(options)}"] if options else []
    return f"{gone.reason}; ways out: {' | '.join(ways)}" if ways else gone.reason
