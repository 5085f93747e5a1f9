"""What a transfer study shows, in words: what transferring costs, the worst pair, who is still ahead of the baselines.

Means over pairs describe the pairs of this run and say nothing of others. Pairs without an interval are counted apart,
and those with a broken cell are not counted.
"""

from collections.abc import Iterable
from statistics import fmean

from reports import marks
from reports.contests import verdict
from reports.frames import Frames
from reports.model import Level
from reports.phrases import chance, evidence
from reports.text import count, percent, unsaid
from reports.transfer_lines import Line, fewest, loss, versus
from reports.transfer_tables import scaled
from reports.transfers import Condition
from sweeps.aggregate import CellResult
from sweeps.statistics import Estimate

BASELINES = ((False, "the best baseline without training"), (True, "the best of all baselines"))


def findings(condition: Condition, frames: Frames) -> list[tuple[Level, str]]:
    """The loss over pairs, and the standing against baselines."""
    lines = list(condition.transferred())
    return [
        ("note", text)
        for text in (loss_line(condition, lines, frames), standing_line(condition, lines, frames))
        if text
    ]


def loss_line(condition: Condition, lines: list[Line], frames: Frames) -> str:
    """Mean and range of the losses, and the pair that loses most."""
    pairs = [(line, native) for line in lines if (native := condition.native(line)) is not None]
    losses = [(loss(versus(frames, line, native)), line) for line, native in sound(pairs)]
    known = [(estimate, line) for estimate, line in losses if estimate.has_interval]
    if not pairs:
        return "No transferred drafter has a native one beside it: nothing can be said of what transferring costs."
    bare = unsaid([estimate for estimate, _ in losses if not estimate.has_interval], "pair")
    crossed = marks.crossed([cells_of(*pair) for pair in pairs], "pair")
    if not known:
        return " ".join(filter(None, (bare, crossed)))
    values = [value_of(estimate) for estimate, _ in known]
    worst, least = max(known, key=lambda pair: value_of(pair[0])), min(known, key=lambda pair: value_of(pair[0]))
    text = f"Transferred drafters' loss is {percent(fmean(values))} of the native NFE reduction, the mean of "
    text += f"{count(len(known), 'pair')}"
    if len(known) > 1:
        text += f", from {percent(value_of(least[0]))} ({named(condition, least[1])}) to {percent(value_of(worst[0]))}"
    text += f"; the worst is {named(condition, worst[1])} (95 %: {evidence(scaled(worst[0]))})."
    more, fewer = sum(one.above(0.0) for one, _ in known), sum(one.below(0.0) for one, _ in known)
    text += f" Beyond their intervals {more} of {len(known)} lose{doubt(more, len(known))} and {fewer} gain"
    text += f"{doubt(fewer, len(known))}."
    return " ".join(filter(None, (text, bare, crossed)))


def cells_of(line: Line, other: Line) -> tuple[CellResult, ...]:
    """The cells that a comparison rests on."""
    return line.results + other.results


def sound(pairs: Iterable[tuple[Line, Line]]) -> list[tuple[Line, Line]]:
    """The pairs without a broken cell: no sentence counts another."""
    return [pair for pair in pairs if marks.are_sound(*cells_of(*pair))]


def doubt(hits: int, n: int) -> str:
    """What a count of differences may be by chance, in brackets; empty where it is more."""
    return f" ({maybe})" if (maybe := chance(hits, n)) else ""


def value_of(estimate: Estimate) -> float:
    """The value of an estimate that has one."""
    assert estimate.value is not None
    return estimate.value


def named(condition: Condition, line: Line) -> str:
    """A pair: the drafter and the target it is used on."""
    return f"{condition.names[line.drafter, line.digest]} on {line.target}"


def standing_line(condition: Condition, lines: list[Line], frames: Frames) -> str:
    """How many transferred pairs are still ahead of the best baselines."""
    texts = []
    for trained, what in BASELINES:
        held = [(line, fewest(condition.baselines(line, trained=trained))) for line in lines]
        pairs = [(line, rival) for line, rival in held if rival is not None]
        if trained and all(not rival.digest for _, rival in pairs):
            continue  # no trained baseline is the best one anywhere: it was all said above
        ratios = [(versus(frames, line, rival), rival) for line, rival in sound(pairs)]
        judged = [(ratio, rival) for ratio, rival in ratios if ratio.has_interval]
        if n := len(judged):
            ahead, behind = (sum(verdict(ratio) == side for ratio, _ in judged) for side in (1, -1))
            rivals = ", ".join(dict.fromkeys(rival.name for _, rival in judged))
            texts.append(
                f"{ahead} of {count(n, 'transferred pair')} need fewer forwards than {what} on their target "
                f"({rivals}) beyond the interval{doubt(ahead, n)}, {behind} need more{doubt(behind, n)}, "
                f"{n - ahead - behind} are open."
            )
        bare = unsaid([ratio for ratio, _ in ratios if not ratio.has_interval], "comparison")
        crossed = marks.crossed([cells_of(*pair) for pair in pairs], "comparison")
        texts += [f"Against {what} {rest}" for rest in (bare, crossed) if rest]
    return " ".join(filter(None, texts))


def identity_line(condition: Condition) -> tuple[Level, str]:
    """Whether every transferred cell that promises to equal draft-free decoding does."""
    results = [result for line in condition.transferred() for result in line.results]
    promised = [result for result in results if result.claim_holds is not None]
    compared = sum(result.identity.n_checked for result in promised)
    equal = sum(result.identity.n_identical for result in promised)
    cells = count(len(promised), "transferred cell")
    if not promised:
        return "note", "No transferred cell promises to equal draft-free decoding, or none could be compared."
    approximate = any(result.agreement is not None for result in promised)
    what = "draft-free decoding" + (" (of approximate caches: with the same cache)" if approximate else "")
    if all(result.claim_holds for result in promised):
        return "good", f"All {compared:,} generations of {cells} that promise identity equal {what}."
    return "alarm", f"Of {compared:,} generations of {cells} that promise identity, {equal:,} equal {what}."
