"""What drafters need from files: an order model or a draft graph, and a cost curve, each for one target.

Read from headers, without torch. A file that is named and broken is an error; one that cannot be there yet (its target
is still to be fetched) or that is another target's is a `NotHereError`, which a plan lists and a run refuses.
"""

from collections.abc import Sequence

from orchestrator.absent import ABSENT, NotHereError
from sweeps.facts import Artifact, Cost
from sweeps.made_on import MadeOn
from sweeps.source import SweepError
from sweeps.spec import DrafterSpec, TargetSpec
from workers import catalog
from workers.models.cost_curve import find_cost_curve, read_cost_curve
from workers.models.named import AbsentError


def artifact_of(target: TargetSpec, drafter: DrafterSpec) -> Artifact | None:
    """The order model or the like of a drafter for a target: the drafter's own, or the target's table entry's.

    None where neither names one. Raises SweepError when a named one is broken or what is named is no path; NotHereError
    (with the bare reason) when there is nothing at that path, or when the target itself is still to be fetched, so that
    none can have been made.
    """
    kind = catalog.DRAFTERS[drafter.kind].artifact
    if not kind:
        return None
    entry = catalog.target_at(target.path)  # by its weights, whatever the sweep calls it
    named = drafter.checkpoint or (entry.artifacts.get(kind, "") if entry else "")
    if not named and target.digest.startswith(ABSENT):
        raise NotHereError(
            f"drafter {drafter.name} for {target.name}: its {catalog.ARTIFACTS[kind].noun} is still to be made"
        )
    if not named:
        return None
    try:
        facts = catalog.resolve(catalog.ARTIFACTS[kind].inspect)(named)
    except AbsentError as error:
        raise NotHereError(str(error)) from None
    except (ValueError, OSError) as error:
        raise SweepError(f"drafter {drafter.name} for {target.name}: {' '.join(str(error).split())}") from None
    origins = tuple(getattr(facts, "made_on", ()))
    return Artifact(
        path=str(facts.path.absolute()),
        digest=facts.digest,
        block_length=facts.block_length,
        budget_max=getattr(facts, "budget_max", None),
        made_on=others(target, origins),
        origins=origins,
        commit=getattr(facts, "commit", None),
        tau=getattr(facts, "tau", None),
        hidden=getattr(facts, "hidden", None),
    )


def others(target: TargetSpec, made_on: Sequence[MadeOn]) -> str:
    """The targets that something was made on, where this one is none of them; "" where it is or they are not known."""
    absent = target.digest.startswith(ABSENT)
    known = [
        (made.target == target.name if absent else made.digest == target.digest) and made.dtype in ("", target.dtype)
        for made in made_on
    ]
    if any(known):
        return ""
    return ", ".join(dict.fromkeys(f"{made.target} in {made.dtype}" if made.dtype else made.target for made in made_on))


def cost_of(target: TargetSpec, drafter: DrafterSpec) -> Cost | None:
    """The cost curve that a drafter names, None where it names none; `fault` says why it is none of the target's.

    Raises SweepError when the curve is broken; NotHereError (with the bare reason) when there is none, or when it is
    another one's than a target that is still to be fetched.
    """
    if not drafter.cost:
        return None
    try:
        path = find_cost_curve(drafter.cost)
    except AbsentError as error:
        raise NotHereError(str(error)) from None
    except (ValueError, OSError) as error:
        raise SweepError(f"drafter {drafter.name}: {' '.join(str(error).split())}") from None
    try:
        curve = read_cost_curve(path)
    except (ValueError, OSError) as error:
        raise SweepError(f"drafter {drafter.name}: {' '.join(str(error).split())}") from None
    absent = target.digest.startswith(ABSENT)
    weights = ("target", curve.target, target.name) if absent else ("weights", curve.target_digest, target.digest)
    traits = (weights, ("dtype", curve.dtype, target.dtype), ("cache", curve.cache, target.cache))
    other = [f"{name} {measured[:12]}, here {asked[:12]}" for name, measured, asked in traits if measured != asked]
    if other and absent:
        raise NotHereError(f"{drafter.cost} was read and belongs to another target: {'; '.join(other)}")
    return Cost(
        path=str(path.absolute()),
        digest=curve.digest,
        block_length=curve.block_length,
        budget_max=curve.budget_max,
        drafter=curve.drafter,
        drafter_digest=curve.drafter_digest,
        fault=f"its cost curve was measured on another target ({'; '.join(other)})" if other else "",
    )


def costs_of(drafter: DrafterSpec, targets: Sequence[TargetSpec], way_out: str) -> dict[tuple[str, str], Cost]:
    """The cost curve that a drafter names, for each target; empty where it names none.

    Raises what `cost_of` does, and SweepError, with the `way_out`, when the curve is for none of the targets.
    """
    found = {(target.name, drafter.name): cost_of(target, drafter) for target in targets}
    costs = {key: cost for key, cost in found.items() if cost is not None}
    check_costs(drafter, costs, way_out)
    return costs


def check_costs(drafter: DrafterSpec, costs: dict[tuple[str, str], Cost], way_out: str) -> None:
    """Raise SweepError when a drafter's curve is for none of the targets; `way_out` says what to do."""
    if costs and all(cost.fault for cost in costs.values()):
        (target, _), cost = next(iter(costs.items()))
        raise SweepError(f"drafter {drafter.name} for {target}: {cost.fault}: {way_out}")
