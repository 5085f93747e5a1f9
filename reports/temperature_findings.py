"""What a temperature study found, in sentences that follow from its numbers alone, the paper's own figures beside them.

A comparison of the noise modes counts as a difference when its 95 % interval excludes 1. Quality has collapsed where
the share of right answers is at most half of that at the lowest temperature, there and at every higher one.
"""

from collections.abc import Iterable, Mapping, Sequence

from reports.labels import Labels
from reports.model import Level, Lines
from reports.noise_modes import Pair
from reports.text import DASH, count, number, percent
from sweeps.aggregate import CellResult
from sweeps.draws import bound_holds_for

HOT, COLD = 2.0, 0.5
MOST_NAMED = 12
PAPER = (
    "The paper's own figures (SDAR-8B, 256 tokens), for comparison: up to T = 1 draws equal the argmax 99 to 99.8 % of "
    "the time and the noise modes are within 2 %; at T = 2 draft-free decoding takes 267.1 forwards, independent noise "
    "257.5, coupled 187.2; correctness is .11 from T = 1.5 on, then 0."
)
Line = tuple[Level, str]


def findings(results: Sequence[CellResult], pairs: Sequence[Pair], labels: Labels) -> Lines:
    """The sentences of one group of cells."""
    lines: list[Line] = [
        *hot(pairs),
        *cold(pairs),
        *collapse(results, labels),
        *argmax(results),
        *bound(results, labels),
        ("note", PAPER),
    ]
    return Lines(lines=tuple(lines))


def hot(pairs: Sequence[Pair]) -> Iterable[Line]:
    """Whether independent noise needs more forwards than coupled from T = 2 on."""
    here = [pair for pair in pairs if pair.temperature >= HOT]
    if here:
        yield "note", f"From T = {HOT:g} on, forwards for each generated token: {verdict(here)} {ratios(here)}"


def cold(pairs: Sequence[Pair]) -> Iterable[Line]:
    """Whether the two agree within noise up to T = 0.5."""
    here = [pair for pair in pairs if pair.temperature <= COLD]
    if not here:
        return
    apart = [pair for pair in here if pair.more or pair.fewer]
    text = f"Up to T = {COLD:g} the noise modes agree within their 95 % intervals in {len(here) - len(apart)} of "
    yield "note", f"{text}{count(len(here), 'comparison')}. {ratios(here)}"


def verdict(pairs: Sequence[Pair]) -> str:
    """How the comparisons came out, counted."""
    more, fewer = sum(pair.more for pair in pairs), sum(pair.fewer for pair in pairs)
    if more == len(pairs):
        return f"independent noise needs more than coupled in all of {count(more, 'comparison')}."
    if not more:
        text = f"independent noise does not need more than coupled in any of {count(len(pairs), 'comparison')}"
    else:
        text = f"independent noise needs more than coupled in {more} of {count(len(pairs), 'comparison')}"
    rest = len(pairs) - more - fewer
    return f"{text}; in {fewer} it needs fewer, and in {rest} the 95 % interval includes no difference."


def ratios(pairs: Sequence[Pair]) -> str:
    """The least and the greatest ratio."""
    values = [pair.ratio.value for pair in pairs if pair.ratio.value is not None]
    ends = dict.fromkeys(number(end) for end in (min(values), max(values)))
    return f"Independent over coupled: {' to '.join(ends)}."


def where(result: CellResult, labels: Labels) -> str:
    """Method, budget and task of a cell."""
    budget = "" if result.cell.is_baseline else f" at D = {result.cell.drafter.budget}"
    return f"{labels.method[result.cell_id]}{budget} on {labels.task[result.cell_id]}"


def collapse(results: Sequence[CellResult], labels: Labels) -> Iterable[Line]:
    """From which temperature on the answers are lost, by task, of the draft-free cells."""
    for task in dict.fromkeys(labels.task[result.cell_id] for result in results):
        shares = quality(result for result in results if labels.task[result.cell_id] == task)
        if len(shares) < 2:
            continue
        coldest, hottest = min(shares), max(shares)
        lost = lost_from(shares)
        told = ", ".join(f"{percent(right, 0)} of {n} at T = {level:g}" for level, (right, n) in shares.items())
        if not shares[coldest][0]:
            text = f"no answer is right at T = {coldest:g} already, so nothing can be said of a collapse"
        elif lost is not None:
            text = f"quality has collapsed from T = {lost:g} on"
        else:
            text = f"quality has not collapsed up to T = {hottest:g}"
        yield "note", f"{task}, draft-free: {text} (right answers: {told})."


def quality(results: Iterable[CellResult]) -> dict[float, tuple[float, int]]:
    """Share of right answers and number of answers of the draft-free cells, by ascending temperature."""
    free = [result for result in results if result.cell.is_baseline and result.correct.value is not None]
    return {level: pooled(free, level) for level in sorted({result.cell.decode.temperature for result in free})}


def lost_from(shares: Mapping[float, tuple[float, int]]) -> float | None:
    """The temperature from which on at most half of the coldest one's share of right answers is left."""
    most = shares[min(shares)][0] if shares else 0.0
    lost = [level for level in shares if all(shares[t][0] <= most / 2 for t in shares if t >= level)]
    return min(lost) if most and lost else None


def pooled(free: Sequence[CellResult], temperature: float) -> tuple[float, int]:
    """Share of right answers and number of them at a temperature; both noise modes sample one distribution."""
    here = [(r.correct.value, r.correct.n) for r in free if r.cell.decode.temperature == temperature]
    n = sum(size for _, size in here)
    return sum(value * size for value, size in here if value is not None) / n, n


def argmax(results: Sequence[CellResult]) -> Iterable[Line]:
    """How often a draw is the argmax, at each temperature, over the draft-free cells."""
    by_level: dict[float, list[float]] = {}
    for result in results:
        share, temperature = result.draws.argmax.value, result.cell.decode.temperature
        if result.cell.is_baseline and share is not None and temperature > 0:
            by_level.setdefault(temperature, []).append(share)
    if by_level:
        told = [f"{spread(shares)} at T = {level:g}" for level, shares in sorted(by_level.items())]
        yield "note", f"Draws equal to the argmax, draft-free, over tasks and noise modes: {', '.join(told)}."


def spread(shares: Sequence[float]) -> str:
    """The least and the greatest of some shares."""
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low.removesuffix(' %')} {DASH} {high}"


def bound(results: Sequence[CellResult], labels: Labels) -> Iterable[Line]:
    """Whether measured agreement keeps above the bound where the proposition speaks of it."""
    drawn = [r for r in results if r.cell.decode.temperature > 0 and r.draws.bound.value is not None]
    held = [result for result in drawn if bound_holds_for(result.cell.decode)]
    below = [result for result in held if result.draws.below_bound]
    if below:
        told = "; ".join(f"{where(r, labels)}, T = {r.cell.decode.temperature:g}" for r in below[:MOST_NAMED])
        yield (
            "warning",
            f"Agreement lies wholly below (1-d)/(1+d) in {len(below)} of {count(len(held), 'cell')}: {told}.",
        )
    elif held:
        text = "The measured agreement of no cell lies wholly below (1-d)/(1+d)"
        yield "note", f"{text}: {count(len(held), 'cell')} with coupled noise and confidence top1."
    if any(r.cell.decode.noise == "coupled" and r.cell.decode.confidence == "sampled" for r in drawn):
        yield (
            "note",
            "With confidence sampled the position depends on the noise at that position, so the bound is not "
            "guaranteed and is not checked.",
        )
