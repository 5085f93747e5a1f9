"""Options of a drafter, each against the same drafter without it: what they save, what they cost, and a plain verdict.

Pairs are found by identity (`sweeps.pairs`): equal cells but for one option, on the same prompts.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import geometric_mean
from typing import Literal

from reports import marks
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Group, Head, Level, Lines, SectionInfo, Table, Value
from reports.phrases import UNCORRECTED, chance
from reports.text import (
    NOT_AVAILABLE,
    TIMES,
    count,
    interval,
    no_interval,
    number,
    percent,
    unsaid,
    visible,
)
from sweeps.claims import claim_of
from sweeps.pairs import Pair, pairs_of
from sweeps.statistics import Estimate, more_than_chance

MOST_ROWS = 400
ARROW, BETTER, WORSE = "\u2192", "\u25b2", "\u25bc"
MARGIN = "verify_margin"
OPEN: Literal["no interval"] = "no interval"
Side = Literal["better", "worse", "no difference", "no interval", ""]

HEADS = (
    Head(name="Task", number=False),
    Head(name="With the option", number=False),
    Head(name="Plain", number=False),
    Head(name="D", meaning="budget"),
    Head(name="Prompts", meaning="decoded by both"),
    Head(name="NFE", unit=f"plain {ARROW} with", meaning="forwards a prompt"),
    Head(name="NFE ratio", unit=TIMES, meaning="plain forwards over those with the option, paired by prompt"),
    Head(name="Throughput ratio", unit=TIMES, meaning="with the option over plain, each as a multiple of draft-free"),
    Head(name="Identical", unit=f"plain {ARROW} with", meaning="prompts equal to draft-free, of those compared"),
)
COUNTS = (
    *HEADS[:4],
    Head(name="Drafted", unit=f"plain {ARROW} with", meaning="draft states verified a round"),
    Head(name="Accepted", unit=f"plain {ARROW} with", meaning="draft states on the walk a round"),
    Head(name="Merged", unit=f"plain {ARROW} with", meaning="orders a round that led to a draft already found"),
    Head(name="Trimmed", unit=f"plain {ARROW} with", meaning="drafts a round that were found and not verified"),
    Head(
        name="Made again", unit=f"plain {ARROW} with", meaning="verdicts a round that took a forward more, in NFE too"
    ),
)


def info(frames: Frames) -> SectionInfo | None:
    """Verdicts first, then one table an option and setting; None when no two cells differ in one option alone."""
    labels = labels_of(frames.results)
    pairs = list(pairs_of(frames.results, frames.rows))
    if not pairs:
        return None
    by_option: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs[:MOST_ROWS]:
        by_option[pair.option.what].append(pair)
    verdicts = tuple(line for of_option in by_option.values() for line in lines_of(of_option))
    groups = [Group(title="Which help", parts=(Lines(lines=verdicts),))]
    for what, of_option in by_option.items():
        settings: dict[str, list[Pair]] = defaultdict(list)
        for pair in of_option:
            settings[labels.setting[pair.with_it.cell_id]].append(pair)
        for setting, of_setting in settings.items():
            title = f"{what.capitalize()}: {setting}"
            rows = tuple(row(pair, labels) for pair in of_setting)
            counts = tuple(counts_row(pair, labels) for pair in of_setting)
            parts = (
                Table(caption=title, heads=HEADS, groups=(("", rows),)),
                Table(caption=f"{title}, counts a round", heads=COUNTS, groups=(("", counts),)),
            )
            groups.append(Group(title=title, parts=parts))
    more = len(pairs) - MOST_ROWS
    return SectionInfo(
        key="beyond",
        title="Options, one at a time",
        lead="Each pair of cells is equal but for one option. Ratios above 1 speak for the option; ranges are 95 % "
        f"intervals over the same prompts; a difference counts only where 1 is outside ({BETTER} better, {WORSE} worse)"
        ", and where there is no range nothing is said. A verify margin is for identity: forwards are its price. "
        f"{UNCORRECTED} So a verdict needs more differences than chance may give (1 in up to 2 comparisons, 2 in up to "
        "14). State merging, cost-aware budget and verify margin are not in the paper. \u2020: a timing failed a gate "
        f"and does not count. {marks.LEAD}",
        groups=tuple(groups),
        findings=tuple(text for _, text in verdicts),
        cuts=(f"{count(more, 'more pair')}: their cells are in report-data/cells.csv",) if more > 0 else (),
    )


def lines_of(pairs: list[Pair]) -> list[tuple[Level, str]]:
    """What an option does to forwards and to throughput, over all its pairs; of a margin, to identity first."""
    what = pairs[0].option.what.capitalize()
    counted = [pair for pair in pairs if marks.are_sound(pair.with_it, pair.plain)]
    if pairs[0].option.field == MARGIN:
        lines = identity_lines(pairs)
    else:
        lines = [verdict(f"{what}, forwards", "fewer", "more", [pair.nfe_ratio for pair in counted])]
    timed = [pair for pair in pairs if pair.throughput_ratio.value is not None]
    held = timed if pairs[0].option.field == MARGIN else pairs  # to have broken cells is what a margin is for
    if crossed := marks.crossed([(pair.with_it, pair.plain) for pair in held], "pair"):
        lines.append(("warning", f"{what}{', throughput' if held is timed else ''}: {crossed}"))
    timed = [pair for pair in timed if pair in counted]
    sound = [pair for pair in timed if not pair.doubts]
    if sound:
        lines.append(verdict(f"{what}, throughput", "higher", "lower", [pair.throughput_ratio for pair in sound]))
    if len(timed) > len(sound):
        doubtful = count(len(timed) - len(sound), "timing")
        verb = "is" if len(timed) - len(sound) == 1 else "are"
        lines.append(("note", f"{what}, throughput: {doubtful} of {len(timed)} failed a gate and {verb} not counted."))
    return lines


def identity_lines(pairs: list[Pair]) -> list[tuple[Level, str]]:
    """What a margin is for, by target and margin: outputs equal to draft-free, and the forwards they were paid with."""
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        target = pair.with_it.cell.target
        margin = f"{pair.with_it.cell.drafter.verify_margin:g}"
        groups[f"Verify margin {margin}, {visible(target.name, 80)} ({target.dtype})"].append(pair)
    return [identity_line(name, own) for name, own in groups.items()]


def identity_line(name: str, pairs: list[Pair]) -> tuple[Level, str]:
    """One line: identical outputs without the margin and with it, verdicts made again, extra forwards.

    Under independent noise no output need equal another, so only cells that promise identity are compared.
    """
    held = [pair for pair in pairs if claim_of(pair.with_it.cell).promises_identity]
    compared, plain, own = (
        sum(getattr(pair, field) for pair in held) for field in ("compared", "identical_plain", "identical_with_it")
    )
    sound = [pair for pair in pairs if marks.are_sound(pair.with_it)]
    again, forwards = sum(pair.recomputes for pair in sound), sum(pair.forwards for pair in sound)
    share = percent(again / forwards) if forwards else NOT_AVAILABLE
    paid = f"{count(again, 'verdict')} made again, {count(again, 'extra forward')} ({share} of its {forwards:,})"
    if bad := len(pairs) - len(sound):
        paid += f", without the {count(bad, 'cell')} marked {marks.BROKEN}"
    if not compared:
        return "note", f"{name}: no output that must equal a draft-free one was compared; {paid}."
    change = f"identical to draft-free {plain:,} of {compared:,} {ARROW} {own:,} of {compared:,}"
    level: Level = "good" if own > plain else "warning" if own < plain else "note"
    tail = "; all were identical without it, so there was nothing to repair" if plain == own == compared else ""
    return level, f"{name}: {change}; {paid}{tail}."


def verdict(name: str, good: str, bad: str, ratios: Sequence[Estimate]) -> tuple[Level, str]:
    """One line: whether it helps, and in how many comparisons; those without interval are counted apart."""
    sides = [side for ratio in ratios if (side := side_of(ratio)) not in ("", OPEN)]
    bare = [ratio for ratio in ratios if side_of(ratio) == OPEN]
    values = [ratio.value for ratio in ratios if ratio.value]
    mean = f"; geometric mean of the ratios {number(geometric_mean(values))}" if values else ""
    if not sides:
        why = f"{no_interval(bare)}: nothing can be said" if bare else "nothing was compared"
        return "note", f"{name}: {why} ({count(len(bare), 'comparison')}{mean})."
    better, worse = sides.count("better"), sides.count("worse")
    helps, costs = more_than_chance(better, len(sides)), more_than_chance(worse, len(sides))
    level: Level = "good" if helps and not costs else "warning" if costs and not helps else "note"
    says = {"good": "helps", "warning": "costs", "note": "helps here and costs there"}[level]
    if not helps and not costs:
        says = "no difference that these prompts can show"
    numbers = f"{good} in {better}, {bad} in {worse} of {count(len(sides), 'comparison')}"
    numbers += "".join(f"; {text}" for hits in dict.fromkeys((better, worse)) if (text := chance(hits, len(sides))))
    apart = f" {unsaid(bare, 'more comparison')}" if bare else ""
    return level, f"{name}: {says} ({numbers}{mean}).{apart}"


def side_of(ratio: Estimate) -> Side:
    """Which side of 1 an interval lies on, where there is one."""
    if ratio.value is None:
        return ""
    if not ratio.has_interval:
        return OPEN
    return "better" if ratio.above() else "worse" if ratio.below() else "no difference"


def named(pair: Pair, labels: Labels) -> tuple[Value, ...]:
    """What is compared."""
    own, plain = pair.with_it, pair.plain
    return (
        Value(labels.task[own.cell_id]),
        marks.method(labels, own),
        marks.method(labels, plain),
        Value(labels.budget(own.cell)),
    )


def row(pair: Pair, labels: Labels) -> tuple[Value, ...]:
    """The ratios of one pair."""
    return (
        *named(pair, labels),
        Value(str(pair.nfe_ratio.n)),
        change(pair.nfe_plain, pair.nfe_with_it, 1),
        ratio(pair.nfe_ratio),
        ratio(pair.throughput_ratio, doubtful=bool(pair.doubts)),
        identical(pair),
    )


def identical(pair: Pair) -> Value:
    """Prompts equal to draft-free; with independent noise none need be, and nothing is counted."""
    if not claim_of(pair.with_it.cell).promises_identity:
        return Value("not promised")
    sides = pair.identical_plain, pair.identical_with_it
    plain, own = (f"{n}/{pair.compared}{f' {marks.BROKEN}' if n < pair.compared else ''}" for n in sides)
    return Value(f"{plain} {ARROW} {own}", flag="alarm" if min(sides) < pair.compared else "")


def counts_row(pair: Pair, labels: Labels) -> tuple[Value, ...]:
    """The counts of one pair."""
    fields = ("drafted", "accepted", "merged", "trimmed", "recomputed")
    counts = (change(getattr(pair.rounds_plain, name), getattr(pair.rounds_with_it, name)) for name in fields)
    return (*named(pair, labels), *counts)


def change(plain: float, with_it: float, digits: int = 2) -> Value:
    """A number without the option and with it."""
    return Value(f"{number(plain, digits)} {ARROW} {number(with_it, digits)}")


def ratio(estimate: Estimate, *, doubtful: bool = False) -> Value:
    """A ratio with its interval, marked by the side it takes."""
    text, side = number(estimate.value), side_of(estimate)
    if doubtful and estimate.value is not None:
        return Value(f"{text} \u2020", interval(estimate), flag="warning")
    if side == "better":
        return Value(f"{text} {BETTER}", interval(estimate), flag="good")
    if side == "worse":
        return Value(f"{text} {WORSE}", interval(estimate), flag="warning")
    return Value(text, interval(estimate))
