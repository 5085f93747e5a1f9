"""What multiplying a sweep out must be told of the world: what is on disk for each target and drafter.

`sweeps` reads no checkpoint itself: the orchestrator looks these up, so that `expand` stays a pure function.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sweeps.made_on import MadeOn
from sweeps.spec import CommitRule
from sweeps.tables import DrafterKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """The order model, graph or the like that a drafter uses with a target (block length None: not made yet).

    `budget_max` is the largest budget it was made for (None: any); `made_on` names the targets that it was made on
    where this one is none of them (a transfer, which people are told of); `origins` are all of them. `commit` is the
    commit rule it was made for, `tau` that rule's threshold (None: the standard rule has none, or it is not made yet).
    `hidden` is the width of the vectors it reads of a target (None: it reads none).
    """

    path: str
    digest: str
    block_length: int | None
    budget_max: int | None = None
    made_on: str = ""
    commit: CommitRule | None = None
    tau: float | None = None
    hidden: int | None = None
    origins: tuple[MadeOn, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost curve that a drafter names. `fault` says why it is none of this target's; empty: it may be used.

    `budget_max` is the largest budget that it knows the cost of; it and the block length are None until it is made.
    `drafter` (and the digest of its artifact) is the one that was timed ("": none, its time counts as nothing).
    """

    path: str
    digest: str
    block_length: int | None = None
    budget_max: int | None = None
    fault: str = ""
    drafter: str = ""
    drafter_digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What multiplying needs beside the spec; `ways` say how a (target, drafter) gets the artifact it lacks, `fits` how
    it gets one that reads vectors of its width, `remakes` one for another tau (None: for the standard rule).

    `hidden` is how wide the vectors of a target are, where that is known.
    """

    kinds: Mapping[str, DrafterKind]
    max_positions: Mapping[str, int]
    artifacts: Mapping[tuple[str, str], Artifact]
    costs: Mapping[tuple[str, str], Cost] = field(default_factory=dict)
    ways: Mapping[tuple[str, str], str] = field(default_factory=dict)
    fits: Mapping[tuple[str, str], str] = field(default_factory=dict)
    remakes: Mapping[tuple[str, str, float | None], str] = field(default_factory=dict)
    hidden: Mapping[str, int] = field(default_factory=dict)
