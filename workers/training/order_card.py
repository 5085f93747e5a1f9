"""The card of an order model for programs (card.json): from which trajectories it was made and what it is worth.

Accuracies are those of the stored weights on prompts that were never trained on, for two roles: held-out prompts of
what was trained on, and what was out of domain (recorded to be judged only). No torch here: `spot sync` reads cards.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from sweeps.statistics import Counts, Estimate, clustered_share, wilson
from sweeps.store import atomic_write
from workers.training.order_recipe import OrderRecipe

CARD_FILE = "card.json"
VERSION = 3
CLUSTERED = 3  # the first version whose intervals take the prompt as their unit
Role = Literal["trained on", "out of domain"]
ROLES: tuple[Role, ...] = ("trained on", "out of domain")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """`hits` of `n` with a 95 % interval (None where there is none): over prompts, or Wilson's on an older card."""

    hits: int
    n: int
    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, hits: int, n: int) -> "Share":
        """The share of `hits` in `n` independent trials."""
        return cls._from(hits, n, wilson(hits, n))

    @classmethod
    def clustered(cls, hits_P: Counts, trials_P: Counts) -> "Share":
        """The share of hits in trials, both counted by prompt: those of one prompt are not independent."""
        return cls._from(int(hits_P.sum()), int(trials_P.sum()), clustered_share(hits_P, trials_P))

    @classmethod
    def _from(cls, hits: int, n: int, estimate: Estimate) -> "Share":
        return cls(hits=hits, n=n, value=estimate.value, low=estimate.low, high=estimate.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Trajectories of one target, task and temperature, and whether the model learnt from them.

    `prompts` were recorded, `judged` of them were kept from training (None: an older card does not say).
    """

    role: Role
    target: str
    target_digest: str
    task: str
    temperature: float
    prompts: int | None = None
    judged: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthAccuracy:
    """Next-commit accuracy at one draft depth; `target` "", `task` "" and `temperature` None stand for all.

    Its commits are those of `prompts` prompts (None: an older card does not say).
    """

    depth: int
    order_model: Share
    stale_confidence: Share
    role: Role = "trained on"
    target: str = ""
    task: str = ""
    temperature: float | None = None
    prompts: int | None = None

    @property
    def worse(self) -> bool:
        """Whether the stale confidence alone was right more often."""
        ours, rival = self.order_model.value, self.stale_confidence.value
        return ours is not None and rival is not None and ours < rival

    @property
    def group(self) -> tuple[Role, str, str, float | None]:
        """What is counted together, whatever the depth."""
        return self.role, self.target, self.task, self.temperature


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCard:
    """Everything on the card. `seconds` is the wall time of training; losses are nats (None: nothing to judge).

    `data_digest` covers the trajectories of the sources trained on, which with recipe, threads, `torch_version` and
    machine decide the weights; `test_digest` those that were only judged. Of each source at most `judged_limit`
    examples were judged (None: all).
    """

    digest: str
    block_length: int
    parameters: int
    recipe: OrderRecipe
    seconds: float
    threads: int
    data_digest: str
    traces: int
    steps_recorded: int
    prompts: int
    held_out_prompts: int
    sources: tuple[Source, ...]
    held_out_loss: float | None
    accuracy: tuple[DepthAccuracy, ...]
    test_traces: int = 0
    test_digest: str = ""
    out_of_domain_loss: float | None = None
    torch_version: str = ""
    judged_limit: int | None = None
    version: int = VERSION

    @property
    def clustered(self) -> bool:
        """Whether its intervals take the prompt as their unit."""
        return self.version >= CLUSTERED

    @property
    def targets(self) -> dict[str, str]:
        """Name and weight digest of every target that was trained on."""
        return {source.target: source.target_digest for source in self.sources if source.role == "trained on"}

    def totals(self, role: Role = "trained on") -> dict[int, DepthAccuracy]:
        """The accuracies over all targets, tasks and temperatures of a role, by depth."""
        return {row.depth: row for row in self.accuracy if row.group == (role, "", "", None)}

    def warnings(self) -> tuple[str, ...]:
        """A line for each role in which reading the stale confidence would have been better, naming the depths."""
        return tuple(
            f"worse than the stale confidence at depth {', '.join(map(str, depths))} ({role})"
            for role in ROLES
            if (depths := [depth for depth, row in self.totals(role).items() if row.worse])
        )


def write_card(folder: Path, card: object) -> None:
    """Write the card of a model, of whatever kind, into a checkpoint folder (card.json)."""
    atomic_write(folder / CARD_FILE, msgspec.json.format(msgspec.json.encode(card), indent=2) + b"\n")


def read_card(folder: Path) -> OrderCard:
    """The card in a checkpoint folder, also one of an earlier version. Raises ValueError naming the file."""
    path = folder / CARD_FILE
    try:
        raw = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        if raw.get("version", 1) not in range(1, VERSION + 1):
            raise ValueError(f"version is {raw['version']!r}: allowed is 1 to {VERSION}")
        return msgspec.convert(raw if "version" in raw else of_one_target(raw), OrderCard, strict=True)
    except (msgspec.MsgspecError, KeyError, ValueError) as error:
        raise ValueError(f"{path} is no card of an order model ({error})") from None


def of_one_target(raw: dict[str, Any]) -> dict[str, Any]:
    """A card of the first version, which knew one target and no other domain."""
    target = {"role": "trained on", "target": raw.pop("target"), "target_digest": raw.pop("target_digest")}
    sources = [{**target, "task": task, "temperature": temperature} for task, temperature in raw["sources"]]
    return {**raw, "sources": sources, "version": 1}
