"""What should be predicted: oracles that know part of the target's future, beside the drafters that have to guess it.

Oracles are bounds and no methods. Every drafter is shown as a share of the joint bound, and the position oracle is held
against the token oracle, both paired by prompt. The bound itself is checked: it follows from block lengths and budget.
"""

from collections.abc import Iterable
from dataclasses import replace

from reports.contests import JOINT, Contest, contests, duel, forwards_ratio, verdict
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Chart, Group, Head, Level, Lines, Part, Point, SectionInfo, Table, Value, notes_of
from reports.phrases import span
from reports.text import TIMES, count, has_interval, interval, no_interval, number, percent, unsaid
from sweeps.aggregate import CellResult
from sweeps.bound import least_forwards
from sweeps.merge import NO_ROWS
from sweeps.statistics import Estimate

MOST_SETTINGS = 8
MOST_ROWS = 300  # of a setting
HEADS = (
    Head(name="Method", number=False),
    Head(name="D", meaning="budget: draft states verified beside the root"),
    Head(name="Prompts"),
    Head(name="NFE", unit="forwards/prompt", meaning="target forwards, mean over prompts"),
    Head(name="NFE reduction", unit=TIMES, meaning="draft-free NFE over NFE, the same prompts"),
    Head(name="Share of the joint bound", unit="%", meaning="joint oracle's NFE over NFE, the same prompts and budget"),
)
DUEL_HEADS = (
    Head(name="Task", number=False),
    Head(name="D"),
    Head(name="Prompts", meaning="decoded with both oracles"),
    Head(name="Position oracle (bound)", unit=f"NFE reduction, {TIMES}"),
    Head(name="Token oracle (bound)", unit=f"NFE reduction, {TIMES}"),
    Head(name="Token over position", unit="NFE ratio", meaning="above 1: the position oracle needs fewer forwards"),
    Head(name="Needs fewer", number=False, meaning="beyond the interval"),
)
PAPER = (
    ("position", "GSM8K", "8", "5.4"),
    ("position", "GSM8K", "20", "7.2"),
    ("position", "MBPP", "8", "5.7"),
    ("position", "MBPP", "20", "8.2"),
    ("token", "its tasks", "20", "3.4 to 6.5"),
)
WINNER = {1: "position oracle", -1: "token oracle", 0: "neither, beyond doubt"}
LEAD = (
    "An oracle was told the target's real future, recorded draft-free for the same prompt, seed and temperature: its "
    "numbers are bounds, not methods. The position oracle drafts the true next positions with stale tokens and stops "
    "at the first wrong one; the token oracle goes by stale confidence and fills in the true tokens; the joint oracle "
    "knows both. A method's share of the joint bound is its NFE reduction over the joint oracle's at the same budget."
)


def info(frames: Frames) -> SectionInfo | None:
    """A group a setting that has oracles, and the paper's figures; None without oracles."""
    labels = labels_of(frames.results)
    settings = [
        (setting, contests(results, labels))
        for setting, results in labels.by_setting(frames.results)
        if any(result.cell.drafter.oracle and result.n for result in results)
    ]
    if not settings:
        return None
    groups = [
        Group(title=setting, parts=parts(setting, own, frames, labels), folded=place >= 3)
        for place, (setting, own) in enumerate(settings[:MOST_SETTINGS])
    ]
    more = max(0, len(settings) - MOST_SETTINGS)
    return SectionInfo(
        key="oracles",
        title="Oracles: what should be predicted",
        lead=LEAD,
        findings=notes_of(groups),
        groups=(*groups, Group(title="The paper's figures, for SDAR-8B (arXiv 2610.22543)", parts=(paper(),))),
        cuts=(f"{count(more, 'more setting')}; their numbers are in report-data/cells.csv",) if more else (),
    )


def parts(setting: str, own: tuple[Contest, ...], frames: Frames, labels: Labels) -> tuple[Part, ...]:
    """Sentences, the duel, the picture and the table of one setting."""
    lines = [*duel_lines(own, frames), *bound_lines(own, frames)]
    made: list[Part] = [Lines(lines=tuple(lines))] if lines else []
    duels = tuple(row for contest in own if (row := duel_row(contest, frames)) is not None)
    if duels:
        made.append(Table(caption=f"Position against token: {setting}", heads=DUEL_HEADS, groups=(("", duels),)))
    points = tuple(point for contest in own for point in points_of(contest, frames, labels))
    if points:
        several = len({point.x for point in points}) > 1
        chart = Chart(
            title=f"Share of the joint bound: {setting}",
            x="budget D" if several else "method",
            y="% of the joint bound",
            points=points,
            shape="lines" if several else "dots",
            series=labels.methods,
            baseline=100.0,
            digits=1,
        )
        made.append(chart)
    return (*made, table(setting, own, frames, labels))


def table(setting: str, own: tuple[Contest, ...], frames: Frames, labels: Labels) -> Table:
    """Every drafter and oracle, by task and budget, the fewest forwards last."""
    groups, left = [], MOST_ROWS
    for task in dict.fromkeys(contest.task for contest in own):
        rows = []
        for contest in sorted((c for c in own if c.task == task), key=lambda c: c.budget):
            ranked = sorted(contest.results, key=lambda r: (r.nfe_reduction.value or 0, labels.method[r.cell_id]))
            rows += [row(result, contest, frames, labels) for result in ranked]
        if left > 0:
            groups.append((task, tuple(rows[:left])))
        left -= len(rows)
    caption = f"Drafters and bounds: {setting}"
    return Table(caption=caption, heads=HEADS, groups=tuple(groups), omitted=max(0, -left))


