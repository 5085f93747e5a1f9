"""What a size study found, in sentences: one method at a time, the smallest target held against the largest.

Forwards are said apart from times. Only timings that passed their gates speak of time, broken cells speak of nothing,
and shares count as different where their intervals lie apart.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reports import marks
from reports.labels import Labels
from reports.model import Level, Lines
from reports.phrases import chance
from reports.size_groups import SizeGroup, parameters, size, target
from reports.text import TIMES, count, number, percent, unsaid
from reports.winners import competes
from sweeps.aggregate import CellResult
from sweeps.statistics import Estimate

Read = Callable[[CellResult], Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One method, task, budget and setting on the smallest and on the largest target."""

    small: CellResult
    large: CellResult

    @property
    def sound(self) -> bool:
        """Whether both timings passed their gates."""
        return not (self.small.throughput.doubts or self.large.throughput.doubts)


def findings(groups: Sequence[SizeGroup], labels: Labels) -> Lines:
    """The lines of all groups: forwards, shares of a round, cost of verification, by method."""
    lines: list[tuple[Level, str]] = []
    for ends_of in dict.fromkeys(map(outer, groups)):
        own = [group for group in groups if outer(group) == ends_of]
        for method in dict.fromkeys(labels.method[result.cell_id] for group in own for result in group.results):
            named = method if own[0].rule == "standard" else f"{method} ({own[0].rule})"
            lines += [("note", text) for text in of_method(named, beside(own, method, labels))]
        lines += [("warning", text) for text in left_out(own)]
    return Lines(lines=tuple(lines) or (("note", "No method has cells on both sizes that can be compared."),))


def outer(group: SizeGroup) -> tuple[str, str, str, str]:
    """What groups must share to be spoken of together: family, commit rule, smallest and largest target."""
    return group.family, group.rule, group.targets[0], group.targets[-1]


def beside(groups: Iterable[SizeGroup], method: str, labels: Labels) -> list[Beside]:
    """The cells of a method that the smallest and the largest target of their group both have."""
    pairs = []
    for group in groups:
        by_place: dict[tuple[str, int], dict[str, CellResult]] = {}
        for result in group.results:
            if labels.method[result.cell_id] == method and competes(result):
                place = labels.task[result.cell_id], result.cell.drafter.budget
                by_place.setdefault(place, {})[target(result)] = result
        first, last = group.targets[0], group.targets[-1]
        pairs += [Beside(small=own[first], large=own[last]) for own in by_place.values() if {first, last} <= own.keys()]
    return pairs


def of_method(method: str, pairs: list[Beside]) -> list[str]:
    """Up to three sentences on one method."""
    if not pairs:
        return []
    small, large = (f"{target(r)} ({parameters(size(r))})" for r in (pairs[0].small, pairs[0].large))
    said = [
        f"{method}, forwards: NFE reduction {spread(pairs, small, large, lambda r: r.nfe_reduction, TIMES)}, accepted "
        f"{spread(pairs, small, large, lambda r: r.accepted_per_round, 'states a round')}; "
        f"{basis(pairs, lambda r: r.nfe_reduction)}."
    ]
    sound = [pair for pair in pairs if pair.sound]
    if sound:
        said.append(shares(method, sound, small, large))
        said.append(costs(method, sound, small, large))
    return said


def shares(method: str, pairs: list[Beside], small: str, large: str) -> str:
    """How a round divides between drafter and verification on both sizes."""
    both = [(pair.small.round_time.drafter_share, pair.large.round_time.drafter_share) for pair in pairs]
    known = [(a, b) for a, b in both if a.has_interval and b.has_interval]
    bare = [a for a, b in both if not (a.has_interval and b.has_interval)]
    less, more = sum(b.below(a.low or 0.0) for a, b in known), sum(a.below(b.low or 0.0) for a, b in known)
    text = (
        f"{method}, a round: {spread(pairs, small, large, lambda r: r.round_time.drafter_share, '%')} of it are the "
        f"drafter's, {spread(pairs, small, large, lambda r: r.round_time.forward_share, '%')} are verification; "
        f"{basis(pairs, lambda r: r.round_time.total)}."
    )
    if known:
        text += (
            f" On the larger target the drafter's share is smaller in {less}, larger in {more} of "
            f"{count(len(known), 'comparison')} (intervals apart{doubts(less, more, len(known))})."
        )
    return f"{text} {rest}" if (rest := unsaid(bare, "comparison")) else text


def costs(method: str, pairs: list[Beside], small: str, large: str) -> str:
    """What verification costs, what it might cost, and what throughput was measured."""
    text = (
        f"{method}, time: a verification costs {spread(pairs, small, large, lambda r: r.round_time.cost_ratio)} "
        "draft-free forwards; the NFE reduction would be a speed-up (predicted) below "
        f"{spread(pairs, small, large, lambda r: r.round_time.break_even)}."
    )
    sides = []
    for name, ratios in (
        (small, [pair.small.throughput.ratio for pair in pairs]),
        (large, [pair.large.throughput.ratio for pair in pairs]),
    ):
        fast, slow = sum(ratio.above() for ratio in ratios), sum(ratio.below() for ratio in ratios)
        maybe = doubts(fast, slow, len(ratios))
        sides.append(f"faster in {fast}, slower in {slow} of {count(len(ratios), 'timing')} on {name}{maybe}")
    return f"{text} Measured against draft-free: {', '.join(sides)}, beyond their intervals."


def doubts(one: int, other: int, n: int) -> str:
    """`; 1 of 8 is what chance may give`, for each of two counts of differences that is no more than that."""
    return "".join(f"; {said}" for hits in dict.fromkeys((one, other)) if (said := chance(hits, n)))


def spread(pairs: list[Beside], small: str, large: str, read: Read, unit: str = "") -> str:
    """The least and the greatest value on both targets: `1.5 to 2.1 on a and 1.6 to 2.4 on b`."""
    sides = [[read(pair.small).value for pair in pairs], [read(pair.large).value for pair in pairs]]
    return " and ".join(
        f"{ends([value for value in values if value is not None], unit)} on {name}"
        for values, name in zip(sides, (small, large), strict=True)
    )


def basis(pairs: list[Beside], read: Read) -> str:
    """What a spread is of: how many comparisons, and of how many prompts each."""
    prompts = [read(result).n for pair in pairs for result in (pair.small, pair.large)]
    least, most = min(prompts), max(prompts)
    each = count(most, "prompt") if least == most else f"{least} to {most} prompts"
    return f"least to greatest of {count(len(pairs), 'comparison')} ({each} each)"


def ends(values: list[float], unit: str) -> str:
    """The least and the greatest of some numbers with their unit; one number where they are shown alike."""
    if not values:
        return "n/a"
    least, most = ((percent(v).removesuffix(" %") if unit == "%" else number(v)) for v in (min(values), max(values)))
    return (least if least == most else f"{least} to {most}") + (f" {unit}" if unit else "")


def left_out(groups: list[SizeGroup]) -> list[str]:
    """Cells that the sentences leave out, and why."""
    results = [result for group in groups for result in group.results]
    doubted = sum(bool(result.throughput.doubts) for result in results)
    by = "" if groups[0].rule == "standard" else f" by {groups[0].rule}"
    lines = [text] if (text := marks.left_out(results, by)) else []
    if doubted:
        lines.append(f"{doubted:,} of {count(len(results), 'timing')}{by} failed a gate and are not counted in times.")
    return lines
