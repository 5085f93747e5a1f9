"""What a temperature study found, in sentences that follow from its numbers alone, the paper's own figures beside them.

A comparison of the noise modes counts as a difference when its 95 % interval excludes 1. Quality has collapsed where
the interval of the share of right answers ends at or below half of the share at the lowest temperature, there and at
every higher one. Where there is no interval nothing is said.
"""

from collections.abc import Iterable, Sequence

from reports import marks
from reports.labels import Labels
from reports.model import Level, Lines
from reports.noise_modes import Pair
from reports.phrases import chance
from reports.temperature_quality import Level as Temperature
from reports.temperature_quality import Quality
from reports.text import DASH, count, interval, no_interval, number, percent, unsaid
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


def findings(
    results: Sequence[CellResult], pairs: Sequence[Pair], qualities: Sequence[Quality], labels: Labels
) -> Lines:
    """The sentences of one group of cells."""
    lines: list[Line] = [
        *hot(pairs),
        *cold(pairs),
        *collapse(qualities),
        *argmax(qualities),
        *bound(results, labels),
        ("note", PAPER),
    ]
    return Lines(lines=tuple(lines))


def hot(pairs: Sequence[Pair]) -> Iterable[Line]:
    """Whether independent noise needs more forwards than coupled from T = 2 on."""
    here = [pair for pair in pairs if pair.temperature >= HOT]
    if here:
        told = sound(here)
        said = [verdict(told), ratios(told)] if told else []
        start = f"From T = {HOT:g} on, forwards for each generated token:"
        yield "note", " ".join([start, *said, *crosses(here)])


def cold(pairs: Sequence[Pair]) -> Iterable[Line]:
    """Whether the two agree within noise up to T = 0.5."""
    here = [pair for pair in pairs if pair.temperature <= COLD]
    if here:
        told = sound(here)
        judged = [pair for pair in told if pair.judged]
        apart = sum(pair.more or pair.fewer for pair in judged)
        text = f"the noise modes agree within their 95 % intervals in {len(judged) - apart} of "
        doubt = chance(apart, len(judged), sides=2)
        said = [text + f"{count(len(judged), 'comparison')}{f' (apart: {doubt})' if doubt else ''}."] if judged else []
        said += [*open_ones(told), ratios(told)] if told else []
        yield "note", f"Up to T = {COLD:g}: {' '.join([*said, *crosses(here)])}"


def sound(pairs: Sequence[Pair]) -> list[Pair]:
    """The comparisons without a broken cell: no sentence counts another."""
    return [pair for pair in pairs if marks.are_sound(pair.coupled, pair.independent)]


def crosses(pairs: Sequence[Pair]) -> Iterable[str]:
    """The comparisons of which a cell is broken, in a sentence."""
    if text := marks.crossed([(pair.coupled, pair.independent) for pair in pairs], "comparison"):
        yield text


def verdict(pairs: Sequence[Pair]) -> str:
    """How the comparisons came out, counted; those without interval apart."""
    judged = [pair for pair in pairs if pair.judged]
    return " ".join([*([counted(judged)] if judged else []), *open_ones(pairs)])


def open_ones(pairs: Sequence[Pair]) -> Iterable[str]:
    """The comparisons that have no interval, in a sentence."""
    if text := unsaid([pair.ratio for pair in pairs if not pair.judged], "comparison"):
        yield text


def counted(pairs: Sequence[Pair]) -> str:
    """How the comparisons that have an interval came out."""
    more, fewer = sum(pair.more for pair in pairs), sum(pair.fewer for pair in pairs)
    if more == len(pairs):
        all_of = "the one comparison" if more == 1 else f"all of {count(more, 'comparison')}"
        return f"independent noise needs more than coupled in {all_of}."
    if not more:
        text = f"independent noise does not need more than coupled in any of {count(len(pairs), 'comparison')}"
    else:
        text = f"independent noise needs more than coupled in {more} of {count(len(pairs), 'comparison')}"
    rest = len(pairs) - more - fewer
    doubts = "".join(f"; {doubt}" for hits in dict.fromkeys((more, fewer)) if (doubt := chance(hits, len(pairs))))
    return f"{text}; in {fewer} it needs fewer, and in {rest} the 95 % interval includes no difference{doubts}."


def ratios(pairs: Sequence[Pair]) -> str:
    """The least and the greatest ratio."""
    values = [pair.ratio.value for pair in pairs if pair.ratio.value is not None]
    ends = dict.fromkeys(number(end) for end in (min(values), max(values)))
    return f"Independent over coupled: {' to '.join(ends)}."


def where(result: CellResult, labels: Labels) -> str:
    """Method, budget and task of a cell."""
    budget = "" if result.cell.is_baseline else f" at D = {result.cell.drafter.budget}"
    return f"{labels.method[result.cell_id]}{budget} on {labels.task[result.cell_id]}"


