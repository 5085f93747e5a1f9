"""How long an item may take before it counts as hung: learnt from what its like took, within fixed bounds."""

from dataclasses import dataclass, field
from statistics import median

from sweeps.records import ItemKind, WorkItem

REMEMBERED = 99  # enough for a median, and cheap


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """When to give up. Seconds and counts.

    An item may be tried `attempts` times when workers die, hang or fail for reasons of their own. It hangs after
    `slack` times the median of its group (from `floor_seconds` to `ceiling_seconds`; the latter where nothing is known
    or a model must be loaded first). A worker hangs when it is not ready after `start_seconds`. The run is hopeless
    when workers are lost before they get an item, `start_losses` in a row for each worker there is, or when the first
    `hopeless` items were all given up.
    """

    attempts: int = 3
    slack: float = 10.0
    floor_seconds: float = 60.0
    ceiling_seconds: float = 3600.0
    start_seconds: float = 600.0
    start_losses: int = 3
    hopeless: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What decides where and how long an item runs: the target it needs, what is comparable, who comes first."""

    target: str
    group: str = ""
    baseline: bool = False


@dataclass(slots=True)
class Deadlines:
    """Seconds a prompt took (one repeat of it), by group: same target, lengths, drafter and kind of item."""

    policy: Policy
    seconds: dict[tuple[str, str, ItemKind], list[float]] = field(default_factory=dict)

    def allowance(self, item: WorkItem, place: Placement, *, loaded: bool) -> float:
        """Seconds an item may take on a worker that has its target loaded, or not."""
        known = self.seconds.get((place.target, place.group, item.kind))
        if known is None or not loaded:
            return self.policy.ceiling_seconds
        expected = median(known) * (item.last - item.first) * item.repeats
        return min(max(self.policy.slack * expected, self.policy.floor_seconds), self.policy.ceiling_seconds)

    def learn(self, item: WorkItem, place: Placement, seconds: float) -> None:
        """An item took so long, loading aside."""
        known = self.seconds.setdefault((place.target, place.group, item.kind), [])
        known.append(max(seconds, 0.0) / ((item.last - item.first) * item.repeats))
        del known[:-REMEMBERED]
