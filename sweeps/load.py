"""From a sweep file and `key=value` overrides to a SweepSpec. The only file that imports omegaconf.

omegaconf reads, merges the overrides and resolves interpolations; what comes out are plain values, which our own strict
mapping turns into dataclasses. Whatever a person can get wrong is one SweepError with file and line (or the override).
"""

import re
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sweeps import named
from sweeps.mapping import build, check_keys, convert, mapping
from sweeps.source import Path, Source, SweepError, check_value, dotted, key_lines
from sweeps.spec import GridSpec, SweepSpec
from sweeps.tables import Tables, nearest, unknown

CONFIGS = FilePath(__file__).parent / "configs"
KEY = re.compile(r"[^.\[\]=]+|\[[^.\[\]=]+\]")
SEPARATE = ("name", "grid", "targets", "tasks", "drafters", "exclude")


def packaged() -> dict[str, FilePath]:
    """The sweeps that come with the package, by name."""
    return {path.stem: path for path in sorted(CONFIGS.glob("*.yaml"))}


def find_sweep(name: str) -> FilePath:
    """The file of a sweep: a path, or the name of a packaged one. Raises SweepError when it is neither."""
    path = FilePath(name)
    if path.is_file():
        return path
    if name in packaged():
        return packaged()[name]
    if path.is_dir():
        raise SweepError(f"{name} is a directory: a sweep is a YAML file or one of {', '.join(packaged())}")
    message = f"no sweep file {name!r}, and no packaged sweep of that name: packaged are {', '.join(packaged())}"
    raise SweepError(message + nearest(name, packaged()))


def settings_there_are() -> dict[str, FilePath]:
    """The settings that come with the package, by name: files laid over a sweep."""
    return {path.stem: path for path in sorted((CONFIGS / "settings").glob("*.yaml"))}


def find_settings(name: str) -> FilePath:
    """The file of settings: a path, or the name of packaged ones. Raises SweepError when it is neither."""
    path, known = FilePath(name), settings_there_are()
    if path.is_file():
        return path
    if name in known:
        return known[name]
    message = f"no settings file {name!r}, and no packaged settings of that name: packaged are {', '.join(known)}"
    raise SweepError(message + nearest(name, known))


def load_sweep(
    path: FilePath, overrides: Sequence[str], tables: Tables, *, settings: Sequence[FilePath] = ()
) -> SweepSpec:
    """Read, override, resolve and check a sweep. Raises SweepError with one line on the first thing that is wrong.

    `settings` are files of the same shape laid over the sweep before the overrides: mappings merge, anything else
    replaces what stood there. Their names are added to the sweep's (unless they give it another one): other settings
    are another run, with a directory of its own.
    """
    text = _read(path)
    lines = key_lines(text, str(path))
    applied: dict[Path, str] = {}
    source = Source(name=str(path), lines=lines, overrides=applied)
    try:
        config = OmegaConf.create(text)
        assert isinstance(config, DictConfig)
        for layer in settings:
            config = _laid_over(config, layer, applied)
        for override in overrides:
            applied[_apply(config, override)] = f"override {override}"
        raw = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise _interpolation_error(error, source) from None
    except yaml.YAMLError as error:
        raise SweepError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    assert isinstance(raw, dict)
    values = {_text_key(k, source): v for k, v in raw.items()}
    given = values.setdefault("name", _name_of(path.stem))
    if ("name",) not in applied and isinstance(given, str):
        values["name"] = "-".join((given, *(_name_of(layer.stem) for layer in settings)))
    return _spec(values, tables, source)


def _spec(raw: dict[str, Any], tables: Tables, source: Source) -> SweepSpec:
    """The sweep from resolved plain values."""
    check_keys(raw, SweepSpec.__slots__, (), source)
    if "grid" not in raw:
        raise source.error((), "grid is missing: a sweep needs at least grid.target and grid.task")
    grid = build(GridSpec, raw["grid"], ("grid",), source)
    return build(
        SweepSpec,
        {key: value for key, value in raw.items() if key not in SEPARATE},
        (),
        source,
        name=convert(str, raw["name"], ("name",), source),
        grid=grid,
        targets=named.targets(grid.target, raw.get("targets", {}), tables, source),
        tasks=named.tasks(grid.task, raw.get("tasks", {}), tables, source),
        drafters=named.drafters(grid.drafter, raw.get("drafters", {}), tables, source),
        exclude=_exclude(raw, grid, tables, source),
    )


