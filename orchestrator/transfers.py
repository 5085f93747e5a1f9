"""Artifacts of something else that a sweep uses on purpose or by mistake: allowed, and said in the plan.

An order model or draft graph that was made on another target is a study of transfer; a cost curve that was measured
with another drafter foretells other times; a draft graph of another tau knows other steps. None changes an output, all
change what a number means.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from orchestrator.absent import ABSENT, made_in
from orchestrator.tables import target_of
from sweeps.expand import Expansion
from sweeps.facts import Facts
from sweeps.spec import SweepSpec, TargetSpec
from workers import catalog

MOST_NAMED = 2  # targets of one drafter; more are counted, since the cells list them


def maker_of(spec: SweepSpec, target: TargetSpec, kind: str, named: str) -> TargetSpec:
    """The target that an absent artifact is to be made on, for a drafter that names one and is used on `target`.

    The directories that are proposed for artifacts tell their target; one file elsewhere is made once, on the sweep's
    first target. Without a name each target has its own.
    """
    if not named:
        return target
    table = (target_of(name, entry) for name, entry in catalog.TARGETS.items())
    result, taus = catalog.ARTIFACTS[kind].result, (None, *spec.grid.tau)
    known = (
        other
        for other in (target, *spec.targets, *table)
        if Path(named) in [made_in(kind, other, tau) / result for tau in taus]
    )
    return next(known, spec.targets[0])


def transfer_notes(expansion: Expansion, facts: Facts) -> Iterator[str]:
    """One line on the drafters of the cells whose artifact or cost curve was made with something else, if there are
    any, and on which targets.
    """
    targets: dict[tuple[str, str], list[str]] = defaultdict(list)
    for target, drafter, said in notes_of(expansion, facts):
        targets[drafter, said].append(target)
    each = []
    for (drafter, said), on in targets.items():
        where = ", ".join(on) if len(on) <= MOST_NAMED else f"{len(on)} targets"
        each.append(f"drafter {drafter} on {where}: {said}")
    if each:
        yield "; ".join(each)


def notes_of(expansion: Expansion, facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Target, drafter and what is to be said of the two."""
    kinds, taus = dict[tuple[str, str], str](), dict[tuple[str, str], dict[float | None, None]]()
    for cell, label in ((labelled.cell, label) for labelled in expansion.cells for label in labelled.labels):
        kinds[cell.target.name, label] = cell.drafter.kind
        taus.setdefault((cell.target.name, label), {})[cell.decode.threshold] = None
    for (target, drafter), kind in kinds.items():
        made = facts.kinds[kind].artifact
        artifact, cost = facts.artifacts.get((target, drafter)), facts.costs.get((target, drafter))
        if artifact is not None and artifact.made_on and made is not None:
            yield target, drafter, f"its {made.noun} was made on {artifact.made_on}"
        if artifact is not None and artifact.tau is not None and made is not None:
            other = ", ".join(str(tau) for tau in taus[target, drafter] if tau not in (None, artifact.tau))
            if other:
                yield target, drafter, f"its {made.noun} was made at tau {artifact.tau}, and is used at {other}"
        if cost is None or not cost.drafter:
            continue
        if cost.drafter != kind:
            yield target, drafter, f"its cost curve was measured with drafter {cost.drafter}"
        elif artifact is None or made is None or artifact.digest.startswith(ABSENT):
            continue
        elif artifact.digest != cost.drafter_digest:
            digests = f"{cost.drafter_digest[:12]}, here {artifact.digest[:12]}"
            yield target, drafter, f"its cost curve was measured with another {made.noun} ({digests})"
