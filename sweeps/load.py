"""From a sweep file and `key=value` overrides to a SweepSpec. The only file that imports omegaconf.

omegaconf reads, merges the overrides and resolves interpolations; what comes out are plain values, which our own strict
mapping turns into dataclasses. Whatever a person can get wrong is one SweepError with file and line (or the override).
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import (
    GrammarParseError,
    InterpolationResolutionError,
    OmegaConfBaseException,
    UnsupportedInterpolationType,
)

from sweeps.assemble import assemble
from sweeps.layers import forget, laid_over
from sweeps.paths import cut, expanded
from sweeps.source import MAX_DEPTH, Path, Source, SweepError, check_value, dotted, key_lines
from sweeps.spec import SweepSpec
from sweeps.tables import Tables, nearest

CONFIGS = FilePath(__file__).parent / "configs"
KEY = re.compile(r"[^.\[\]=]+|\[[^.\[\]=]+\]")
MOST_OVERRIDE = 200  # letters of an override that an error repeats
MOST_NAME = 80  # letters of a run's name
ASKS = (GrammarParseError, InterpolationResolutionError, UnsupportedInterpolationType)  # what ${...} can fail with


def packaged() -> dict[str, FilePath]:
    """The sweeps that come with the package, by name."""
    return {path.stem: path for path in sorted(CONFIGS.glob("*.yaml"))}


def find_sweep(name: str) -> FilePath:
    """The file of a sweep: a path, or the name of a packaged one. Raises ValueError when it is neither."""
    path = expanded(name, "the sweep")
    if path.is_file():
        return path
    if name in packaged():
        return packaged()[name]
    if path.is_dir():
        raise SweepError(f"{name} is a directory: a sweep is a YAML file or one of {', '.join(packaged())}")
    message = f"no sweep file {cut(name)!r}, and no packaged sweep of that name: packaged are {', '.join(packaged())}"
    raise SweepError(message + nearest(name, packaged()))


def settings_there_are() -> dict[str, FilePath]:
    """The settings that come with the package, by name: files laid over a sweep."""
    return {path.stem: path for path in sorted((CONFIGS / "settings").glob("*.yaml"))}


def find_settings(name: str) -> FilePath:
    """The file of settings: a path, or the name of packaged ones. Raises ValueError when it is neither."""
    path, known = expanded(name, "--with"), settings_there_are()
    if path.is_file():
        return path
    if name in known:
        return known[name]
    if path.is_dir():
        raise SweepError(f"--with {name} is a directory: settings are a YAML file or one of {', '.join(known)}")
    message = f"no settings file {cut(name)!r}, and no packaged settings of that name: packaged are {', '.join(known)}"
    raise SweepError(message + nearest(name, known))


def load_sweep(
    path: FilePath, overrides: Sequence[str], tables: Tables, *, settings: Sequence[FilePath] = ()
) -> SweepSpec:
    """Read, override, resolve and check a sweep. Raises SweepError with one line on the first thing that is wrong.

    `settings` are files of the same shape laid over the sweep before the overrides: mappings merge, anything else
    replaces what stood there. Settings may be laid over others themselves (`with: NAME`). The names that were asked for
    are added to the sweep's (unless settings give it another one): other settings are another run, with a directory of
    its own.
    """
    raw, lines = _parsed(path, {})
    applied: dict[Path, str] = {}
    source = Source(name=str(path), lines=lines, overrides=applied)
    laid: set[FilePath] = set()
    for number, layer in enumerate(settings):
        if layer.resolve() in {other.resolve() for other in settings[:number]}:
            raise SweepError(f"--with {layer.stem} is given twice")
        for file, over, places in _with_base(layer, laid):
            raw, replaced = laid_over(raw, over)
            for key in replaced:
                forget(lines, key)
                forget(applied, key)
                applied |= {below: f"{file}:{line}" for below, line in places.items() if below[: len(key)] == key}
    try:
        config = OmegaConf.create(raw)
        assert isinstance(config, DictConfig)
        for override in overrides:
            key = _apply(config, override)
            forget(lines, key)
            forget(applied, key)
            applied[key] = f"override {cut(override, MOST_OVERRIDE)}"
        values = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise _refused(error, source) from None
    assert isinstance(values, dict)
    plain = {str(key): value for key, value in values.items()}
    plain["name"] = _joined_name(plain.get("name", _name_of(path.stem)), settings, ("name",) in applied)
    return assemble(plain, tables, source)


def _with_base(layer: FilePath, laid: set[FilePath]) -> Iterator[tuple[FilePath, dict[str, Any], dict[Path, int]]]:
    """Settings behind those that they say they are laid over, each file once (`laid` are those that were)."""
    laid.add(layer.resolve())
    over, places = _parsed(layer, {"empty": "the file is empty: settings are keys of a sweep, as `grid:`"})
    base = over.pop("with", None)
    if base is not None:
        if not isinstance(base, str):
            where = f"{layer}:{places[('with',)]}"
            raise SweepError(f"{where}: with is {cut(repr(base), 80)}: allowed is the name or file of other settings")
        if (file := find_settings(base)).resolve() not in laid:
            yield from _with_base(file, laid)
    yield layer, over, places


def _parsed(file: FilePath, lacks: dict[str, str]) -> tuple[dict[str, Any], dict[Path, int]]:
    """What a file holds, `${...}` as it is written, and the line of each key. Raises SweepError with file and line."""
    text = _read(file)
    lines = key_lines(text, str(file), **lacks)
    try:
        raw = OmegaConf.to_container(OmegaConf.create(text), resolve=False)
    except OmegaConfBaseException as error:
        raise _refused(error, Source(name=str(file), lines=lines, overrides={})) from None
    except (yaml.YAMLError, ValueError) as error:
        raise SweepError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    assert isinstance(raw, dict)
    return {str(key): value for key, value in raw.items()}, lines


def _joined_name(given: Any, settings: Sequence[FilePath], final: bool) -> Any:
    """The sweep's name with those of its settings behind it, unless a later name is `final`. Raises SweepError where
    that makes it longer than a name may be.
    """
    if final or not settings or not isinstance(given, str):
        return given
    parts = (given, *(_name_of(layer.stem) for layer in settings))
    name = "-".join(parts)
    if len(name) > MOST_NAME >= len(given):
        joined = " and ".join(map(repr, parts))
        raise SweepError(
            f"the run's name would be {joined} joined, {len(name)} letters: allowed are {MOST_NAME}: give name=..."
        )
    return name


def _read(path: FilePath) -> str:
    """The text of a file; a byte order mark is dropped."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SweepError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise SweepError(f"{path}: {error.strerror}") from None