def collapse(qualities: Sequence[Quality]) -> Iterable[Line]:
    """From which temperature on the answers are lost, by task, of the draft-free cells."""
    for quality in qualities:
        if len(quality.answered) > 1:
            told = ", ".join(answers(level) for level in quality.answered)
            yield "note", f"{quality.name}, draft-free: {fate(quality)} Right answers (95 %): {told}."


def fate(quality: Quality) -> str:
    """Whether quality has collapsed, as far as the intervals show it."""
    coldest, hottest = quality.answered[0], quality.answered[-1]
    lost = quality.lost_from
    if not coldest.right.value:
        return f"no answer is right at T = {coldest.temperature:g} already, so nothing can be said of a collapse."
    if lost is not None:
        text = f"quality has collapsed from T = {lost:g} on: the interval ends at or below half of the share at "
        colder = [level for level in quality.answered if level.temperature < lost]
        doubt = "" if quality.kept(colder[-1]) else f" At T = {colder[-1].temperature:g}: too few prompts to say."
        return f"{text}T = {coldest.temperature:g}.{doubt}"
    if bare := [level.right for level in (coldest, hottest) if not level.right.has_interval]:
        return f"{no_interval(bare)}: nothing can be said of a collapse."
    if quality.kept(hottest):
        return f"quality has not collapsed up to T = {hottest.temperature:g}."
    return f"too few prompts to say whether quality has collapsed at T = {hottest.temperature:g}."


def answers(level: Temperature) -> str:
    """The share of right answers at one temperature, with its interval and what it is of."""
    span = f" ({interval(level.right, 0, 100)})" if level.right.has_interval else ""
    of = count(level.right.n, "prompt") + (f" in {len(level.modes)} noise modes" if len(level.modes) > 1 else "")
    cross = f" {marks.BROKEN}" if marks.BROKEN in level.mark else ""  # a noise mode is broken and not in it
    return f"{percent(level.right.value, 0)}{span} of {of} at T = {level.temperature:g}{cross}"


def argmax(qualities: Sequence[Quality]) -> Iterable[Line]:
    """How often a draw is the argmax, at each temperature, draft-free, as the picture shows it."""
    by_level: dict[float, list[float]] = {}
    for level in (level for quality in qualities for level in quality.levels if level.temperature > 0):
        if level.argmax.value is not None:
            by_level.setdefault(level.temperature, []).append(level.argmax.value)
    if by_level:
        told = [f"{spread(shares)} at T = {level:g}" for level, shares in sorted(by_level.items())]
        over = ", least and greatest of " + count(len(qualities), "task") if len(qualities) > 1 else ""
        over = over if not any(quality.mode for quality in qualities) else ", over tasks and noise modes"
        yield "note", f"Draws equal to the argmax, draft-free{over}: {', '.join(told)}."


def spread(shares: Sequence[float]) -> str:
    """The least and the greatest of some shares."""
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low.removesuffix(' %')} {DASH} {high}"


def bound(results: Sequence[CellResult], labels: Labels) -> Iterable[Line]:
    """Whether measured agreement keeps above the bound where the proposition speaks of it."""
    measured = [r for r in results if r.cell.decode.temperature > 0 and r.draws.bound.value is not None]
    drawn = [result for result in measured if marks.are_sound(result)]
    of_it = [result for result in drawn if bound_holds_for(result.cell.decode)]
    held = [result for result in of_it if result.draws.agreement.has_interval]
    below = [result for result in held if result.draws.below_bound]
    if below:
        doubt = f" ({text})" if (text := chance(len(below), len(held))) else ""
        told = "; ".join(f"{where(r, labels)}, T = {r.cell.decode.temperature:g}" for r in below[:MOST_NAMED])
        yield (
            "warning",
            f"Agreement lies wholly below (1-d)/(1+d) in {len(below)} of {count(len(held), 'cell')}{doubt}: {told}.",
        )
    elif held:
        text = "The measured agreement of no cell lies wholly below (1-d)/(1+d)"
        yield "note", f"{text}: {count(len(held), 'cell')} with coupled noise and confidence top1."
    if text := marks.left_out([result for result in measured if bound_holds_for(result.cell.decode)]):
        yield "note", f"Agreement against (1-d)/(1+d): {text}"
    if text := unsaid([r.draws.agreement for r in of_it if not r.draws.agreement.has_interval], "cell"):
        yield "note", f"Agreement against (1-d)/(1+d): {text}"
    if any(r.cell.decode.noise == "coupled" and r.cell.decode.confidence == "sampled" for r in drawn):
        yield (
            "note",
            "With confidence sampled the position depends on the noise at that position, so the bound is not "
            "guaranteed and is not checked.",
        )
