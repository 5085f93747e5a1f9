"""What a training directory was made for (`request.json`): the same directory never mixes two trainings.

Written before the first trajectory. A later call may differ in what the command can still change (`free`), and else is
refused before any work, with the options that differ: collecting would put other trajectories beside those that are
there, only for the training to be refused afterwards.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from sweeps.cell import Cell
from sweeps.paths import expanded
from sweeps.store import atomic_write

REQUEST_FILE = "request.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A command, its options as they are written on the command line, and the digests of the targets and tasks whose
    trajectories are learnt from (by name).
    """

    command: str
    options: dict[str, Any]
    digests: dict[str, str]


def request_of(command: str, options: Mapping[str, Any], cells: Iterable[Cell]) -> Request:
    """A request; paths among its targets and tasks are made absolute, so that it matters not where it is called,
    and what may be given several times is sorted.
    """
    specs = [spec for cell in cells for spec in (cell.target, cell.task)]
    absolute: dict[Any, str] = {spec.name: absolute_name(spec.name) for spec in specs}
    named: dict[str, Any] = {}
    for name, value in options.items():
        several: list[Any] = [absolute.get(one, one) for one in value] if isinstance(value, tuple) else []
        named[option(name)] = sorted(several) if isinstance(value, tuple) else value
    return Request(command=command, options=named, digests={absolute[spec.name]: spec.digest for spec in specs})


def option(field: str) -> str:
    """A field as the command line spells it: what may be given several times has a plural name."""
    singular = {"targets": "target", "tasks": "task", "temperatures": "temperature", "taus": "tau"}
    for plural, one in singular.items():
        if field.endswith(plural):
            field = field.removesuffix(plural) + one
    return "--" + field.replace("_", "-")


def absolute_name(name: str) -> str:
    """The name of a target or task with the path in it, if there is one here, made absolute."""
    kind, colon, path = name.rpartition(":")
    here = expanded(path, "path")
    return f"{kind}{colon}{here.absolute()}" if (colon or "/" in path) and here.exists() else name


def check_request(out: Path, request: Request, *, free: Collection[str], free_untrained: Collection[str] = ()) -> None:
    """Raise ValueError when `out` was made for another request.

    Options in `free` may differ; those in `free_untrained` while nothing is trained there, and the message says so.
    """
    path = out / REQUEST_FILE
    try:
        made = msgspec.json.decode(path.read_bytes(), type=Request, strict=True)
    except FileNotFoundError:
        return
    except (msgspec.MsgspecError, OSError) as error:
        raise ValueError(f"{path} cannot be read ({error}): choose another --out, or delete {out}") from None
    way_out = f"choose another --out, or delete {out} to start again"
    if made.command != request.command:
        raise ValueError(f"out is {str(out)!r}: it was made by {made.command}: {way_out}")
    # an option without a value is as one that was not known when the directory was made
    differ = [name for name, value in request.options.items() if (made.options.get(name) or None) != (value or None)]
    other = [name for name in differ if name not in free]
    if other:
        was, now = (shown(options, other) for options in (made.options, request.options))
        if set(other) <= set(free_untrained):
            way_out = f"choose another --out, or delete {out / 'state.pt'} to train again (trajectories are kept)"
        raise ValueError(f"out is {str(out)!r}: it was made with {was} (here {now}): {way_out}")
    for name, digest in request.digests.items():
        before = made.digests.get(name, digest)
        if before != digest:
            was = f"{name} was {before[:12]} when it was made, and is {digest[:12]} now"
            raise ValueError(f"out is {str(out)!r}: {was}: {way_out}")


def shown(options: Mapping[str, Any], names: Iterable[str]) -> str:
    """Some options as one would type them."""
    typed = []
    for name in names:
        value = options.get(name)
        values = value if isinstance(value, list) else [value][: value not in (None, "")]
        typed += [f"{name} {f'{one:g}' if isinstance(one, float) else one}" for one in values] or [f"no {name}"]
    return " ".join(typed)


def write_request(out: Path, request: Request) -> None:
    """Note what a directory is for."""
    atomic_write(out / REQUEST_FILE, msgspec.json.format(msgspec.json.encode(request), indent=2) + b"\n")
