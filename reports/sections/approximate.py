"""Approximate caches: what is claimed under them, what they change against decoding without one, what they save.

One row a draft-free cell whose cache is approximate. The same cell without a cache is the reference; two kinds of cache
of one checkpoint share it, so their rows compare them.
"""

from collections import defaultdict

from reports.frames import Frames, base_id
from reports.labels import Labels, labels_of
from reports.marks import BROKEN
from reports.model import Group, Head, Lines, SectionInfo, Table, Value
from reports.shown import points, shown
from reports.text import DASH, TIMES
from reports.uncached import sentences
from sweeps.aggregate import CellResult
from sweeps.agreement import Agreement
from sweeps.claims import in_words

MOST_ROWS = 300
AXES = (Head(name="Setting", number=False, meaning="with the kind of cache"), Head(name="Task", number=False))
AGREEMENT = (
    *AXES,
    Head(name="Claim", number=False, meaning="of drafted cells, against draft-free with the same cache"),
    Head(
        name="Identical, same cache",
        meaning="drafted outputs equal to draft-free with the same cache, of those compared",
    ),
    Head(name="Compared", unit="prompts", meaning="decoded with this cache and without any"),
    Head(
        name="Identical, no cache",
        unit="%",
        meaning="draft-free outputs equal to those without a cache; Wilson interval",
    ),
    Head(name="Equal tokens", unit="%", meaning="at equal index, of the longer output, mean over prompts"),
    Head(name="First difference", unit="token", meaning="index, from 0; median over the prompts that differ"),
)
COSTS = (
    *AXES,
    Head(name="NFE", unit="forwards/prompt", meaning="draft-free with this cache"),
    Head(name="NFE, no cache", unit="forwards/prompt", meaning="equal unless one of both stops earlier"),
    Head(name="Positions", unit="a prompt", meaning="forwarded, without prefill, draft-free with this cache"),
    Head(name="Positions, no cache", unit="a prompt"),
    Head(name="Saved", unit=TIMES, meaning="positions without a cache over those with it"),
    Head(name="Correct", unit="%", meaning="right answers with this cache; Wilson interval"),
    Head(name="Correct, no cache", unit="%"),
    Head(name="Difference", unit="points", meaning="with this cache less without, paired; Tango's interval"),
)
LEAD = (
    "With an approximate cache, keys and values of other positions are as old as the block's first forward: those "
    "before the block (prefix), or all but the block's own (dual); arXiv 2505.22618. Drafted outputs are checked "
    "against draft-free decoding with the same cache, which they must equal (exact given the cache). What the cache "
    "itself changes is measured here: draft-free decoding with it and without any, the same prompts and the same "
    "noise; kept tokens are compared. It decides no claim. With independent noise outputs differ by chance, and "
    "nothing is compared. Forwards and positions are counts, not times."
)


def info(frames: Frames) -> SectionInfo | None:
    """Sentences and two tables; None where every cache is exact."""
    labels = labels_of(frames.results)
    free = [result for result in frames.results if result.cell.is_baseline and result.agreement is not None]
    if not free:
        return None
    shown, omitted = free[:MOST_ROWS], max(0, len(free) - MOST_ROWS)
    drafted: dict[str, list[CellResult]] = defaultdict(list)
    for result in frames.results:
        if not result.cell.is_baseline:
            drafted[base_id(result)].append(result)
    rows = tuple(
        agreement_row(result, own, drafted[result.cell_id], labels) for result in shown if (own := result.agreement)
    )
    tables = [Table(caption="What the cache changes", heads=AGREEMENT, groups=(("", rows),), omitted=omitted)]
    costs = tuple(cost_row(result, own, labels) for result in shown if (own := result.agreement) and own.n)
    if costs:
        caption = "What the cache saves, and answers with and without it"
        tables.append(Table(caption=caption, heads=COSTS, groups=(("", costs),), omitted=omitted))
    said = Lines(lines=tuple(("note", text) for text in sentences(free)))
    return SectionInfo(
        key="approximate-caches",
        title="Approximate caches",
        lead=LEAD,
        groups=(Group(title="", parts=(said, *tables)),),
        cuts=(f"{omitted:,} more rows, in report-data/cells.csv",) if omitted else (),
    )


def axes(result: CellResult, labels: Labels) -> tuple[Value, ...]:
    """What a row is about."""
    return Value(labels.setting[result.cell_id]), Value(labels.task[result.cell_id])


def agreement_row(result: CellResult, own: Agreement, drafted: list[CellResult], labels: Labels) -> tuple[Value, ...]:
    """Claim and identity of the drafted cells with the same cache, agreement without one."""
    claims = dict.fromkeys(in_words(other.cell, other.claim) for other in drafted or [result])
    if own.n:
        measured: tuple[Value, ...] = (
            Value(str(own.n)),
            shown(own.identical, 1, 100),
            shown(own.equal_tokens, 1, 100),
            first(own),
        )
    else:
        why = "not measured" if result.cell.is_comparable_uncached else "independent noise"
        measured = (Value(why, flag="warning"), *[Value(DASH)] * 3)
    return (*axes(result, labels), Value(", ".join(claims)), same_cache(drafted), *measured)


def same_cache(drafted: list[CellResult]) -> Value:
    """Drafted outputs that promise to equal draft-free ones with the same cache, and how many do."""
    promised = [result for result in drafted if result.claim_holds is not None]
    checked = sum(result.identity.n_checked for result in promised)
    if not checked:
        return Value("not promised" if drafted and not promised else "not checked")
    held = all(result.claim_holds for result in promised)
    text = f"{sum(result.identity.n_identical for result in promised)}/{checked}"
    return Value(f"{text} ✓", flag="good") if held else Value(f"{text} {BROKEN}", flag="alarm")


def cost_row(result: CellResult, own: Agreement, labels: Labels) -> tuple[Value, ...]:
    """Forwards, positions and right answers, with the cache and without."""
    return (
        *axes(result, labels),
        shown(own.nfe, 1),
        shown(own.nfe_uncached, 1),
        shown(own.positions, 0),
        shown(own.positions_uncached, 0),
        shown(own.positions_ratio),
        shown(own.correct, 1, 100),
        shown(own.correct_uncached, 1, 100),
        points(own.correct_difference),
    )


def first(own: Agreement) -> Value:
    """Where outputs part, if any do."""
    return Value(DASH if own.first_divergence is None else f"{own.first_divergence:g}")
