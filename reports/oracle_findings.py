"""What oracles show, in words: which of them needs fewer forwards, and whether the joint bound is what arithmetic says.

All ratios are of forwards on the same prompts at the same budget.
"""

from collections.abc import Iterable

from reports import marks
from reports.contests import JOINT, POSITION, TOKEN, Contest, duel, forwards_ratio, verdict
from reports.frames import Frames
from reports.model import Level
from reports.phrases import chance, span
from reports.text import count, interval, number, percent, unsaid
from sweeps.bound import fewest_forwards
from sweeps.merge import NO_ROWS


def duel_lines(own: tuple[Contest, ...], frames: Frames) -> list[tuple[Level, str]]:
    """Which oracle needs fewer forwards on this target, at the largest budget and over all of them."""
    fought = [contest for contest in own if duel(contest)]
    held = [contest for contest in fought if marks.are_sound(*duel(contest)[0])]
    crossed = marks.crossed([pair for contest in fought for pair in duel(contest)], "duel")
    if not held:
        return [("note", crossed)] if crossed else []
    budget = max(contest.budget for contest in held)
    ratio = forwards_ratio(frames, [pair for contest in held if contest.budget == budget for pair in duel(contest)])
    if ratio.value is None:
        return []
    level = "95 %: " if interval(ratio) else ""
    evidence = f"D = {budget}, {count(ratio.n, 'prompt')}, all tasks; {level}{span(ratio)}"
    who = verdict(ratio)
    if not ratio.has_interval:
        text = (
            "Nothing can be said of which oracle needs fewer forwards: NFE ratio token over position "
            f"{number(ratio.value)} ({evidence})."
        )
    elif who > 0:
        text = (
            f"The position oracle needs {number(ratio.value)} times fewer forwards than the token oracle ({evidence}): "
            "on this target the commit order, more than the tokens, is what should be predicted"
            f"{bound_share(held, budget, POSITION, frames)}."
        )
    elif who < 0:
        text = (
            "The position oracle does not need fewer forwards: the token oracle needs "
            f"{number(1 / ratio.value)} times fewer (NFE ratio token over position {number(ratio.value)}; {evidence}): "
            "on this target the tokens, more than the commit order, are what should be predicted"
            f"{bound_share(held, budget, TOKEN, frames)}."
        )
    else:
        text = (
            "It is not beyond doubt that the position oracle needs fewer forwards than the token oracle: NFE ratio "
            f"token over position {number(ratio.value)} ({evidence})."
        )
    each = [forwards_ratio(frames, duel(contest)) for contest in held]
    judged, bare = [one for one in each if one.has_interval], [one for one in each if not one.has_interval]
    ahead = sum(verdict(one) == 1 for one in judged)
    doubt = f" ({maybe})" if (maybe := chance(ahead, len(judged))) else ""
    said = [f"By task and budget the position oracle is ahead beyond its interval in {ahead} of {len(judged)}{doubt}."]
    told = [text, *(said if judged else []), unsaid(bare, "duel"), crossed]
    return [("note", " ".join(filter(None, told)))]


def bound_share(held: Iterable[Contest], budget: int, kind: str, frames: Frames) -> str:
    """How much of the joint bound an oracle reaches at a budget, over all tasks; empty without joint oracles."""
    here = [contest for contest in held if contest.budget == budget]
    pairs = [(joint, own) for c in here if (joint := c.oracle(JOINT)) and (own := c.oracle(kind))]
    part = forwards_ratio(frames, [pair for pair in pairs if marks.are_sound(*pair)])
    return "" if part.value is None else f" (alone it reaches {percent(part.value, 0)} of the joint bound)"


def bound_lines(own: tuple[Contest, ...], frames: Frames) -> list[tuple[Level, str]]:
    """Whether the joint oracle takes the rounds that arithmetic says, and nobody fewer."""
    gaps: dict[bool, list[int]] = {True: [], False: []}  # beyond the least possible: the joint oracle's, the others'
    for contest in own:
        for result in contest.results:
            for row in frames.rows.get(result.cell_id, NO_ROWS).generations.values():
                gap = row.counters.rounds - fewest_forwards(result.cell, row)
                gaps[result.cell.drafter.kind == JOINT].append(gap)
    joint, below = gaps[True], sum(gap < 0 for gap in (*gaps[True], *gaps[False]))
    if below:
        generations = count(below, "generation")
        return [("alarm", f"{generations} took fewer forwards than their budget allows: a count is wrong.")]
    if not joint:
        return []
    rule = "1 + (n - 1) / (D + 1) forwards, rounded up, for a block of n positions"
    if off := sum(gap > 0 for gap in joint):
        text = (
            f"In {off} of {count(len(joint), 'generation')} the joint oracle took more than the least possible forwards"
        )
        return [("warning", f"{text} ({rule}): the run left the recorded trajectory there (see Identity).")]
    text = f"In all {count(len(joint), 'generation')} the joint oracle took the least possible forwards"
    return [("good", f"{text} ({rule}); no drafter took fewer.")]