def _name_of(stem: str) -> str:
    """A sweep's default name: its file's, with whatever a name may not hold replaced."""
    return re.sub(r"[^\w.-]", "-", stem).lstrip(".")[:MOST_NAME] or "sweep"


def _apply(config: DictConfig, override: str) -> Path:
    """Put one `key=value` into the configuration; returns the key's path."""
    where = f"override {cut(override, MOST_OVERRIDE)}"
    key, equals, text = override.partition("=")
    path = _path(key)
    if not equals or not path:
        raise SweepError(f"{where}: an override is KEY=VALUE, as in grid.budget=[4,8] or measure.prompts=4")
    if len(path) > MAX_DEPTH:
        raise SweepError(f"{where}: nested too deeply: allowed are {MAX_DEPTH} levels")
    value = _value(text, where)
    if len(path) == 2 and path[0] == "grid" and isinstance(value, str) and "," in value:
        value = [_value(part, where) for part in value.split(",")]  # a comma list on an axis means its values
    _check_route(config, path, where)
    OmegaConf.update(config, key, value)
    return path


def _value(text: str, where: str) -> Any:
    """A value given on the command line, read by the rules of the file."""
    if not text.strip():
        raise SweepError(f"{where}: an empty value: to fall back to a default, leave the key out of the sweep file")
    check_value(text, where)
    try:
        parsed = OmegaConf.from_dotlist([f"value={text}"])
    except OmegaConfBaseException as error:
        raise SweepError(f"{where}: {_interpolation(error)}") from None
    return OmegaConf.to_container(parsed, resolve=False)["value"]  # type: ignore[call-overload,index]


def _check_route(config: DictConfig, path: Path, where: str) -> None:
    """Refuse an index into something that is no list, past its end, and a name inside a list."""
    here: Any = OmegaConf.to_container(config, resolve=False)
    for depth, part in enumerate(path):
        parent = dotted(path[:depth])
        if isinstance(part, int):
            if not isinstance(here, list):
                names = ", ".join(f"{parent}.{name}" for name in here) if isinstance(here, dict) else ""
                raise SweepError(
                    f"{where}: {parent} is no list in the file" + (f": its entries are {names}" if names else "")
                )
            if part >= len(here):
                raise SweepError(f"{where}: {parent} has {len(here)} items, numbers 0 to {len(here) - 1}")
            here = here[part]
        elif isinstance(here, list):
            raise SweepError(f"{where}: {parent} is a list: write an index, {parent}[0]")
        else:
            here = here.get(part) if isinstance(here, dict) else None


def _path(key: str) -> Path:
    """`grid.budget[1]` as parts; empty when it is no key."""
    parts = KEY.findall(key)
    if "".join(parts) != key.replace(".", "") or ".." in key or key.startswith(".") or key.endswith("."):
        return ()
    return tuple(int(part[1:-1]) if re.fullmatch(r"\[\d+\]", part) else part.strip("[]") for part in parts)


def _refused(error: OmegaConfBaseException, source: Source) -> SweepError:
    """What omegaconf would not take: which key, where, and how `${...}` that means nothing is written as plain text."""
    key = getattr(error, "full_key", None) or ""
    reason = str(error).splitlines()[0]
    if getattr(error, "msg", None) and "Missing mandatory value" in reason:
        return source.error(_path(key), f"{key} is ???: give it a value, in the file or as {key}=...")
    return source.error(_path(key), f"{key}: {_interpolation(error) if isinstance(error, ASKS) else reason}")


def _interpolation(error: OmegaConfBaseException) -> str:
    """What `${...}` means, why it failed, how to write it as text."""
    plain = r"for a plain ${ write \${ (in single quotes)"
    return f"${{...}} asks for another value, and {str(error).splitlines()[0]}; {plain}"
