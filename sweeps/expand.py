"""From a resolved sweep to its cells: a pure function of the spec and of facts that the caller looked up.

The axes are multiplied; options that a drafter does not use take their neutral value, so that equal work has one
identity and is listed once; the draft-free cell of every cell is added, and the uncached one of an approximate cache;
what cannot run is dropped with its reason.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from sweeps.cell import NO_DRAFTER, VERIFICATION_IDENTITY, Cell
from sweeps.facts import Facts
from sweeps.impossible import Gone, Point, impossible
from sweeps.spec import DEFAULT_TAU, DecodeSpec, DrafterSpec, SweepSpec

NEUTRAL: dict[str, Any] = {
    **{name: getattr(NO_DRAFTER, name) for name in ("budget", "gamma", "hedge", "merge_states", "verify_margin")},
    **{name: getattr(NO_DRAFTER, name) for name in VERIFICATION_IDENTITY},
    "checkpoint": "",
    "cost": "",
}
DRAFTER_AXES = ("budget", "gamma", "acceptance")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledCell:
    """A cell, the drafter labels that mean it (the first is shown: one that names the artifact, before one that means
    each target's own), and whether it was added: as a baseline, or as the uncached `reference` that an approximate
    cache is measured against.
    """

    cell: Cell
    labels: tuple[str, ...]
    added: bool = False
    reference: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Grid points that are not run: the axis values that decide it, why, and how many points that takes away.

    `instead`: options of the drafter with which they would be, where a few do it.
    """

    axes: Point
    reason: str
    count: int = 1
    instead: Point = field(default_factory=dict)

    @property
    def told(self) -> str:
        """The reason, and what a sweep would have to say instead."""
        values = (
            f"drafters.{self.axes['drafter']}.{name}={str(value).lower()}" for name, value in self.instead.items()
        )
        return ": ".join((self.reason, " ".join(values)) if self.instead else (self.reason,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """The cells in the order of the axes (draft-free before its variants, uncached references behind all), what was
    dropped, and notes for people.
    """

    cells: tuple[LabelledCell, ...]
    dropped: tuple[Dropped, ...]
    notes: tuple[str, ...]


def expand(spec: SweepSpec, facts: Facts) -> Expansion:
    """Multiply the axes. The spec's targets, tasks and drafters are those of the grid, digests filled in."""
    asked: dict[str, LabelledCell] = {}
    dropped = _unused_gamma(spec, facts)
    matched: set[int] = set()
    twins: dict[str, str] = {}
    repeats = 0
    for point in _points(spec, facts):
        rule = _rule(spec, point)
        gone = impossible(point, facts) if rule is None else Gone(dict(spec.exclude[rule]), f"exclude[{rule}]")
        if rule is not None:
            matched.add(rule)
        if gone is not None:
            _drop(dropped, *gone)
            continue
        cell = _cell(spec, point, facts)
        label, known = point["drafter"].name, asked.get(cell.cell_id)
        twin = _twins(cell, known.cell) if known else {}
        twins |= twin
        repeats += known is not None and label in known.labels and not twin
        labels = (label,) if known is None else _ranked((*known.labels, label), spec)
        cell = known.cell if known else cell
        cell = replace(cell, drafter=replace(cell.drafter, name=labels[0]))
        asked[cell.cell_id] = LabelledCell(cell=cell, labels=labels)
    cells = _with_baselines(asked)
    cells += _references(cells) if spec.measure.uncached_prompts else ()
    notes = (*_notes(spec, cells, matched, repeats), *(f"{own}: {same}" for own, same in twins.items()))
    return Expansion(cells=cells, dropped=tuple(dropped.values()), notes=notes)


def _ranked(labels: tuple[str, ...], spec: SweepSpec) -> tuple[str, ...]:
    """Each label once, those first whose own entry names the artifact: it is called that on every target."""
    naming = {drafter.name for drafter in spec.drafters if "checkpoint" in drafter.fixed}
    return tuple(sorted(dict.fromkeys(labels), key=lambda label: label not in naming))


def _points(spec: SweepSpec, facts: Facts) -> Iterator[Point]:
    """Every combination of the axes; an option that a drafter does not use has no value and multiplies nothing."""
    grid = spec.grid
    rules = [(commit, tau) for commit in grid.commit for tau in (grid.tau if commit == "threshold" else (None,))]
    settings = tuple(product(rules, grid.temperature, grid.noise, grid.confidence, grid.max_new_tokens))
    outer = (
        (target, task, *axes)
        for target, task in product(spec.targets, spec.tasks)
        for axes in product(settings, grid.block_length or (target.block_length,), grid.seed, spec.drafters)
    )
    for target, task, ((commit, tau), temperature, noise, confidence, tokens), length, seed, drafter in outer:
        for budget, gamma, acceptance in product(*(_values(spec, drafter, axis, facts) for axis in DRAFTER_AXES)):
            yield {
                "target": target,
                "task": task,
                "commit": commit,
                "tau": tau,
                "temperature": temperature,
                "noise": noise,
                "confidence": confidence,
                "max_new_tokens": tokens,
                "block_length": length,
                "seed": seed,
                "drafter": drafter,
                "budget": budget,
                "gamma": gamma,
                "acceptance": acceptance,
            }


def _values(spec: SweepSpec, drafter: DrafterSpec, axis: str, facts: Facts) -> tuple[Any, ...]:
    """The values of a drafter option: its own, the axis', or none (None) where the kind does not use it."""
    if axis not in facts.kinds[drafter.kind].uses:
        return (None,)
    values: tuple[Any, ...] = getattr(spec.grid, axis)
    return (getattr(drafter, axis),) if axis in drafter.fixed or not values else values


def _rule(spec: SweepSpec, point: Point) -> int | None:
    """The first `exclude` rule that a point matches in all its axes."""
    shown = {axis: getattr(value, "name", value) for axis, value in point.items()}
    for index, rule in enumerate(spec.exclude):
        if all(shown[axis] in values for axis, values in rule.items()):
            return index
    return None


def _cell(spec: SweepSpec, point: Point, facts: Facts) -> Cell:
    """The cell of a point that can run."""
    decode = DecodeSpec(
        max_new_tokens=point["max_new_tokens"],
        block_length=point["block_length"],
        temperature=point["temperature"],
        noise=point["noise"],
        confidence=point["confidence"],
        ignore_eos=spec.ignore_eos,
        commit=point["commit"],
        tau=DEFAULT_TAU if point["tau"] is None else point["tau"],
    )
    drafter: DrafterSpec = point["drafter"]
    uses = facts.kinds[drafter.kind].uses
    values: dict[str, Any] = {name: point[name] for name in DRAFTER_AXES if name in uses}
    values |= {name: neutral for name, neutral in NEUTRAL.items() if name not in uses}
    if values.get("acceptance") == "exact":
        values["max_commit"] = False  # one path alone is accepted
    artifact = facts.artifacts.get((point["target"].name, drafter.name)) if "checkpoint" in uses else None
    if artifact is not None:
        values |= {"checkpoint": artifact.path, "digest": artifact.digest, "origins": artifact.origins}
    if (cost := facts.costs.get((point["target"].name, drafter.name))) is not None:
        values |= {"cost": cost.path, "cost_digest": cost.digest}
    drafter = replace(drafter, **values, fixed=())
    seed = point["seed"] if decode.temperature > 0 else 0  # no noise is drawn: every seed is the same work
    return Cell(target=point["target"], task=point["task"], decode=decode, drafter=drafter, seed=seed)


def _with_baselines(asked: Mapping[str, LabelledCell]) -> tuple[LabelledCell, ...]:
    """The cells, each draft-free one before its variants, added where it was not asked for."""
    cells: dict[str, LabelledCell] = {}
    for cell_id, labelled in asked.items():
        baseline = labelled.cell.baseline()
        added = LabelledCell(cell=baseline, labels=(baseline.drafter.name,), added=True)
        cells.setdefault(baseline.cell_id, asked.get(baseline.cell_id, added))
        cells.setdefault(cell_id, labelled)
    return tuple(cells.values())


def _references(cells: tuple[LabelledCell, ...]) -> tuple[LabelledCell, ...]:
    """The uncached cell of each draft-free one with an approximate cache, where it is not among `cells`."""
    references: dict[str, LabelledCell] = {}
    for cell in (labelled.cell for labelled in cells):
        if cell.is_baseline and cell.is_comparable_uncached:
            reference = cell.uncached()
            added = LabelledCell(cell=reference, labels=(reference.drafter.name,), added=True, reference=True)
            references.setdefault(reference.cell_id, added)
    asked = {labelled.cell.cell_id for labelled in cells}
    return tuple(added for cell_id, added in references.items() if cell_id not in asked)


def _unused_gamma(spec: SweepSpec, facts: Facts) -> dict[str, Dropped]:
    """Mass floors on the axis beside drafters that have no masses: the drafter runs once, without one."""
    dropped: dict[str, Dropped] = {}
    for drafter, gamma in product(spec.drafters, spec.grid.gamma):
        if drafter.kind != "none" and gamma > 0 and "gamma" not in facts.kinds[drafter.kind].uses:
            reason = f"{drafter.kind} has no masses to hold against a floor: it runs once, without"
            _drop(dropped, {"drafter": drafter.name, "gamma": gamma}, reason)
    return dropped


def _drop(dropped: dict[str, Dropped], axes: Point, reason: str, instead: Point | None = None) -> None:
    """Count one more point that is gone for this reason."""
    key = f"{axes} {reason}"
    known = dropped.get(key, Dropped(axes=axes, reason=reason, instead=instead or {}, count=0))
    dropped[key] = replace(known, count=known.count + 1)


def _twins(cell: Cell, kept: Cell) -> dict[str, str]:
    """What a cell's target and task are, where the cell that it repeats has the same under other names."""
    pairs = {"target": (cell.target.name, kept.target.name), "task": (cell.task.name, kept.task.name)}
    return {
        f"{axis} {own}": f"the same content and settings as {axis} {other} (listed once, under that name)"
        for axis, (own, other) in pairs.items()
        if own != other
    }


def _notes(spec: SweepSpec, cells: tuple[LabelledCell, ...], matched: set[int], repeats: int) -> Iterator[str]:
    """What a person should know about the list of cells."""
    same: dict[tuple[str, ...], dict[str, None]] = {}
    for labels in (labelled.labels for labelled in cells if len(labelled.labels) > 1):
        same.setdefault(labels[1:], {})[labels[0]] = None
    for others, firsts in same.items():
        name = "that name" if len(firsts) == 1 else "those names"
        yield f"{', '.join(others)}: the same work as {', '.join(firsts)} (listed once, under {name})"
    if repeats:
        why = "(an axis value twice, or one that changes nothing at temperature 0)"
        yield f"{repeats} grid points repeat others {why}" if repeats > 1 else f"1 grid point repeats another {why}"
    for index in range(len(spec.exclude)):
        if index not in matched:
            yield f"exclude[{index}] matches no cell"