def _exclude(
    raw: dict[str, Any], grid: GridSpec, tables: Tables, source: Source
) -> tuple[dict[str, tuple[str | float | int, ...]], ...]:
    """Rules of axis -> values. A name must exist; a value may be off its axis (overrides take values away)."""
    names = {
        "target": (*tables.targets, *raw.get("targets", {}), *grid.target),
        "task": (*tables.tasks, *raw.get("tasks", {}), *grid.task),
        "drafter": (*tables.drafters, *raw.get("drafters", {}), *grid.drafter),
    }
    given = raw.get("exclude", [])
    rules = []
    for index, rule in enumerate(given if isinstance(given, list) else [given]):
        path: Path = ("exclude", index)
        values = mapping(rule, path, source)
        check_keys(values, GridSpec.__slots__, path, source)
        if not values:
            raise source.error(path, f"{dotted(path)} is empty: a rule with no axis would exclude everything")
        converted = {}
        for axis, value in values.items():
            where = (*path, axis)
            converted[axis] = convert(GridSpec.__annotations__[axis], value, where, source)
            for name in converted[axis]:
                if axis in names and name not in names[axis]:
                    raise source.error(where, f"{dotted(where)}: {unknown(axis, name, dict.fromkeys(names[axis]))}")
        rules.append(converted)
    return tuple(rules)


def _read(path: FilePath) -> str:
    """The text of a file; a byte order mark is dropped."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SweepError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise SweepError(f"{path}: {error.strerror}") from None


def _laid_over(config: DictConfig, layer: FilePath, applied: dict[Path, str]) -> DictConfig:
    """The configuration with a settings file merged into it; its keys are remembered with their lines."""
    text = _read(layer)
    lines = key_lines(text, str(layer))
    parents = {key[:end] for key in lines for end in range(len(key))}
    applied |= {key: f"{layer}:{line}" for key, line in lines.items() if key not in parents}
    merged = OmegaConf.merge(config, OmegaConf.create(text))
    assert isinstance(merged, DictConfig)
    return merged


def _name_of(stem: str) -> str:
    """A sweep's default name: its file's, with whatever a name may not hold replaced."""
    return re.sub(r"[^\w.-]", "-", stem).lstrip(".")[:80] or "sweep"


def _apply(config: DictConfig, override: str) -> Path:
    """Put one `key=value` into the configuration; returns the key's path."""
    where = f"override {override}"
    key, equals, text = override.partition("=")
    path = _path(key)
    if not equals or not path:
        raise SweepError(f"{where}: an override is KEY=VALUE, as in grid.budget=[4,8] or measure.prompts=4")
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


def _text_key(key: object, source: Source) -> str:
    """A top-level key as text."""
    if not isinstance(key, str):
        raise source.error((str(key),), f"the key {key!r} is read as a {type(key).__name__}: quote it")
    return key


def _interpolation_error(error: OmegaConfBaseException, source: Source) -> SweepError:
    """`${...}` that means nothing: which key, where, and how to write it as plain text."""
    key = getattr(error, "full_key", None) or ""
    reason = str(error).splitlines()[0]
    if getattr(error, "msg", None) and "Missing mandatory value" in reason:
        return source.error(_path(key), f"{key} is ???: give it a value, in the file or as {key}=...")
    return source.error(_path(key), f"{key}: {_interpolation(error)}")


def _interpolation(error: OmegaConfBaseException) -> str:
    """What `${...}` means, why it failed, how to write it as text."""
    plain = r"for a plain ${ write \${ (in single quotes)"
    return f"${{...}} asks for another value, and {str(error).splitlines()[0]}; {plain}"
