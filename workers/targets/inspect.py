"""Facts about a checkpoint that planning needs, read without importing torch.

The same checks as loading makes, as far as headers and JSON reach: a wrong config, a missing shard or an id beyond the
embedding shows in `spot plan`, before any worker starts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from workers.catalog import FAMILIES, resolve
from workers.targets.config import CheckpointConfig
from workers.targets.files import read_json, resolve_folder, weight_digest
from workers.targets.shape import EMBEDDING
from workers.targets.stored import StoredTensor, check_weights, stored_tensors
from workers.targets.template import chat_template


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFacts:
    """What a checkpoint is. `chat` is `template`, or `raw` when it has no chat template and prompts go in as they
    are. `hidden` is the width of its vectors. `notes` say what a user should know of it before decoding with it.
    """

    architecture: str
    weight_digest: str
    vocab_size: int
    hidden: int
    mask_id: int
    stop_ids: tuple[int, ...]
    max_positions: int
    parameters: int
    chat: str
    notes: tuple[str, ...] = ()


def inspect_checkpoint(path_or_hub_id: str | Path, *, revision: str | None = None) -> CheckpointFacts:
    """Check a checkpoint (directory, or hub id and revision) and say what it is. Raises ValueError naming file and
    field.
    """
    return facts_of(resolve_folder(str(path_or_hub_id), revision))[0]


def facts_of(folder: Path) -> tuple[CheckpointFacts, CheckpointConfig]:
    """Facts and config of a checkpoint folder, by the reader of its family."""
    architecture, (config, stored) = architecture_of(folder), _checked(folder)
    facts = CheckpointFacts(
        architecture=architecture,
        weight_digest=weight_digest(folder),
        vocab_size=config.shape.vocab_size,
        hidden=config.shape.hidden,
        mask_id=config.tokens.mask_id,
        stop_ids=config.tokens.stop_ids,
        max_positions=config.max_positions,
        parameters=config.shape.parameters,
        chat="template" if chat_template(folder) else "raw",
        notes=tuple(_head_notes(config, stored)),
    )
    return facts, config


def checked_config(folder: Path) -> CheckpointConfig:
    """The config of a checkpoint folder whose weight files hold exactly what it asks for, by their headers."""
    return _checked(folder)[0]


def _checked(folder: Path) -> tuple[CheckpointConfig, dict[str, StoredTensor]]:
    """Config and tensors, which go together."""
    config, stored = config_of(folder), stored_tensors(folder)
    expected = {weight.name: weight.shape for weight in config.weights}
    shape = config.shape
    try:
        check_weights(stored, expected, optional={config.head: (shape.vocab_size, shape.hidden)} if shape.tied else {})
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None
    return config, stored


def _head_notes(config: CheckpointConfig, stored: Mapping[str, StoredTensor]) -> Iterator[str]:
    """Whether a tied checkpoint stores another head than its embedding, which is the one that is used."""
    if not config.shape.tied or config.head not in stored:
        return
    embedding = next(weight.name for weight in config.weights if weight.into == EMBEDDING)
    if not stored[config.head].equals(stored[embedding]):
        yield f"the head is tied but {config.head} differs; the embedding is used"


def config_of(folder: Path) -> CheckpointConfig:
    """The config of a checkpoint folder, by the reader of its family; the weights are not looked at."""
    config: CheckpointConfig = resolve(FAMILIES[architecture_of(folder)].read)(folder)
    return config


def architecture_of(folder: Path) -> str:
    """The architecture a checkpoint's config names. Raises ValueError unless it is one of `FAMILIES`."""
    path = folder / "config.json"
    names = read_json(path).get("architectures")
    if isinstance(names, list) and len(names) == 1 and isinstance(names[0], str) and names[0] in FAMILIES:
        return names[0]
    raise ValueError(f"{path}: architectures is {names!r}; allowed is one of {', '.join(FAMILIES)}")
