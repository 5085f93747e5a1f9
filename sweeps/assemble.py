"""From the plain values of a sweep file to a SweepSpec: unknown keys, names and values are refused with their place."""

from typing import Any

from sweeps import named
from sweeps.mapping import build, check_keys, convert, mapping
from sweeps.source import Path, Source, dotted
from sweeps.spec import GridSpec, SweepSpec
from sweeps.tables import Tables, unknown

SEPARATE = ("name", "grid", "targets", "tasks", "drafters", "exclude")


def assemble(raw: dict[str, Any], tables: Tables, source: Source) -> SweepSpec:
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
