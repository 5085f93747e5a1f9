"""From what a drafter's `checkpoint` says to the directory it means: a path, or a name below the zoo's drafters."""

from pathlib import Path

import msgspec

from workers.catalog import ZOO

KINDS = {"config.json": "an order model", "graph.json": "a draft graph"}  # by the file that tells them
INSIDE = ("model", "graph")  # where the training commands write them


def find_artifact(checkpoint: str, *, noun: str, file: str) -> Path:
    """The directory that `checkpoint` stands for; the zoo's names are those of directories that hold `file`.

    Raises ValueError, which begins with `noun`, when it is neither a directory nor such a name, or a directory
    of something else that we know.
    """
    zoo = ZOO / "drafters"
    if not checkpoint:
        raise ValueError(f"{noun}: checkpoint is '': allowed is a directory or a name of the zoo's drafters")
    for path in (Path(checkpoint), zoo / checkpoint):
        if path.is_dir():
            hint = "" if (path / file).is_file() else hint_of(path, file)
            if hint:
                raise ValueError(f"{noun} {path}: {file} is missing: {hint}")
            return path
    names = sorted(path.name for path in zoo.glob("*") if (path / file).is_file())
    raise ValueError(f"{noun}: checkpoint {checkpoint!r} is neither a directory nor one of {', '.join(names) or '-'}")


def hint_of(path: Path, file: str) -> str:
    """What a directory without `file` is, or which one below it was meant ("": nothing is known of it)."""
    for name in INSIDE:
        if (path / name / file).is_file():
            return f"did you mean {path / name}?"
    for other, kind in KINDS.items():
        if other != file and (path / other).is_file() and (other != "config.json" or is_order_model(path)):
            return f"this is {kind}"
        for name in INSIDE:
            if other != file and (path / name / other).is_file():
                return f"this is where {kind} was made"
    return ""


def is_order_model(path: Path) -> bool:
    """Whether the config.json in a directory is an order model's."""
    try:
        return bool(msgspec.json.decode((path / "config.json").read_bytes(), type=dict)["format"] == "spot-order-model")
    except (msgspec.MsgspecError, KeyError, OSError):
        return False
