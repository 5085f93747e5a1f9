"""A synthetic study of transfer: three targets, an order model and a draft graph made on each, the models on all."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sweeps.cell import Cell
from sweeps.made_on import MadeOn
from sweeps.records import GenerationRecord, ItemResult
from sweeps.spec import DrafterSpec
from tests.synthetic import Sweep, grid

NAMES = ("tiny-a", "tiny-b", "tiny-c")


def made_on(*numbers: int, mark: str = "") -> tuple[MadeOn, ...]:
    """What an artifact says that was made on these targets of `grid`."""
    return tuple(MadeOn(target=NAMES[number] + mark, digest=f"{number:064x}") for number in numbers)


def order_models(base: DrafterSpec, sources: Iterable[int], mark: str = "") -> list[DrafterSpec]:
    """The order model of every source, under one name on all targets."""
    return [
        replace(
            base,
            name=f"from-{NAMES[source]}{mark}",
            digest=f"model {source}",
            origins=made_on(source, mark=mark),
        )
        for source in sources
    ]


def transfers(
    *, targets: int = 3, mark: str = "", exact: tuple[bool, ...] = (True, False, True), **axes
) -> tuple[Cell, ...]:
    """The cells: draft-free, ssd, the native graph (`spiffy`) and every order model, on every target."""
    cells: list[Cell] = []
    for cell in grid(targets=targets, gammas=(), mark=mark, **axes):
        number = int(cell.target.digest, 16)
        target = replace(
            cell.target,
            name=NAMES[number] + mark,
            cache="exact" if exact[number] else "dual",
            exact_cache=exact[number],
        )
        cell = replace(cell, target=target)
        if cell.drafter.kind != "spot":
            cells.append(cell)
            continue
        graph = DrafterSpec(
            name=f"spiffy{mark}",
            kind="spiffy",
            budget=cell.drafter.budget,
            hedge=0.0,
            merge_states=False,
            digest=f"graph {number}",
            origins=made_on(number, mark=mark),
        )
        drafters = [graph, *order_models(cell.drafter, range(targets), mark)]
        cells += [replace(cell, drafter=drafter) for drafter in drafters]
    return tuple(cells)


def with_nfe(made: Sweep, wanted: Mapping[tuple[str, str], Sequence[int]]) -> Sweep:
    """The sweep with other forwards a prompt, by names of target and drafter."""

    def changed(cell: Cell, item: ItemResult) -> ItemResult:
        nfe = wanted.get((cell.target.name, cell.drafter.name))
        if nfe is None:
            return item
        return replace(item, generations=tuple(in_rounds(row, nfe[row.prompt_index]) for row in item.generations))

    jobs = {job.cell_id: job.cell for job in made.jobs}
    results = {
        cell_id: tuple(changed(jobs[cell_id], item) for item in items) for cell_id, items in made.results.items()
    }
    return replace(made, results=results)


def in_rounds(row: GenerationRecord, nfe: int) -> GenerationRecord:
    """`row` with its tokens spread over `nfe` forwards (only its counters: nothing else is read of it here)."""
    share, rest = divmod(row.tokens_generated, nfe)
    accepted = tuple(share - 1 + (place < rest) for place in range(nfe))
    return replace(row, counters=replace(row.counters, nfe=nfe, accepted=accepted, drafted=(8,) * nfe))
