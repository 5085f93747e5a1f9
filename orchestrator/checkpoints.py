"""Where a target's checkpoint lies, and how much of it is here: directories and the local hub cache, never the network.

A snapshot in the cache may be a part of a checkpoint (a download that was stopped, or a config alone), which would show
only when the last shard is looked for; so what `spot list` and `spot doctor` say is read from the files themselves.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrator.absent import NotHereError
from sweeps.paths import cut, expanded
from sweeps.source import SweepError
from sweeps.spec import TargetSpec
from sweeps.tables import nearest
from workers import catalog
from workers.targets.files import read_json, weight_files

Presence = Literal["yes", "partly", "no"]
TOKENIZERS = ("tokenizer.json", "vocab.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """How much of a checkpoint is here, in which folder (None: nothing), and what is lacking."""

    here: Presence
    folder: Path | None = None
    lacks: str = ""


def present(target: TargetSpec) -> Present:
    """How much of a target's checkpoint is here, by the names of its files; nothing is read but small JSON."""
    try:
        folder = checkpoint_folder(target)
    except SweepError as error:
        return Present(here="no", lacks=str(error))
    try:
        read_json(folder / "config.json")
        weight_files(folder)
    except (ValueError, OSError) as error:
        return Present(here="partly", folder=folder, lacks=str(error))
    if not any((folder / name).is_file() for name in TOKENIZERS):
        return Present(here="partly", folder=folder, lacks=f"{folder}: no {' and no '.join(TOKENIZERS)}")
    return Present(here="yes", folder=folder)


def checkpoint_folder(target: TargetSpec) -> Path:
    """The directory of a target's checkpoint: its path, or the snapshot of its hub id in the local cache."""
    folder = path_of(target)
    if folder.is_dir():
        return folder.absolute()
    near = nearest(target.path.rstrip("/"), catalog.TARGETS) if target.path.endswith("/") else ""
    if target.path.endswith("/") or target.path.startswith((".", "/", "~")) or target.path.count("/") != 1:
        raise SweepError(
            f"target {target.name}: no checkpoint in {folder.absolute()} (nor is that a hub id owner/name){near}"
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(target.path, revision=target.revision or None, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, OSError, ValueError):
        raise NotHereError(
            f"target {target.name}: {target.path} is no directory and not in the local hub cache: "
            f"fetch it first ({fetching(target)})"
        ) from None


def fetching(target: TargetSpec) -> str:
    """The command that fetches a hub id's files, or what is lacking of them."""
    return f"hf download {target.path}" + (f" --revision {target.revision}" if target.revision else "")


def path_of(target: TargetSpec) -> Path:
    """Where a target's checkpoint lies, if its path is no hub id. Raises ValueError for what no path can be."""
    return expanded(target.path, f"target {cut(target.name)}: path")
