"""What is known about a shipped order model without loading it: its directory, digest and block length.

Planning reads these facts, so this module imports no torch. A checkpoint is a directory with `config.json` and
`model.safetensors` (and a card: `README.md`, `card.json`). Its digest covers both the weights and the settings that
decide what they compute.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from sweeps.cell import canonical_json
from sweeps.checks import check
from sweeps.made_on import MadeOn
from sweeps.spec import MAX_BLOCK
from workers.models.named import find_artifact
from workers.models.order_shapes import TOP_K, weight_shapes
from workers.models.plain import parsed, plain
from workers.models.sealed import read_versioned
from workers.targets.stored import check_weights, stored_tensors

FORMAT = "spot-order-model"
VERSION = 1
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
CARD_FILE = "card.json"
MAX_LAYERS, MAX_WIDTH = 64, 16_384  # more is a mistake, and would take the memory before anything says so


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
        check(1 <= self.block_length <= MAX_BLOCK, "block_length", self.block_length, f"1 to {MAX_BLOCK}")
        check(self.top_k == TOP_K, "top_k", self.top_k, f"{TOP_K}, which the features are made of")
        check(1 <= self.layers <= MAX_LAYERS, "layers", self.layers, f"1 to {MAX_LAYERS}")
        for name in ("width", "feedforward"):
            check(1 <= getattr(self, name) <= MAX_WIDTH, name, getattr(self, name), f"1 to {MAX_WIDTH}")
        ok = 1 <= self.heads <= self.width and self.width % self.heads == 0
        check(ok, "heads", self.heads, f"a divisor of the width, {self.width}")

    @property
    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors of the weight file."""
        return weight_shapes(
            block_length=self.block_length,
            layers=self.layers,
            width=self.width,
            heads=self.heads,
            feedforward=self.feedforward,
        )


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
    return find_artifact(checkpoint, noun="order model", file=CONFIG_FILE)


def read_config(path: Path) -> OrderConfig:
    """The configuration in a checkpoint directory; ValueError when it is absent, foreign or of another version."""
    file = path / CONFIG_FILE
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        if not (path / name).is_file():
            raise ValueError(f"order model {path}: {name} is missing")
    what = f"order model {path}"
    return read_versioned(file, OrderConfig, what=what, format=FORMAT, version=VERSION, again="train it again")


def digest_of(config: OrderConfig, weights: bytes) -> str:
    """sha256 (hex) over the settings (without the digest itself) and the weight file's bytes."""
    settings = {name: value for name, value in plain(config).items() if name != "digest"}
    return hashlib.sha256(canonical_json(settings).encode() + b"\0" + weights).hexdigest()


def inspect_named(checkpoint: str) -> OrderModelFacts:
    """Facts about the order model that `checkpoint` names; ValueError when it is missing, foreign or altered."""
    return inspect_order_model(find_order_model(checkpoint))


def inspect_order_model(path: str | Path) -> OrderModelFacts:
    """Facts about the checkpoint in the directory `path`; ValueError when a file is missing, foreign or altered."""
    path = Path(path)
    config = read_config(path)
    weights = (path / WEIGHTS_FILE).read_bytes()
    digest = digest_of(config, weights)
    if digest != config.digest:
        raise ValueError(f"order model {path}: digest is {digest[:12]}, its {CONFIG_FILE} says {config.digest[:12]!r}")
    try:
        check_weights(stored_tensors(path), config.weight_shapes)
    except ValueError as error:
        raise ValueError(f"order model {path}: weights do not fit {CONFIG_FILE}: {error}") from None
    return OrderModelFacts(
        path=path,
        digest=digest,
        block_length=config.block_length,
        parameters_bytes=len(weights),
        made_on=trained_on(path, digest),
    )


def trained_on(path: Path, digest: str) -> tuple[MadeOn, ...]:
    """The targets that a checkpoint's card says it was trained on; none without a card that can be read and is its own.

    A card names the digest of the weights and settings that it tells of: one of another model says nothing of these.
    """
    try:
        raw = parsed((path / CARD_FILE).read_bytes())
        if raw["digest"] != digest:
            return ()
        learnt = [one for one in raw["sources"] if isinstance(one, dict) and one["role"] == "trained on"]
        made = [MadeOn(target=str(one["target"]), digest=str(one["target_digest"])) for one in learnt or [raw]]
    except (ValueError, OSError, KeyError, TypeError):
        return ()
    return tuple(dict.fromkeys(made))
