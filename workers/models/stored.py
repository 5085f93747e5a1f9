"""A small model on disk: a directory with `config.json` and `model.safetensors` (and a card: `README.md`, `card.json`).

What is common to all of them, without torch: planning reads these facts. The digest covers both the weights and the
settings that decide what they compute. Never a pickle.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from sweeps.cell import canonical_json
from sweeps.checks import check
from sweeps.made_on import MadeOn
from sweeps.spec import MAX_BLOCK
from workers.models.order_shapes import TOP_K, EncoderShape
from workers.models.plain import parsed, plain
from workers.models.sealed import read_versioned
from workers.targets.stored import check_weights, stored_tensors

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
CARD_FILE = "card.json"
MAX_LAYERS, MAX_WIDTH = 64, 16_384  # more is a mistake, and would take the memory before anything says so
LEARNT = ("calibrated on", "trained on")  # roles of a card's sources; made on those of the first that there is


class ModelConfig(EncoderShape, Protocol):
    """What `config.json` holds: a dataclass with format, version and digest."""

    @property
    def digest(self) -> str:
        """Of settings and weights."""

    @property
    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors of the weight file."""


C = TypeVar("C", bound=ModelConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[C]):
    """A kind of model: what people call it, its configuration, the format and version that its files say."""

    noun: str
    config: type[C]
    format: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored(Generic[C]):
    """A checkpoint that is whole: its digest, recomputed from its files, is the one in its configuration, and its
    weights have the shapes that this asks for. `made_on`: the targets its card names (none without a card).
    """

    path: Path
    config: C
    parameters_bytes: int
    made_on: tuple[MadeOn, ...]


def check_encoder(shape: EncoderShape, top_k: int) -> None:
    """Raise ValueError naming the size that no encoder can have."""
    check(1 <= shape.block_length <= MAX_BLOCK, "block_length", shape.block_length, f"1 to {MAX_BLOCK}")
    check(top_k == TOP_K, "top_k", top_k, f"{TOP_K}, which the features are made of")
    check(1 <= shape.layers <= MAX_LAYERS, "layers", shape.layers, f"1 to {MAX_LAYERS}")
    for name in ("width", "feedforward"):
        check(1 <= getattr(shape, name) <= MAX_WIDTH, name, getattr(shape, name), f"1 to {MAX_WIDTH}")
    ok = 1 <= shape.heads <= shape.width and shape.width % shape.heads == 0
    check(ok, "heads", shape.heads, f"a divisor of the width, {shape.width}")


def read_settings(path: Path, kind: Kind[C]) -> C:
    """The configuration in a checkpoint directory; ValueError when it is absent, foreign or of another version."""
    what = f"{kind.noun} {path}"
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        if not (path / name).is_file():
            raise ValueError(f"{what}: {name} is missing")
    return read_versioned(
        path / CONFIG_FILE, kind.config, what=what, format=kind.format, version=kind.version, again="train it again"
    )


def inspect_stored(path: Path, kind: Kind[C]) -> Stored[C]:
    """The checkpoint in a directory. Raises ValueError when a file is missing, foreign or altered."""
    config = read_settings(path, kind)
    weights = (path / WEIGHTS_FILE).read_bytes()
    digest = digest_of(config, weights)
    if digest != config.digest:
        raise ValueError(f"{kind.noun} {path}: digest is {digest[:12]}, its {CONFIG_FILE} says {config.digest[:12]!r}")
    try:
        check_weights(stored_tensors(path), config.weight_shapes)
    except ValueError as error:
        raise ValueError(f"{kind.noun} {path}: weights do not fit {CONFIG_FILE}: {error}") from None
    return Stored(path=path, config=config, parameters_bytes=len(weights), made_on=learnt_from(path, digest))


def digest_of(config: ModelConfig, weights: bytes) -> str:
    """sha256 (hex) over the settings (without the digest itself) and the weight file's bytes."""
    settings = {name: value for name, value in plain(config).items() if name != "digest"}
    return hashlib.sha256(canonical_json(settings).encode() + b"\0" + weights).hexdigest()


def learnt_from(path: Path, digest: str) -> tuple[MadeOn, ...]:
    """The targets that a checkpoint's card says it was made on; none without a card that can be read and is its own.

    One that was calibrated reads the targets that it was calibrated on, and those of its base no more.

    A card names the digest of the weights and settings that it tells of: one of another model says nothing of these.
    """
    try:
        raw = parsed((path / CARD_FILE).read_bytes())
        if raw["digest"] != digest:
            return ()
        sources = [one for one in raw["sources"] if isinstance(one, dict)]
        by_role = ([one for one in sources if one["role"] == role] for role in LEARNT)
        native = next((some for some in by_role if some), [raw])
        made = [MadeOn(target=str(one["target"]), digest=str(one["target_digest"])) for one in native]
    except (ValueError, OSError, KeyError, TypeError):
        return ()
    return tuple(dict.fromkeys(made))
