"""What the names on a sweep's axes stand for: entries of its `targets:`, `tasks:`, `drafters:`, or the built-in tables.

After this every name that the grid uses has a spec, so nothing later needs to look a name up. A target may also be
given directly as a directory or a hub id (owner/name), a task as `kind:PATH`. An entry's `path` may be a built-in
target's name: the same checkpoint with another dtype or kind of cache. Whatever it is called, a checkpoint of the table
has the table's dtype and block length unless they are stated.
"""

from dataclasses import fields, replace
from typing import Any

from sweeps.mapping import build, check_keys, convert, mapping
from sweeps.paths import cut, expanded
from sweeps.source import Path, Source, dotted
from sweeps.spec import MAX_BLOCK, DrafterSpec, TargetSpec, TaskSpec
from sweeps.tables import Tables, unknown

COMPUTED = ("digest", "settings_digest", "family", "exact_cache", "parameters", "cost_digest", "origins")


def targets(names: tuple[str, ...], raw: object, tables: Tables, source: Source) -> tuple[TargetSpec, ...]:
    """A spec for each target name of the grid."""
    own = {}
    for name, options in mapping(raw, ("targets",), source).items():
        spec = build(TargetSpec, options, ("targets", name), source, hidden=COMPUTED, name=name)
        if "block_length" in options and not spec.block_length:  # 0 stands for one that nobody states
            allowed = f"allowed is a whole number from 1 to {MAX_BLOCK}"
            raise source.error(("targets", name, "block_length"), f"targets.{name}.block_length is 0: {allowed}")
        built_in = _built_in(spec.path or name, tables)
        if built_in is not None:
            stated = {key: getattr(spec, key) for key in options if key != "path"}
            spec = replace(built_in, name=name, **stated)
        if not spec.path:
            message = (
                f"targets.{name}.path is missing: a directory or a hub id (only {', '.join(tables.targets)} need none)"
            )
            raise source.error(("targets", name), message)
        own[name] = spec
    known = {**tables.targets, **own}
    specs = []
    for index, name in enumerate(names):
        if name not in known and ("/" in name or expanded(name, f"target {cut(name)}: path").is_dir()):
            built_in = _built_in(name, tables)
            known[name] = replace(built_in, name=name) if built_in else TargetSpec(name=name, path=name)
        if name not in known:
            message = unknown("target", name, known) + " (or a directory, or a hub id owner/name)"
            raise source.error(_axis("target", index, source), message)
        specs.append(known[name])
    return tuple(dict.fromkeys(specs))


def tasks(names: tuple[str, ...], raw: object, tables: Tables, source: Source) -> tuple[TaskSpec, ...]:
    """A spec for each task name of the grid."""
    known = {name: TaskSpec(name=name, kind=name) for name, kind in tables.tasks.items() if not kind.needs_path}
    for name, options in mapping(raw, ("tasks",), source).items():
        path: Path = ("tasks", name)
        values = mapping(options, path, source)
        kind = _kind(values, name, tables.tasks, "task kind", path, source)
        needs_path = tables.tasks[kind].needs_path
        if not needs_path:
            check_keys(values, ("kind", "split"), path, source)
        spec = build(TaskSpec, values | {"kind": kind}, path, source, hidden=COMPUTED, name=name)
        if needs_path and not spec.path:
            raise source.error(path, f"tasks.{name}.path is missing: {kind} reads its rows from a file")
        known[name] = spec
    specs = []
    for index, name in enumerate(names):
        kind, colon, file = name.partition(":")
        if name not in known and colon and file and kind in tables.tasks and tables.tasks[kind].needs_path:
            known[name] = TaskSpec(name=name, kind=kind, path=file)
        if name not in known:
            files = [f"{kind}:PATH" for kind, entry in tables.tasks.items() if entry.needs_path]
            raise source.error(_axis("task", index, source), unknown("task", name, [*known, *files]))
        specs.append(known[name])
    return tuple(dict.fromkeys(specs))


def drafters(names: tuple[str, ...], raw: object, tables: Tables, source: Source) -> tuple[DrafterSpec, ...]:
    """A spec for each drafter name of the grid; `fixed` names the options its entry states, which axes leave alone."""
    known = {name: DrafterSpec(name=name, kind=name, oracle=kind.oracle) for name, kind in tables.drafters.items()}
    for name, options in mapping(raw, ("drafters",), source).items():
        path: Path = ("drafters", name)
        values = mapping(options, path, source)
        kind = _kind(values, name, tables.drafters, "drafter kind", path, source)
        if name == "none" and kind != "none":
            raise source.error(path, "drafters.none: this name means draft-free decoding: choose another")
        stated = tuple(sorted(key for key in values if key != "kind"))
        options_known = {f.name for f in fields(DrafterSpec)} - {"name", "kind", "fixed", "oracle", *COMPUTED}
        for key in stated:
            if key in options_known and key not in tables.drafters[kind].uses:
                uses = ", ".join(tables.drafters[kind].uses) or "no option"
                raise source.error((*path, key), f"{dotted((*path, key))}: {kind} does not use it; it uses {uses}")
        values = values | {"kind": kind}
        known[name] = build(
            DrafterSpec,
            values,
            path,
            source,
            hidden=COMPUTED,
            name=name,
            fixed=stated,
            oracle=tables.drafters[kind].oracle,
        )
    for index, name in enumerate(names):
        if name not in known:
            raise source.error(_axis("drafter", index, source), unknown("drafter", name, known))
    return tuple(dict.fromkeys(known[name] for name in names))


def _built_in(path: str, tables: Tables) -> TargetSpec | None:
    """The target of the table with this name, or with its checkpoint there."""
    by_path = (target for target in tables.targets.values() if target.path == path)
    return tables.targets.get(path) or next(by_path, None)


def _kind(values: dict[str, Any], name: str, kinds: Any, what: str, path: Path, source: Source) -> str:
    """The kind that an entry states, or its own name where that is a kind."""
    kind = convert(str, values.get("kind", name), (*path, "kind"), source)
    if kind not in kinds:
        missing = "" if "kind" in values else f"{dotted((*path, 'kind'))} is missing; "
        raise source.error((*path, "kind"), missing + unknown(what, kind, kinds))
    return str(kind)


def _axis(axis: str, index: int, source: Source) -> Path:
    """Where the value number `index` of an axis stands (the axis itself when it is a lone value)."""
    item: Path = ("grid", axis, index)
    return item if item in source.lines or item in source.overrides else ("grid", axis)
