"""A cell: one point of a sweep, and its identity.

`cell_id` is a sha256 of the canonical JSON of everything that can change a generation, and of nothing else: labels,
paths, hosts, attempts, prompt counts and timings are left out. Equal work therefore has one id in every sweep, and a
larger prompt count extends a cell instead of starting a new one.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec, TaskSpec

ID_VERSION = 3
TARGET_IDENTITY = ("digest", "settings_digest", "dtype", "family", "cache")
DRAFTER_IDENTITY = ("kind", "budget", "gamma", "hedge", "merge_states", "verify_margin", "digest", "cost_digest")
VERIFICATION_IDENTITY = ("acceptance", "max_commit", "cross_block", "refresh")
NO_DRAFTER = DrafterSpec(name="none", kind="none", budget=0, gamma=0.0, hedge=0.0, merge_states=False)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and no NaN: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest_of(value: Any) -> str:
    """sha256 (hex) of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def decode_identity(decode: DecodeSpec) -> dict[str, Any]:
    """A decoding rule as plain JSON values. The standard rule goes without a name, as it was the only one once: cells
    and recorded trajectories of that time stay what they are.
    """
    ruleless = ("commit", "tau") if decode.commit == "standard" else ()
    return {name: getattr(decode, name) for name in DecodeSpec.__slots__ if name not in ruleless}


def drafter_identity(drafter: DrafterSpec) -> dict[str, Any]:
    """A drafter as plain JSON values. What is verified otherwise than by `exact` in the active block is named, and
    nothing else: cells of before there was any choice stay what they are.
    """
    chosen = (name for name in VERIFICATION_IDENTITY if getattr(drafter, name) != getattr(NO_DRAFTER, name))
    return {name: getattr(drafter, name) for name in (*DRAFTER_IDENTITY, *chosen)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One target, task, decoding rule, drafter and seed."""

    target: TargetSpec
    task: TaskSpec
    decode: DecodeSpec
    drafter: DrafterSpec
    seed: int = 0

    def identity(self) -> dict[str, Any]:
        """Everything that can change a generation, as plain JSON values."""
        return {
            "version": ID_VERSION,
            "target": {name: getattr(self.target, name) for name in TARGET_IDENTITY},
            "task": {"kind": self.task.kind, "split": self.task.split, "digest": self.task.digest},
            "decode": decode_identity(self.decode),
            "drafter": drafter_identity(self.drafter),
            "seed": self.seed,
        }

    @property
    def cell_id(self) -> str:
        """The first 20 hex digits of the sha256 of the identity."""
        return digest_of(self.identity())[:20]

    def baseline(self) -> "Cell":
        """The draft-free cell of the same target, task, rule (tau too) and seed: the only place where a denominator is
        chosen.
        """
        return replace(self, drafter=NO_DRAFTER)

    @property
    def is_baseline(self) -> bool:
        """Whether this cell is its own denominator."""
        return self.drafter.kind == "none"

    @property
    def draws_anew(self) -> bool:
        """Whether every forward draws noise of its own, so that outputs differ by chance."""
        return self.decode.temperature > 0 and self.decode.noise == "independent"

    def timed_beside(self) -> "Cell":
        """The cell that a timing of this one alternates with: its draft-free cell; for a draft-free cell that of the
        standard rule, whose throughput is the unit of all commit rules.
        """
        if not self.is_baseline:
            return self.baseline()
        return replace(self, decode=replace(self.decode, commit="standard"))

    def exactly(self) -> "Cell":
        """The cell that differs in its rule of acceptance alone, which is `exact`."""
        return replace(self, drafter=replace(self.drafter, acceptance="exact", max_commit=False))

    def uncached(self) -> "Cell":
        """The draft-free cell of the same target without a cache: what an approximate cache is measured against.

        It is no denominator and nothing is claimed by it.
        """
        return replace(self, target=replace(self.target, cache="none", exact_cache=True), drafter=NO_DRAFTER)

    @property
    def is_comparable_uncached(self) -> bool:
        """Whether outputs say how much an approximate cache changes. Independent noise changes them anyway."""
        return not (self.target.exact_cache or self.draws_anew)

    @property
    def is_native(self) -> bool | None:
        """Whether the drafter's artifact was made on these weights, in whatever dtype; None: it has none, or no origin.

        One that was made on several targets is native to each.
        """
        origins = self.drafter.origins
        return any(origin.digest == self.target.digest for origin in origins) if origins else None
