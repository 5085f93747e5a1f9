"""The block length belongs to the target: whose it is, what is said when nobody knows it, and when it is another one.

A model decoded in blocks of a length that it was not trained for still answers, only worse and in other numbers of
forwards. The table states it; `block_size` of a config.json is not relied on, since published ones are wrong or absent,
but a length that contradicts it is told of.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from orchestrator.absent import NotHereError
from orchestrator.checkpoints import checkpoint_folder
from sweeps.source import SweepError
from sweeps.spec import TargetSpec
from workers import catalog
from workers.targets.files import read_json


def check_block_length(target: TargetSpec, ways: Sequence[str]) -> None:
    """Raise SweepError, with the `ways` to state it, when nobody knows the block length of a target."""
    if not target.block_length:
        unknown = f"target {target.name}: its block length is not known: it is in no table, and {published(target)}"
        raise SweepError(f"{unknown}: say what it was trained for, {' or '.join(ways)}")


def published(target: TargetSpec) -> str:
    """What a checkpoint's own config says of its block length, which is not enough.

    Raises ValueError for a target that is no checkpoint at all.
    """
    try:
        told = read_json(checkpoint_folder(target) / "config.json").get("block_size")
    except NotHereError:
        return "block_size of a config.json is unreliable (here there is none to look at yet)"
    if told is None:
        return "block_size is absent from its config.json"
    return f"block_size of its config.json ({told!r}) is unreliable: published ones are often wrong"


def ways_in_a_sweep(target: TargetSpec) -> tuple[str, str]:
    """How a sweep states the block length of one target, and of all of them."""
    direct = target.name == target.path  # an entry of its own gives it a name that an override can spell
    own = f"targets: {{NAME: {{path: {target.path}, block_length: N}}}}" if direct else ""
    return own or f"targets.{target.name}.block_length=N", "grid.block_length=N (for all targets)"


def one_block_length(targets: Sequence[TargetSpec], stated: int | None) -> int:
    """The block length of a command: the stated one, or the one that all its targets have.

    Raises SweepError naming a target whose own is not known, or two that differ.
    """
    if stated is not None:
        return stated
    for target in targets:
        check_block_length(target, ("--block-length N",))
    return int(the_one("block_length", targets))


def the_one(field: Literal["block_length", "dtype"], targets: Sequence[TargetSpec]) -> Any:
    """The value of a field that all targets of a command share. Raises SweepError naming those that differ."""
    own = {getattr(target, field): target.name for target in reversed(targets)}
    (value, name), *others = own.items()
    if others:
        differing = f"{name} has {value}, " + ", ".join(f"{other} {its}" for its, other in others)
        stated = f"--{field.replace('_', '-')} {'N' if field == 'block_length' else 'D'}"
        raise SweepError(f"{field}: {differing}: state one for all, {stated}")
    return value


def length_notes(pairs: Iterable[tuple[TargetSpec, int]]) -> Iterator[str]:
    """A line for each target and block length that are not what the table or the target's own config says."""
    for target, length in dict.fromkeys(pairs):
        entry = catalog.target_at(target.path)
        if entry is not None and entry.block_length:
            if entry.block_length != length:
                own = f"it was made for {entry.block_length}: out of its training"
                yield f"target {target.name}: decoded in blocks of {length}, and {own}"
        elif (told := told_by_config(target)) not in (None, length):
            own = f"block_size of its config.json is {told}: out of its training, if that is right (it often is not)"
            yield f"target {target.name}: decoded in blocks of {length}, and {own}"
        elif target.block_length not in (0, length):
            own = f"its block_length is {target.block_length}: out of its training"
            yield f"target {target.name}: decoded in blocks of {length}, and {own}"


def told_by_config(target: TargetSpec) -> object:
    """`block_size` of a checkpoint's config.json; None where it has none or is not here."""
    try:
        return read_json(checkpoint_folder(target) / "config.json").get("block_size")
    except NotHereError:
        return None
