"""What is known about a shipped order model without loading it: its directory, digest and block length.

Planning reads these facts, so this module imports no torch. A checkpoint is a directory with `config.json` and
`model.safetensors` (and a card: `README.md`, `card.json`). Its digest covers both the weights and the settings that
decide what they compute.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from sweeps.cell import canonical_json
from workers.models.named import find_artifact
from workers.models.sealed import read_versioned

FORMAT = "spot-order-model"
VERSION = 1
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderModelFacts:
    """A checkpoint that is whole: `digest` is recomputed from its files and equals the one in its configuration."""

    path: Path
    digest: str
    block_length: int
    parameters_bytes: int


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
    settings = {name: value for name, value in msgspec.to_builtins(config).items() if name != "digest"}
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
    return OrderModelFacts(path=path, digest=digest, block_length=config.block_length, parameters_bytes=len(weights))
