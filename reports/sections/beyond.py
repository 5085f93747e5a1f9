"""Options of a drafter, each against the same drafter without it: what they save, what they cost, and a plain verdict.

Pairs are found by identity (`sweeps.pairs`): equal cells but for one option, on the same prompts.
"""

from collections import defaultdict
from statistics import geometric_mean
from typing import Literal

from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Group, Head, Level, Lines, SectionInfo, Table, Value
from reports.text import DASH, TIMES, count, interval, number
from sweeps.aggregate import CellResult
from sweeps.pairs import Pair, pairs_of
from sweeps.statistics import Estimate

MOST_ROWS = 400
ARROW = "\u2192"
Side = Literal["better", "worse", "no difference", "doubtful", ""]

HEADS = (
    Head(name="Task", number=False),
    Head(name="With the option", number=False),
    Head(name="Plain", number=False),
    Head(name="D", meaning="budget"),
    Head(name="Prompts", meaning="decoded by both"),
    Head(name="NFE", unit=f"plain {ARROW} with", meaning="forwards a prompt"),
    Head(name="NFE ratio", unit=TIMES, meaning="plain forwards over those with the option, paired by prompt"),
    Head(name="Throughput ratio", unit=TIMES, meaning="with the option over plain, each as a multiple of draft-free"),
    Head(name="Drafted", unit=f"states/round, plain {ARROW} with"),
    Head(name="Accepted", unit=f"states/round, plain {ARROW} with"),
    Head(name="Merged", unit="orders/round", meaning="orders that led to a draft already found"),
    Head(name="Trimmed", unit="states/round", meaning="drafts found and not verified"),
    Head(name="Made again", unit="verdicts/round", meaning="forwards of a single state, in NFE as well"),
    Head(name="Identical", unit=f"plain {ARROW} with", meaning="prompts equal to draft-free, of those compared"),
    Head(name="Forwards", number=False),
    Head(name="Throughput", number=False),
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
        tables = tuple(
            Table(
                caption=f"{what.capitalize()}: {setting}",
                heads=HEADS,
                groups=(("", tuple(row(pair, labels) for pair in of_setting)),),
            )
            for setting, of_setting in settings.items()
        )
        groups.append(Group(title=what.capitalize(), parts=tables))
    more = len(pairs) - MOST_ROWS
    return SectionInfo(
        key="beyond",
        title="Options, one at a time",
        lead="Each pair of cells is equal but for one option. Ratios above 1 speak for the option; ranges are 95 % "
        "intervals over the same prompts, and a difference counts only where 1 is outside. State merging, "
        "cost-aware budget and verify margin are not in the paper. \u2020: a timing failed a gate and does not count.",
        groups=tuple(groups),
        cuts=(f"{count(more, 'more pair')}: their cells are in report-data/cells.csv",) if more > 0 else (),
    )


def lines_of(pairs: list[Pair]) -> list[tuple[Level, str]]:
    """What an option does to forwards and to throughput, over all its pairs."""
    what = pairs[0].option.what.capitalize()
    forwards = [side_of(pair.nfe_ratio) for pair in pairs]
    ratios = [pair.nfe_ratio.value for pair in pairs if pair.nfe_ratio.value]
    lines = [verdict(f"{what}, forwards", "fewer", "more", forwards, ratios)]
    timed = [pair for pair in pairs if pair.throughput_ratio.value is not None]
    sound = [pair for pair in timed if not pair.doubts]
    if sound:
        sides = [side_of(pair.throughput_ratio) for pair in sound]
        ratios = [pair.throughput_ratio.value for pair in sound if pair.throughput_ratio.value]
        lines.append(verdict(f"{what}, throughput", "higher", "lower", sides, ratios))
    if len(timed) > len(sound):
        doubtful = count(len(timed) - len(sound), "timing")
        verb = "is" if len(timed) - len(sound) == 1 else "are"
        lines.append(("note", f"{what}, throughput: {doubtful} of {len(timed)} failed a gate and {verb} not counted."))
    return lines


def verdict(name: str, good: str, bad: str, sides: list[Side], ratios: list[float]) -> tuple[Level, str]:
    """One line: whether it helps, and in how many comparisons."""
    better, worse = sides.count("better"), sides.count("worse")
    level: Level = "good" if better and not worse else "warning" if worse and not better else "note"
    says = {"good": "helps", "warning": "costs", "note": "helps here and costs there"}[level]
    if not better and not worse:
        says = "no difference that these prompts can show"
    numbers = f"{good} in {better}, {bad} in {worse} of {count(len(sides), 'comparison')}"
    mean = f"; geometric mean of the ratios {number(geometric_mean(ratios))}" if ratios else ""
    return level, f"{name}: {says} ({numbers}{mean})."


def side_of(ratio: Estimate) -> Side:
    """Which side of 1 an interval lies on."""
    if ratio.value is None:
        return ""
    if ratio.low is not None and ratio.low > 1:
        return "better"
    return "worse" if ratio.high is not None and ratio.high < 1 else "no difference"


def row(pair: Pair, labels: Labels) -> tuple[Value, ...]:
    """One pair."""
    own, plain = pair.with_it, pair.plain
    ours, theirs = pair.rounds_with_it, pair.rounds_plain
    return (
        Value(labels.task[own.cell_id]),
        Value(labels.method[own.cell_id]),
        Value(labels.method[plain.cell_id]),
        Value(labels.budget(own.cell)),
        Value(str(pair.nfe_ratio.n)),
        Value(f"{number(pair.nfe_plain, 1)} {ARROW} {number(pair.nfe_with_it, 1)}"),
        Value(number(pair.nfe_ratio.value), interval(pair.nfe_ratio)),
        throughput(pair),
        Value(f"{number(theirs.drafted)} {ARROW} {number(ours.drafted)}"),
        Value(f"{number(theirs.accepted)} {ARROW} {number(ours.accepted)}"),
        Value(number(ours.merged)),
        Value(number(ours.trimmed)),
        Value(number(ours.recomputed)),
        Value(f"{identical(pair.plain)} {ARROW} {identical(pair.with_it)}"),
        word(side_of(pair.nfe_ratio), "fewer", "more"),
        word("doubtful" if pair.doubts else side_of(pair.throughput_ratio), "higher", "lower"),
    )


def throughput(pair: Pair) -> Value:
    """The throughput ratio, marked where a timing of either cell failed a gate."""
    ratio = pair.throughput_ratio
    if pair.doubts and ratio.value is not None:
        return Value(f"{number(ratio.value)} \u2020", interval(ratio), flag="warning")
    return Value(number(ratio.value), interval(ratio))


def identical(result: CellResult) -> str:
    """Prompts equal to draft-free."""
    identity = result.identity
    return f"{identity.n_identical}/{identity.n_checked}"


def word(side: Side, good: str, bad: str) -> Value:
    """A side in words, coloured."""
    if side == "better":
        return Value(f"{good} \u2713", flag="good")
    if side == "worse":
        return Value(f"{bad} \u2717", flag="warning")
    return Value("\u2020" if side == "doubtful" else "same" if side == "no difference" else DASH)
