"""From what a drafter's `checkpoint` says to the directory it means: a path, or a name below the zoo's drafters."""

from collections.abc import Iterable
from pathlib import Path

from sweeps.paths import cut, expanded
from sweeps.tables import nearest
from workers.catalog import ZOO
from workers.models.plain import parsed

KINDS = {"order model": "an order model", "set model": "a set model", "draft graph": "a draft graph"}  # by noun
FORMATS = {f"spot-{noun.replace(' ', '-')}": kind for noun, kind in KINDS.items()}  # by what their files say
INSIDE = ("model", "graph")  # where the training commands write them


class AbsentError(ValueError):
    """A path at which there is nothing, of something that may still be made."""


def find_artifact(checkpoint: str, *, noun: str, file: str) -> Path:
    """The directory that `checkpoint` stands for; the zoo's names are those of directories that hold a `noun`.

    Raises ValueError, which begins with `noun`, when it is neither a directory nor such a name, or a directory
    of something else that we know; AbsentError when it is a path at which there is nothing yet.
    """
    zoo = ZOO / "drafters"
    if not checkpoint:
        raise ValueError(f"{noun}: checkpoint is '': allowed is a directory or a name of the zoo's drafters")
    names = sorted(path.name for path in zoo.glob("*") if (path / file).is_file() and kind_of(path) == KINDS[noun])
    path = expanded(checkpoint, f"{noun}: checkpoint")
    if not path.is_dir() and checkpoint in names:
        path = zoo / checkpoint
    if not path.is_dir():
        raise not_there(f"{noun}: checkpoint", checkpoint, path, "a directory", names)
    if hint := hint_of(path, noun, file):
        missing = "" if (path / file).is_file() else f"{file} is missing: "
        raise ValueError(f"{noun} {path}: {missing}{hint}")
    return path


def not_there(field: str, text: str, path: Path, wanted: str, names: Iterable[str]) -> ValueError:
    """The error for what a person named that is neither `wanted` nor one of the zoo's `names`.

    A path (`a/b`, `./a`, `~/a`, `a.json`) may be of something that is still to be made; a bare word is a name.
    """
    known = list(names)
    if path.exists() or path.is_symlink():
        return ValueError(f"{field} {cut(text)!r} is not {wanted}: allowed is {wanted} or one of {', '.join(known)}")
    near = f"; did you mean {path.stem}?" if path.stem in known else nearest(text, known)
    if not ("/" in text or text.startswith(("~", ".")) or path.suffix == ".json") or (path.stem in known and near):
        return ValueError(f"{field} {cut(text)!r} is neither {wanted} nor one of {', '.join(known) or '-'}{near}")
    return AbsentError(f"{field} {cut(text)!r} is not there")


def hint_of(path: Path, noun: str, file: str) -> str:
    """What a directory is that should be a `noun`, or which one below it was meant ("": nothing is known)."""
    wanted, kind = KINDS[noun], kind_of(path)
    if kind or (path / file).is_file():
        return f"this is {kind}" if kind not in ("", wanted) else ""
    inside = {name: kind_of(path / name) for name in INSIDE}
    for name, kind in inside.items():
        if kind == wanted:
            return f"did you mean {path / name}?"
    return next((f"this is where {kind} was made" for kind in inside.values() if kind), "")


def kind_of(path: Path) -> str:
    """What a directory holds, in words; "" when that cannot be told."""
    if (path / "graph.json").is_file():
        return KINDS["draft graph"]
    try:
        config = parsed((path / "config.json").read_bytes())
    except (ValueError, OSError):
        return ""
    if str(config.get("format")) in FORMATS:
        return FORMATS[str(config["format"])]
    return "a target's checkpoint" if "model_type" in config or "architectures" in config else ""
