"""A forecast as tables on a console."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from orchestrator.forecast import CellForecast, Forecast
from orchestrator.words import counted
from sweeps.spec import GridSpec, SweepSpec, TargetSpec
from sweeps.study import STUDY

SHOWN = 60  # cells; more only on request
OTHER_AXES = {
    "noise": "noise",
    "confidence": "confidence",
    "seed": "seed",
    "max_new_tokens": "tokens",
    "block_length": "L",
    "commit": "commit",
    "tau": "tau",
    "cache": "cache",
}


def show(console: Console, spec: SweepSpec, result: Forecast, *, everything: bool = False) -> None:
    """Print the resolved axes, the cells, what was dropped, and the totals."""
    console.print(f"[bold]{escape(spec.name)}[/bold] {escape(spec.title)}".rstrip())
    console.print(axes_table(spec))
    shown = result.cells if everything else result.cells[:SHOWN]
    new = all_new(result.cells)
    console.print(cells_table(shown, why=not new))
    if len(shown) < len(result.cells):
        console.print(f"... and {len(result.cells) - len(shown)} more cells (--all lists them, --json has them)")
    if new:
        console.print("none of these cells has anything stored: every prompt counted here is not run yet")
    if result.dropped:
        console.print(dropped_table(result))
    for note in result.notes:
        console.print(f"note: {escape(note)}", soft_wrap=True)
    console.print(totals(result), soft_wrap=True)
    for missing in result.missing:  # last, where nobody has to scroll for it
        console.print(f"[bold yellow]not here yet[/]: {escape(missing)}", soft_wrap=True)
    if result.missing:
        console.print("cell ids are provisional until all of it is here, and spot run refuses to start")


def all_new(cells: Sequence[CellForecast]) -> bool:
    """Whether nothing of any cell is stored, so that all of them are to do for the same reason."""
    return bool(cells) and all(cell.why and all(why.endswith("not run yet") for why in cell.why) for cell in cells)


def axes_table(spec: SweepSpec) -> Table:
    """The axes as they were understood, and how much is measured."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for axis in GridSpec.__slots__:
        values = getattr(spec.grid, axis)
        if values and (axis != "tau" or "threshold" in spec.grid.commit):
            table.add_row(axis, escape(", ".join(map(number, values))))
    kinds: dict[str, list[str]] = {}
    for target in spec.targets:
        kinds.setdefault(cache_of(target), []).append(target.name)
    caches = [kind + (f" ({', '.join(names)})" if len(kinds) > 1 else "") for kind, names in kinds.items()]
    table.add_row("cache", escape("; ".join(caches)))
    for drafter in spec.drafters:
        if drafter.fixed:
            options = ", ".join(f"{name} {number(getattr(drafter, name))}" for name in drafter.fixed)
            table.add_row(f"drafter {escape(drafter.name)}", escape(f"{drafter.kind} with {options}"))
    measure = spec.measure
    timed = (
        f"{measure.timed_prompts} timed {counted(measure.repeats, 'time')}" if measure.timed_prompts else "none timed"
    )
    table.add_row("prompts", f"{measure.prompts} a cell, {timed}, {measure.chunk} a work item")
    if any(not target.exact_cache for target in spec.targets):
        few = min(measure.uncached_prompts, measure.prompts)
        cells = "for each draft-free cell with an approximate cache, shared by caches of the same weights"
        shown = f"{counted(few, 'prompt')} {cells}" if few else "not measured"
        table.add_row("uncached", shown)
    if measure.studied_prompts:
        table.add_row("order study", f"{measure.studied_prompts} prompts for each order model and draft-free cell")
    return table


def cache_of(target: TargetSpec) -> str:
    """A target's kind of cache, and whether it is approximate; as long as that is not known, so it says."""
    if not target.cache:
        return "not known yet"
    return target.cache + ("" if target.exact_cache else ", approximate")


