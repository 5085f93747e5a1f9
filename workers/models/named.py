"""From what a drafter's `checkpoint` says to the directory it means: a path, or a name below the zoo's drafters."""

from pathlib import Path

from workers.catalog import ZOO


def find_artifact(checkpoint: str, *, noun: str, file: str) -> Path:
    """The directory that `checkpoint` stands for; the zoo's names are those of directories that hold `file`.

    Raises ValueError, which begins with `noun`, when it is neither a directory nor such a name.
    """
    zoo = ZOO / "drafters"
    if not checkpoint:
        raise ValueError(f"{noun}: checkpoint is '': allowed is a directory or a name of the zoo's drafters")
    for path in (Path(checkpoint), zoo / checkpoint):
        if path.is_dir():
            return path
    names = sorted(path.name for path in zoo.glob("*") if (path / file).is_file())
    raise ValueError(f"{noun}: checkpoint {checkpoint!r} is neither a directory nor one of {', '.join(names) or '-'}")
