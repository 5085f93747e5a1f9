"""Artifacts of something else that a sweep uses on purpose or by mistake: allowed, and said in the plan.

An order model or draft graph that was made on another target is a study of transfer; a cost curve that was measured
with another drafter foretells other times; a draft graph of another tau knows other steps. None changes an output, all
change what a number means.
"""

from collections.abc import Iterator

from orchestrator.absent import ABSENT
from sweeps.expand import Expansion
from sweeps.facts import Facts


def transfer_notes(expansion: Expansion, facts: Facts) -> Iterator[str]:
    """A line for each target and drafter of the cells whose artifact or cost curve was made with something else."""
    kinds, taus = dict[tuple[str, str], str](), dict[tuple[str, str], dict[float | None, None]]()
    for cell, label in ((labelled.cell, label) for labelled in expansion.cells for label in labelled.labels):
        kinds[cell.target.name, label] = cell.drafter.kind
        taus.setdefault((cell.target.name, label), {})[cell.decode.threshold] = None
    for (target, drafter), kind in kinds.items():
        of, made = f"drafter {drafter} on {target}", facts.kinds[kind].artifact
        artifact, cost = facts.artifacts.get((target, drafter)), facts.costs.get((target, drafter))
        if artifact is not None and artifact.made_on and made is not None:
            yield f"{of}: its {made.noun} was made on {artifact.made_on}"
        if artifact is not None and artifact.tau is not None and made is not None:
            other = ", ".join(str(tau) for tau in taus[target, drafter] if tau not in (None, artifact.tau))
            if other:
                yield f"{of}: its {made.noun} was made at tau {artifact.tau}, and is used at {other}"
        if cost is None or not cost.drafter:
            continue
        if cost.drafter != kind:
            yield f"{of}: its cost curve was measured with drafter {cost.drafter}"
        elif artifact is None or made is None or artifact.digest.startswith(ABSENT):
            continue
        elif artifact.digest != cost.drafter_digest:
            digests = f"{cost.drafter_digest[:12]}, here {artifact.digest[:12]}"
            yield f"{of}: its cost curve was measured with another {made.noun} ({digests})"
