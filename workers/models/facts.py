"""What is known about a shipped order model without loading it: its directory, digest and block length.

Planning reads these facts, so this module imports no torch (see `stored` for the files).
"""

from dataclasses import dataclass
from pathlib import Path

from sweeps.made_on import MadeOn
from workers.models.named import find_artifact
from workers.models.order_shapes import weight_shapes
from workers.models.stored import CONFIG_FILE, Kind, check_encoder, inspect_stored, read_settings

FORMAT = "spot-order-model"
VERSION = 1
NOUN = "order model"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderConfig:
    """Shape of an order model. `version` counts changes of features or layers that make older weights meaningless."""

    block_length: int
    top_k: int = 32
    layers: int = 3
    width: int = 128
    heads: int = 8
    feedforward: int = 512
    format: str = FORMAT
    version: int = VERSION
    digest: str = ""

    def __post_init__(self) -> None:
        check_encoder(self, self.top_k)

    @property
    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors of the weight file."""
        return weight_shapes(self)


KIND = Kind(noun=NOUN, config=OrderConfig, format=FORMAT, version=VERSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderModelFacts:
    """A checkpoint that is whole: `digest` is recomputed from its files and equals the one in its configuration, and
    its weights have the shapes that this asks for. `made_on`: the targets its card names (none without a card).
    """

    path: Path
    digest: str
    block_length: int
    parameters_bytes: int
    made_on: tuple[MadeOn, ...] = ()


def find_order_model(checkpoint: str) -> Path:
    """The directory that `checkpoint` (a directory, or a name below the zoo's drafters) stands for.

    Raises ValueError when it is neither.
    """
    return find_artifact(checkpoint, noun=NOUN, file=CONFIG_FILE)


def read_config(path: Path) -> OrderConfig:
    """The configuration in a checkpoint directory; ValueError when it is absent, foreign or of another version."""
    return read_settings(path, KIND)


def inspect_named(checkpoint: str) -> OrderModelFacts:
    """Facts about the order model that `checkpoint` names; ValueError when it is missing, foreign or altered."""
    return inspect_order_model(find_order_model(checkpoint))


def inspect_order_model(path: str | Path) -> OrderModelFacts:
    """Facts about the checkpoint in the directory `path`; ValueError when a file is missing, foreign or altered."""
    stored = inspect_stored(Path(path), KIND)
    return OrderModelFacts(
        path=stored.path,
        digest=stored.config.digest,
        block_length=stored.config.block_length,
        parameters_bytes=stored.parameters_bytes,
        made_on=stored.made_on,
    )
