"""What is known about a set model without loading it: its directory, digest, block length and what it was made on.

Planning reads these facts, so this module imports no torch (see `stored` for the files).
"""

from dataclasses import dataclass
from pathlib import Path

from sweeps.checks import check
from sweeps.made_on import MadeOn
from sweeps.spec import CommitRule
from workers.models.named import find_artifact
from workers.models.order_shapes import STALE_FEATURES, encoder_shapes, linear
from workers.models.stored import CONFIG_FILE, MAX_WIDTH, Kind, check_encoder, inspect_stored, read_settings

FORMAT = "spot-set-model"
VERSION = 1
NOUN = "set model"
CANDIDATES = 16  # of the stale distribution's best tokens, those that a position may take
SET_FEATURES = STALE_FEATURES + 1  # and tau
TARGET_WEIGHTS = ("hidden.weight", "hidden.bias", "embedding.weight")  # what reads one target's own vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class SetConfig:
    """Shape of a set model; `hidden` is the target's width, `candidate_width` that of projected token embeddings.

    The defaults have 5.1 M parameters for a target of width 4096 (the size that is published, arXiv 2610.22543).
    """

    block_length: int
    hidden: int
    top_k: int = 32
    candidates: int = CANDIDATES
    layers: int = 4
    width: int = 256
    heads: int = 8
    feedforward: int = 1024
    candidate_width: int = 176
    format: str = FORMAT
    version: int = VERSION
    digest: str = ""

    def __post_init__(self) -> None:
        check_encoder(self, self.top_k)
        check(self.candidates == CANDIDATES, "candidates", self.candidates, f"{CANDIDATES}")
        for name in ("hidden", "candidate_width"):
            check(1 <= getattr(self, name) <= MAX_WIDTH, name, getattr(self, name), f"1 to {MAX_WIDTH}")

    @classmethod
    def sized(cls, *, block_length: int, hidden: int, width: int, layers: int) -> "SetConfig":
        """A model of another width: feed-forward 4 times as wide, projected embeddings 11/16."""
        check(width >= 32 and width % 32 == 0, "width", width, "a multiple of 32")
        return cls(
            block_length=block_length,
            hidden=hidden,
            layers=layers,
            width=width,
            feedforward=4 * width,
            candidate_width=11 * width // 16,
        )

    @property
    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors of the weight file."""
        return {
            **encoder_shapes(self, SET_FEATURES),
            **linear("hidden", self.width, self.hidden),
            "embedding.weight": (self.candidate_width, self.hidden),
            **linear("mix", self.width, self.candidate_width),
            **linear("include", 1, self.width),
            **linear("query", self.candidate_width, self.width),
            "rank": (self.candidates,),
            "trust": (1,),
        }


KIND = Kind(noun=NOUN, config=SetConfig, format=FORMAT, version=VERSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetModelFacts:
    """A checkpoint that is whole (see `Stored`). `hidden`: the width of the targets it can read. It drafts for the
    commit rule `threshold`, at any tau.
    """

    path: Path
    digest: str
    block_length: int
    hidden: int
    width: int
    layers: int
    parameters_bytes: int
    made_on: tuple[MadeOn, ...] = ()
    commit: CommitRule = "threshold"


def find_set_model(checkpoint: str) -> Path:
    """The directory that `checkpoint` (a directory, or a name below the zoo's drafters) stands for.

    Raises ValueError when it is neither.
    """
    return find_artifact(checkpoint, noun=NOUN, file=CONFIG_FILE)


def read_config(path: Path) -> SetConfig:
    """The configuration in a checkpoint directory; ValueError when it is absent, foreign or of another version."""
    return read_settings(path, KIND)


def inspect_named(checkpoint: str) -> SetModelFacts:
    """Facts about the set model that `checkpoint` names; ValueError when it is missing, foreign or altered."""
    return inspect_set_model(find_set_model(checkpoint))


def inspect_set_model(path: str | Path) -> SetModelFacts:
    """Facts about the checkpoint in the directory `path`; ValueError when a file is missing, foreign or altered."""
    stored = inspect_stored(Path(path), KIND)
    return SetModelFacts(
        path=stored.path,
        digest=stored.config.digest,
        block_length=stored.config.block_length,
        hidden=stored.config.hidden,
        width=stored.config.width,
        layers=stored.config.layers,
        parameters_bytes=stored.parameters_bytes,
        made_on=stored.made_on,
    )