def cells_table(cells: Sequence[CellForecast], *, why: bool = True) -> Table:
    """One row a cell; of the other axes only those that have several values (of tau any); reasons only with `why`."""
    table = Table(show_edge=False, pad_edge=False)
    ruled = any(cell.tau is not None for cell in cells)
    others = [
        name
        for name in OTHER_AXES
        if len({getattr(cell, name) for cell in cells}) > 1 or (ruled and name in ("commit", "tau"))
    ]
    for name in ("cell", "target", "task", "T", *(OTHER_AXES[name] for name in others), "drafter"):
        table.add_column(name, no_wrap=True)
    gammas = any(cell.gamma for cell in cells)
    if verified := any(map(verification, cells)):
        table.add_column("verified by")
    for name in ("D", *(("gamma",) if gammas else ()), "stored", "to do", "timed to do", "forwards"):
        table.add_column(name, justify="right")
    if why:
        table.add_column("why")
    for cell in cells:
        most = "<= " if cell.forwards_from == "upper bound" else "~ "
        label = cell.drafter + (" (bound)" if cell.bound else "") + (" (added)" if cell.added_baseline else "")
        label += " (uncached reference)" if cell.reference else ""
        failed = f", {cell.failed} failed" if cell.failed else ""
        table.add_row(
            cell.cell_id[:10],
            escape(cell.target),
            escape(cell.task),
            number(cell.temperature),
            *("-" if getattr(cell, name) is None else str(getattr(cell, name)) for name in others),
            escape(label),
            *((verification(cell) or ("exact" if cell.budget else "-"),) if verified else ()),
            str(cell.budget or "-"),
            *((number(cell.gamma) if cell.gamma else "-",) if gammas else ()),
            f"{cell.stored}/{cell.prompts}{failed}",
            str(cell.decode or cell.study or "-"),
            str(cell.timing or "-"),
            f"{most}{cell.forwards:,}" if cell.forwards else "-",
            *((escape("; ".join(cell.why)) or "done",) if why else ()),
        )
    return table


def verification(cell: CellForecast) -> str:
    """How drafts are verified, in a few words; empty where it is by `exact` in the active block, as ever."""
    switches = {"max-commit": cell.max_commit, "cross-block": cell.cross_block, "refresh": cell.refresh}
    words = [name for name, on in switches.items() if on]
    return ", ".join([cell.acceptance, *words] if words or cell.acceptance != "exact" else [])


def dropped_table(result: Forecast) -> Table:
    """What is not run, and why."""
    table = Table(title="not run", title_justify="left", show_edge=False, pad_edge=False)
    for name in ("points", "where", "why"):
        table.add_column(name, justify="right" if name == "points" else "left")
    for gone in result.dropped:
        where = ", ".join(f"{axis} {number(value)}" for axis, value in gone.axes.items())
        table.add_row(str(gone.count), escape(where), escape(gone.told))
    return table


def totals(result: Forecast) -> str:
    """The sum, in one line."""
    to_do = sum(bool(cell.decode or cell.timing or cell.study) for cell in result.cells)
    added = sum(cell.added_baseline for cell in result.cells)
    studies = sum(cell.drafter == STUDY for cell in result.cells)
    references = sum(cell.reference for cell in result.cells)
    cells = counted(len(result.cells) - studies - references, "cell")
    cells += f" ({added} draft-free added)" if added else ""
    cells += f", {counted(references, 'uncached reference')}" if references else ""
    cells += f" and {studies} order {'study' if studies == 1 else 'studies'}" if studies else ""
    if not to_do:
        failed = sum(cell.failed for cell in result.cells)
        again = f"; not asked again without --retry-failed: {counted(failed, 'failed prompt')}" if failed else ""
        return f"{cells}: nothing to do in {escape(result.directory)}{again}"
    bound = "about" if any(c.forwards and c.forwards_from != "upper bound" for c in result.cells) else "at most"
    loads = f"{counted(result.model_loads, 'model load')} on {counted(result.workers, 'worker')}"
    return (
        f"{cells}, {to_do} with something to do: {counted(result.items, 'work item')}, {bound} "
        f"{counted(result.forwards, 'forward')}, {loads}, into {escape(result.directory)}"
    )


def number(value: object) -> str:
    """A value as people write it: 1.0 is 1, 0.05 stays; several are joined."""
    if isinstance(value, tuple):
        return " or ".join(map(number, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
