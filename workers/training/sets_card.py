"""The card of a set model for programs (card.json): from which trajectories it was made and what it is worth.

Accuracies are those of the stored weights on prompts that were never trained on. No torch here.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from workers.models.stored import CARD_FILE
from workers.training.order_card import Share
from workers.training.sets_recipe import SetRecipe

VERSION = 1
SHOWN_DEPTHS = (1, 2, 3, 4, 6, 8, 10, 12)  # to people, beside those that are warned of; card.json has all
SetRole = Literal["trained on", "calibrated on"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSource:
    """Trajectories of one target, task, temperature and tau; `judged` of the `prompts` were kept from training.

    `calibrated on`: only the layer that reads the target's vectors was fitted to them.
    """

    target: str
    target_digest: str
    task: str
    temperature: float
    tau: float
    prompts: int
    judged: int
    role: SetRole = "trained on"

    @classmethod
    def of(cls, key: tuple[str, str, str, float, float], prompts: Sequence[str], kept: Collection[str]) -> "SetSource":
        """A source with its prompts counted; `kept` are those held out."""
        target, target_digest, task, temperature, tau = key
        return cls(
            target=target,
            target_digest=target_digest,
            task=task,
            temperature=temperature,
            tau=tau,
            prompts=len(prompts),
            judged=sum(prompt in kept for prompt in prompts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reader of the stale distribution is worth at one depth.

    `exact`: its likeliest step, positions and tokens, is the target's; `precision` and `recall` of the positions;
    `tokens`: of the positions that the step fills, those whose token is right.
    """

    exact: Share
    precision: Share
    recall: Share
    tokens: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAccuracy:
    """How often the next step is foreseen behind `depth` - 1 drafted ones; `task` "" and None elsewhere stand for all.

    `stale` reads the stale distribution by the threshold rule itself: of the open positions those above tau, or the
    most confident one, with the stale draws.
    """

    depth: int
    model: Reading
    stale: Reading
    prompts: int
    task: str = ""
    temperature: float | None = None
    tau: float | None = None

    @property
    def group(self) -> tuple[str, float | None, float | None]:
        """What is counted together, whatever the depth."""
        return self.task, self.temperature, self.tau


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCard:
    """Everything on the card. `seconds` is the wall time of training; `held_out_loss` is in nats a step.

    With a recipe that calibrates, `base` is the digest of the model it was made from, and `sources` also names what
    that one was trained on.
    """

    digest: str
    block_length: int
    hidden: int
    width: int
    layers: int
    parameters: int
    fitted: int
    recipe: SetRecipe
    seconds: float
    threads: int
    torch_version: str
    data_digest: str
    traces: int
    steps_recorded: int
    prompts: int
    held_out_prompts: int
    sources: tuple[SetSource, ...]
    held_out_loss: float
    accuracy: tuple[SetAccuracy, ...]
    judged_limit: int
    base: str = ""
    version: int = VERSION

    @property
    def test_digest(self) -> str:
        """Of trajectories that are only judged: there are none."""
        return ""

    @property
    def targets(self) -> dict[str, str]:
        """Name and weight digest of every target that it was made on: with a `base`, calibrated on."""
        role = "calibrated on" if self.base else "trained on"
        return {source.target: source.target_digest for source in self.sources if source.role == role}

    def totals(self) -> dict[int, SetAccuracy]:
        """The accuracies over all tasks, temperatures and taus, by depth."""
        return {row.depth: row for row in self.accuracy if row.group == ("", None, None)}

    @property
    def worse(self) -> tuple[int, ...]:
        """The depths at which reading the stale distribution would have been better."""
        return tuple(
            depth
            for depth, row in self.totals().items()
            if row.model.exact.value is not None and row.model.exact.hits < row.stale.exact.hits
        )

    @property
    def shown_depths(self) -> tuple[int, ...]:
        """The depths of tables for people: a choice, and whatever a warning names."""
        return tuple(sorted({*self.worse, *(depth for depth in SHOWN_DEPTHS if depth <= self.recipe.max_depth)}))

    def warnings(self) -> tuple[str, ...]:
        """A line that names the depths at which reading the stale distribution would have been better."""
        worse = self.worse
        return (f"worse than the stale distribution at depth {', '.join(map(str, worse))}",) if worse else ()


def read_card(folder: Path) -> SetCard:
    """The card in a checkpoint folder. Raises ValueError naming the file."""
    path = folder / CARD_FILE
    try:
        raw = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        if raw.get("version") != VERSION:
            raise ValueError(f"version is {raw.get('version')!r}: allowed is {VERSION}")
        return msgspec.convert(raw, SetCard, strict=True)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(f"{path} is no card of a set model ({error})") from None