def row(result: CellResult, contest: Contest, frames: Frames, labels: Labels) -> tuple[Value, ...]:
    """One cell beside the joint bound."""
    method, part = labels.method[result.cell_id], share(result, contest, frames)
    return (
        Value(f"{method} ✗", flag="alarm") if result.claim_holds is False else Value(method),
        Value(str(contest.budget)),
        Value(str(result.n)),
        Value(number(result.nfe.value, 1), interval(result.nfe, 1)),
        Value(number(result.nfe_reduction.value), interval(result.nfe_reduction)),
        Value("100.0")
        if result is contest.oracle(JOINT)
        else Value(percent(part.value).removesuffix(" %"), interval(part, 1, 100)),
    )


def points_of(contest: Contest, frames: Frames, labels: Labels) -> Iterable[Point]:
    """The shares of a contest as marks; the joint oracle is the rule at 100 %."""
    for result in contest.results:
        part = share(result, contest, frames)
        if part.value is not None and result is not contest.oracle(JOINT):
            low, high = (None if end is None else 100 * end for end in (part.low, part.high))
            method = labels.method[result.cell_id]
            yield Point(facet=contest.task, series=method, x=contest.budget, y=100 * part.value, low=low, high=high)


def share(result: CellResult, contest: Contest, frames: Frames) -> Estimate:
    """The joint oracle's NFE over a cell's, paired; an interval ends at 1, which nothing can pass."""
    joint = contest.oracle(JOINT)
    estimate = forwards_ratio(frames, [(joint, result)] if joint else [])
    if estimate.value is None or estimate.value > 1 or estimate.high is None:
        return estimate
    return replace(estimate, high=min(estimate.high, 1.0))


def duel_row(contest: Contest, frames: Frames) -> tuple[Value, ...] | None:
    """Position against token oracle in one contest."""
    pairs = duel(contest)
    if not pairs:
        return None
    token, position = pairs[0]
    ratio = forwards_ratio(frames, pairs)
    return (
        Value(contest.task),
        Value(str(contest.budget)),
        Value(str(ratio.n)),
        *(Value(number(r.nfe_reduction.value), interval(r.nfe_reduction)) for r in (position, token)),
        Value(number(ratio.value), interval(ratio)),
        Value(WINNER[verdict(ratio)] if has_interval(ratio) else no_interval([ratio])),
    )


def duel_lines(own: tuple[Contest, ...], frames: Frames) -> list[tuple[Level, str]]:
    """Which oracle needs fewer forwards on this target, at the largest budget and over all of them."""
    held = [contest for contest in own if duel(contest)]
    if not held:
        return []
    budget = max(contest.budget for contest in held)
    ratio = forwards_ratio(frames, [pair for contest in held if contest.budget == budget for pair in duel(contest)])
    if ratio.value is None:
        return []
    level = "95 %: " if interval(ratio) else ""
    evidence = f"D = {budget}, {count(ratio.n, 'prompt')}, all tasks; {level}{span(ratio)}"
    who = verdict(ratio)
    if not has_interval(ratio):
        text = (
            "Nothing can be said of which oracle needs fewer forwards: NFE ratio token over position "
            f"{number(ratio.value)} ({evidence})."
        )
    elif who > 0:
        text = (
            f"The position oracle needs {number(ratio.value)} times fewer forwards than the token oracle ({evidence}): "
            "on this target the commit order is what should be predicted."
        )
    elif who < 0:
        text = (
            "The position oracle does not need fewer forwards: the token oracle needs "
            f"{number(1 / ratio.value)} times fewer (NFE ratio token over position {number(ratio.value)}; {evidence}): "
            "on this target the tokens are what should be predicted."
        )
    else:
        text = (
            "It is not beyond doubt that the position oracle needs fewer forwards than the token oracle: NFE ratio "
            f"token over position {number(ratio.value)} ({evidence})."
        )
    each = [forwards_ratio(frames, duel(contest)) for contest in held]
    judged, bare = [one for one in each if has_interval(one)], [one for one in each if not has_interval(one)]
    ahead = sum(verdict(one) == 1 for one in judged)
    said = [f"By task and budget the position oracle is ahead beyond its interval in {ahead} of {len(judged)}."]
    return [("note", " ".join([text, *(said if judged else []), *([unsaid(bare, "duel")] if bare else [])]))]


def bound_lines(own: tuple[Contest, ...], frames: Frames) -> list[tuple[Level, str]]:
    """Whether the joint oracle takes the rounds that arithmetic says, and nobody fewer."""
    gaps: dict[bool, list[int]] = {True: [], False: []}  # beyond the least possible: the joint oracle's, the others'
    for contest in own:
        for result in contest.results:
            for row in frames.rows.get(result.cell_id, NO_ROWS).generations.values():
                lengths = row.prompt_tokens, row.tokens_generated, result.cell.decode.block_length
                gap = row.counters.rounds - least_forwards(*lengths, contest.budget)
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


def paper() -> Table:
    """What the paper reports, to compare shapes with."""
    heads = (
        Head(name="Oracle", number=False),
        Head(name="Task", number=False),
        Head(name="D"),
        Head(name="NFE reduction", unit=TIMES),
    )
    rows = tuple(tuple(Value(text) for text in texts) for texts in PAPER)
    caption = "Oracles in the paper: fewer forwards than draft-free decoding"
    return Table(caption=caption, heads=heads, groups=(("", rows),))
