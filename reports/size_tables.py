"""The tables of a size study: forwards and throughput, the parts of a round, and what verification costs.

The rows of a method and budget stand side by side, one a target, the smallest first.
"""

from collections.abc import Callable
from dataclasses import replace

from reports import marks
from reports.labels import Labels
from reports.model import Head, Table, Value
from reports.shown import shown
from reports.size_groups import SizeGroup, parameters, size, target
from reports.text import TIMES
from sweeps.aggregate import CellResult
from sweeps.statistics import Estimate

Row = Callable[[CellResult, Labels], tuple[Value, ...]]

WHO = (
    Head(name="Method", number=False),
    Head(name="D", meaning="budget: draft states verified beside the root"),
    Head(name="Target", number=False),
)
RESULTS = (
    *WHO,
    Head(name="Parameters", meaning="weights of the target; a tied head counts once"),
    Head(name="Prompts", meaning="decoded prompts, of those asked for"),
    Head(name="NFE", unit="forwards/prompt", meaning="target forwards, mean over prompts"),
    Head(name="NFE reduction", unit=TIMES, meaning="draft-free NFE over NFE, the same prompts"),
    Head(name="Accepted", unit="states/round", meaning="draft states on the walk"),
    Head(name="Throughput ratio", unit=TIMES, meaning="tokens/s over draft-free tokens/s, interleaved"),
)
PARTS = (
    *WHO,
    Head(name="Timed", meaning="prompts timed on both sides"),
    Head(name="Round", unit="ms", meaning="all of a round"),
    Head(name="Drafter", unit="ms"),
    Head(name="Drafter", unit="% of round"),
    Head(name="Verification", unit="ms", meaning="the forward over root and drafts"),
    Head(name="Verification", unit="% of round", meaning="the forward over root and drafts"),
    Head(name="Walk", unit="ms", meaning="the target's own next commits, the output head included"),
    Head(name="Walk", unit="% of round"),
    Head(name="Rest", unit="ms", meaning="what is in none of the three"),
    Head(name="Rest", unit="% of round"),
)
COSTS = (
    *WHO,
    Head(name="Positions", unit="draft-free", meaning="token positions of a draft-free forward"),
    Head(name="Positions", unit="a round", meaning="token positions of a verification forward, all copies"),
    Head(name="Draft-free round", unit="ms", meaning="interleaved with this cell"),
    Head(name="Draft-free forward", unit="ms", meaning="of it in the forward"),
    Head(name="Verification", unit="ms", meaning="the forward over root and drafts"),
    Head(name="Cost", unit=TIMES, meaning="verification over draft-free forward, measured"),
    Head(name="Break-even", unit=f"{TIMES}, predicted", meaning="the cost below which the NFE reduction is a speed-up"),
)


def results_table(group: SizeGroup, labels: Labels) -> Table:
    """Forwards and throughput ratios, as in the main table."""
    return table(f"Forwards and throughput by size: {group.title}", RESULTS, results_row, group, labels)


def parts_table(group: SizeGroup, labels: Labels) -> Table:
    """Where the time of a round goes."""
    return table(f"Parts of a round by size: {group.title}", PARTS, parts_row, group, labels)


def costs_table(group: SizeGroup, labels: Labels) -> Table:
    """What the forwards of copies cost, and might."""
    return table(f"Cost of verification by size: {group.title}", COSTS, costs_row, group, labels)


def table(caption: str, heads: tuple[Head, ...], row: Row, group: SizeGroup, labels: Labels) -> Table:
    """A row for each cell, grouped by task."""
    groups = tuple((task, tuple(row(result, labels) for result in own)) for task, own in group.by_task(labels))
    return Table(caption=caption, heads=heads, groups=groups)


def results_row(result: CellResult, labels: Labels) -> tuple[Value, ...]:
    """Forwards, and the throughput ratio in a column of its own."""
    return (
        marks.method(labels, result, counted=True),
        Value(labels.budget(result.cell)),
        Value(target(result)),
        Value(parameters(size(result))),
        marks.prompts(result),
        shown(result.nfe, 1),
        shown(result.nfe_reduction),
        shown(result.accepted_per_round),
        marks.doubted(shown(result.throughput.ratio), result),
    )


def parts_row(result: CellResult, labels: Labels) -> tuple[Value, ...]:
    """Milliseconds and shares of the parts of a round."""
    time = result.round_time
    parts = (
        (time.drafter, time.drafter_share),
        (time.forward, time.forward_share),
        (time.walk, time.walk_share),
        (remainder(time.rest), remainder(time.rest_share)),
    )
    values = (value for part, share in parts for value in (shown(part), shown(share, 1, 100)))
    return (
        marks.method(labels, result),
        Value(labels.budget(result.cell)),
        Value(target(result)),
        Value(str(time.n)),
        *(marks.doubted(value, result) for value in (shown(time.total), *values)),
    )


def costs_row(result: CellResult, labels: Labels) -> tuple[Value, ...]:
    """What the positions of a verification cost beside those of a draft-free forward."""
    time = result.round_time
    timed = (time.draft_free, time.draft_free_forward, time.forward, time.cost_ratio, time.break_even)
    return (
        marks.method(labels, result),
        Value(labels.budget(result.cell)),
        Value(target(result)),
        shown(time.draft_free_positions, 1),
        shown(time.positions, 1),
        *(marks.doubted(shown(estimate), result) for estimate in timed),
    )


def remainder(estimate: Estimate) -> Estimate:
    """What is left over, without an interval: near zero a range of factors says nothing."""
    return replace(estimate, low=None, high=None)
