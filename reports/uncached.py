"""What a report says of approximate caches outside of their own section: beside a claim, in the summary, in names.

A claim on a target with an approximate cache speaks of decoding with that cache. How many outputs equal those without
any cache is a measurement of its own, and stands beside the claim in words.
"""

from collections.abc import Iterable
from dataclasses import replace

from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.text import count, visible
from sweeps.aggregate import CellResult
from sweeps.claims import Claim

METHOD = "draft-free without cache (reference)"
LEAD = (
    " Given the cache: the claim is about decoding with the same approximate cache; how many outputs equal decoding "
    "without any cache stands behind it, which is a measurement and no promise."
)


def beside(*results: CellResult) -> str:
    """What stands behind the claim that cells of one target and rule share; empty where the cache is exact."""
    changed = agreed(*results)
    return f" ({results[0].cell.target.cache}; {changed})" if changed else given(results[0])


def given(result: CellResult) -> str:
    """The kind of an approximate cache behind a claim; empty where the cache is exact."""
    if result.agreement is None:
        return ""
    cache = result.cell.target.cache
    return f" (given the {cache} cache)" if result.claim == Claim.DISTRIBUTION_EXACT else f" ({cache})"


def agreed(*results: CellResult) -> str:
    """How many outputs of cells equal those without a cache; empty where the cache is exact or none need be equal."""
    first = results[0]
    if first.agreement is None or first.claim == Claim.DISTRIBUTION_EXACT:
        return ""
    if not first.cell.is_comparable_uncached:
        return "uncached: not comparable"
    equal, n = totals(results)
    return f"{equal:,}/{n:,} equal uncached" if n else "uncached: not measured"


def totals(results: Iterable[CellResult]) -> tuple[int, int]:
    """How many outputs of cells equal those without a cache, of how many that both decoded."""
    measured = [own for result in results if (own := result.agreement) is not None]
    return sum(own.n_identical for own in measured), sum(own.n for own in measured)


def sentences(results: Iterable[CellResult]) -> list[str]:
    """One sentence a target and approximate cache, over its draft-free cells."""
    by_cache: dict[tuple[str, str], list[CellResult]] = {}
    for result in results:
        if result.agreement is not None and result.cell.is_baseline:
            by_cache.setdefault((result.cell.target.name, result.cell.target.cache), []).append(result)
    return [sentence(name, cache, cells) for (name, cache), cells in by_cache.items()]


def sentence(name: str, cache: str, cells: list[CellResult]) -> str:
    """What one target's approximate cache was seen to change."""
    equal, n = totals(cells)
    said = f"{visible(name, 80)}, {cache} cache: claims are exact given this cache, not lossless; "
    if not n:
        return f"{said}how many outputs equal decoding without a cache was not measured."
    verb = "equals" if n == 1 else "equal"
    return f"{said}{equal:,} of {count(n, 'draft-free output')} {verb} decoding without a cache."


def all_labels(frames: Frames) -> Labels:
    """The names of a run's cells, with those of the references: each is named after a cell measured against it."""
    labels = labels_of(frames.results)
    served = {result.cell.uncached().cell_id: result.cell_id for result in reversed(frames.results)}
    known = {own.cell_id: served[own.cell_id] for own in frames.references if own.cell_id in served}
    return replace(
        labels,
        setting=labels.setting | {own: labels.setting[other] for own, other in known.items()},
        method=labels.method | dict.fromkeys(known, METHOD),
        task=labels.task | {own: labels.task[other] for own, other in known.items()},
    )
