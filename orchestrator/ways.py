"""How a target gets what a drafter needs there and has not: the whole command, or a shipped artifact that fits.

Each way is for people and is typed as it stands: commands have every option that they require, a shipped model goes by
its name, and what is shipped is offered only to targets that it can serve.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from shlex import join, quote

from orchestrator.absent import ToMake, artifact_to_make
from sweeps.facts import Artifact
from sweeps.spec import DrafterSpec, SweepSpec, TargetSpec
from workers import catalog

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """By target and drafter: what gets an artifact where there is none, what fits one to another target's width, and
    (by tau too; None: the standard rule) what makes one for another commit rule. See `Facts`.
    """

    ways: dict[Pair, str] = field(default_factory=dict)
    fits: dict[Pair, str] = field(default_factory=dict)
    remakes: dict[tuple[str, str, float | None], str] = field(default_factory=dict)


def ways_of(spec: SweepSpec, artifacts: Mapping[Pair, Artifact], hidden: Mapping[str, int], option: str = "") -> Ways:
    """The ways of each target and drafter of a sweep; `option` is how a checkpoint is given ("": as in a sweep)."""
    found = Ways()
    for target, drafter in product(spec.targets, spec.drafters):
        if not (kind := catalog.DRAFTERS[drafter.kind].artifact):
            continue
        pair, named = (target.name, drafter.name), option or f"drafters.{drafter.name}.checkpoint="
        artifact, make = artifacts.get(pair), artifact_to_make(spec, target, drafter.name, kind)
        if artifact is None:
            shipped = fitting(spec, target, kind, hidden.get(target.name))
            found.ways[pair] = ways_to(make, shipped, named)
        elif artifact.hidden is not None:
            found.fits[pair] = fit_of(make, artifact, named)
        elif artifact.commit is not None:
            for tau in (None, *spec.grid.tau):
                found.remakes[*pair, tau] = remake_of(spec, target, drafter, kind, tau, option)
    return found


def ways_to(make: ToMake, shipped: tuple[str, ...], option: str) -> str:
    """How a target gets an artifact that it has none of: made, or one of those `shipped` for others; `option` names
    either.
    """
    if not shipped:
        return f"make one ({make.shown()}): {option}{quote(make.made)}"
    names = " | ".join(shipped)
    return f"make one ({make.shown()}), or use one that was made on another target (shipped: {names}): {option}NAME"


def fit_of(make: ToMake, artifact: Artifact, option: str) -> str:
    """How a set model of another width is fitted to a target."""
    at = make.command.index("--out")
    base = ("--calibrate-from", catalog.shipped_name(artifact.path))
    shown = replace(make, command=(*make.command[:at], *base, *make.command[at:])).shown()
    return f"fit it to {make.target}: {shown}, then {option}{quote(make.made)}"


def remake_of(
    spec: SweepSpec, target: TargetSpec, drafter: DrafterSpec, kind: str, tau: float | None, option: str
) -> str:
    """How a target gets a second artifact, for another commit rule than the one it has."""
    rule = {"commit": ("standard",)} if tau is None else {"commit": ("threshold",), "tau": (tau,)}
    make = artifact_to_make(replace(spec, grid=replace(spec.grid, **rule)), target, drafter.name, kind)
    of_its_own = "and a drafter of its own with it as the checkpoint"
    return f"make another ({make.shown()}){f': {option}{quote(make.made)}' if option else f', {of_its_own}'}"


def fitting(spec: SweepSpec, target: TargetSpec, kind: str, hidden: int | None) -> tuple[str, ...]:
    """The names of the zoo's artifacts that a target could use: of its block length, of the width of its vectors
    (None: not known), for a commit rule of the sweep.
    """
    inspect, lengths = (
        catalog.resolve(catalog.ARTIFACTS[kind].inspect),
        spec.grid.block_length or (target.block_length,),
    )
    facts = {name: inspect(name) for name in catalog.shipped(kind)}
    return tuple(
        name
        for name, one in facts.items()
        if one.block_length in lengths
        and (hidden is None or getattr(one, "hidden", hidden) == hidden)
        and getattr(one, "commit", spec.grid.commit[0]) in spec.grid.commit
    )


def plain_command(kind: str, target: str, tasks: tuple[str, ...]) -> str:
    """The shortest command that makes an artifact."""
    words = (word for task in tasks for word in ("--task", task))
    return join((*catalog.ARTIFACTS[kind].command.split(), "--target", target, *words))
