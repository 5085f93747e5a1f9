"""The tables of a transfer study: what needs how many forwards, source by target, and every pair beside its rivals.

Every number carries the marks of the cells it rests on; what is ahead or behind is said in words.
"""

from dataclasses import replace
from statistics import fmean

from reports import marks
from reports.contests import verdict
from reports.frames import Frames, base_id
from reports.model import Head, Table, Value
from reports.shown import shown
from reports.text import DASH, TIMES, count, interval, no_interval, number
from reports.transfer_lines import Line, by_prompt, fewest, loss, paired, versus
from reports.transfers import Condition
from reports.uncached import agreed, given
from sweeps.claims import Claim, in_words
from sweeps.statistics import Estimate, mean, ratio_of_sums

NATIVE, ABSENT = "native", "not in the plan"
VERDICTS = {1: "ahead of ", -1: "behind ", 0: "open: "}
PairGroup = tuple[str, tuple[tuple[Value, ...], ...]]  # a target with its claim, and its rows
PAIR_HEADS = (
    Head(name="Drafter", number=False),
    Head(name="Prompts", meaning="decoded, of all tasks and seeds that the row is about"),
    Head(name="Identical", number=False, meaning="equal to draft-free, token by token, of those compared"),
    Head(name="NFE", unit="forwards/prompt", meaning="target forwards, mean over prompts"),
    Head(name="Native NFE", unit="forwards/prompt", meaning="the native drafter's, on the prompts that both decoded"),
    Head(name="Tokens a forward", meaning="generated tokens over forwards"),
    Head(name="Loss", unit="%", meaning="1 - native NFE over NFE: the share of the native NFE reduction that is lost"),
    Head(name="Best without training", number=False, meaning="its NFE over this one's; above 1: this one needs fewer"),
    Head(name="Best baseline", number=False, meaning="native drafters of other kinds too; the same ratio"),
)


def matrix(condition: Condition, name: str, unit: str, values: dict[tuple[str, str], dict[str, Value]]) -> Table:
    """Sources by targets."""
    heads = (
        Head(name=name, unit="drafter by target", number=False),
        *(Head(name=target, unit=unit + claimed(condition, target), meaning="used on") for target in condition.targets),
    )
    rows = tuple(
        (head_of(condition, source), *(values[source][target] for target in condition.targets))
        for source in condition.sources
    )
    return Table(caption=f"{name}, drafter by target: {condition.title}", heads=heads, groups=(("", rows),))


def claimed(condition: Condition, target: str) -> str:
    """What outputs on a target may claim, where that is less than lossless."""
    first = condition.lines[target][0].first
    return "" if first.claim == Claim.LOSSLESS else f", {in_words(first.cell, first.claim)}"


def head_of(condition: Condition, source: tuple[str, str]) -> Value:
    """A source's name, with a cross where one of its cells is broken."""
    lines = (condition.line(source, target) for target in condition.targets)
    broken = marks.broken(*(result for line in lines if line is not None for result in line.results))
    return Value(condition.names[source] + broken, flag="alarm" if broken else "")


def reductions(condition: Condition, frames: Frames) -> Table:
    """NFE reduction of every source on every target, over all tasks; native ones are marked as such."""
    values = {
        source: {
            target: Value(ABSENT) if (line := condition.line(source, target)) is None else reduced(line, frames)
            for target in condition.targets
        }
        for source in condition.sources
    }
    return matrix(condition, "NFE reduction", TIMES, values)


def reduced(line: Line, frames: Frames) -> Value:
    """The NFE reduction of a line over its tasks."""
    ratio = reduction(line, frames)
    native = f" {NATIVE}" if line.native else ""
    text = f"{number(ratio.value)}{native}{marks.mark(*line.results)}"
    return Value(text, interval(ratio), flag="alarm" if marks.broken(*line.results) else "")


def reduction(line: Line, frames: Frames) -> Estimate:
    """Draft-free NFE over a line's NFE, over its tasks and seeds."""
    by_id = {result.cell_id: result for result in frames.results}
    free = {place: by_id[base_id(result)] for place, result in line.cells.items() if base_id(result) in by_id}
    return versus(frames, line, replace(line, cells=free))


def losses(condition: Condition, frames: Frames) -> Table:
    """The loss of every source on every target, over all tasks."""
    values = {
        source: {target: lost(condition, condition.line(source, target), frames) for target in condition.targets}
        for source in condition.sources
    }
    return matrix(condition, "Loss against native", "%", values)


def lost(condition: Condition, line: Line | None, frames: Frames) -> Value:
    """The loss of a line, or why it has none."""
    if line is None:
        return Value(ABSENT)
    if line.native:
        return Value(NATIVE)
    native = condition.native(line)
    if native is None:
        return Value("no native drafter")
    estimate = loss(versus(frames, line, native))
    both = (*line.results, *native.results)
    return Value(
        number(scaled(estimate).value, 1) + marks.mark(*both),
        interval(estimate, 1, 100),
        flag="alarm" if marks.broken(*both) else "",
    )


def scaled(estimate: Estimate) -> Estimate:
    """A share in percent."""
    value, low, high = (None if end is None else 100 * end for end in (estimate.value, estimate.low, estimate.high))
    return replace(estimate, value=value, low=low, high=high)


def pairs(condition: Condition, frames: Frames) -> Table:
    """Every pair beside its rivals, over all tasks."""
    return pairs_table(f"Every pair: {condition.title}", pair_groups(condition, frames))


def pairs_by_task(condition: Condition, frames: Frames) -> Table:
    """Every pair beside its rivals, task by task."""
    groups = [group for task in condition.tasks for group in pair_groups(condition.of_task(task), frames, f"{task}, ")]
    return pairs_table(f"Every pair by task: {condition.title}", groups)


def pairs_table(caption: str, groups: list[PairGroup]) -> Table:
    """The pairs by target. Where no ratio has an interval, for one reason, that is said once and not in every row."""
    why = {value.interval for _, rows in groups for row in rows for value in row[-2:] if value.text != DASH}
    if len(why) != 1 or not (reason := why.pop()).startswith("no interval"):
        return Table(caption=caption, heads=PAIR_HEADS, groups=tuple(groups))
    bare = [
        (target, tuple((*row[:-2], *(replace(value, interval="") for value in row[-2:])) for row in rows))
        for target, rows in groups
    ]
    note = f"{caption}. Ratios over baselines have {reason}: nothing is called ahead or behind."
    return Table(caption=caption, heads=PAIR_HEADS, groups=tuple(bare), note=note)


def pair_groups(condition: Condition, frames: Frames, before: str = "") -> list[PairGroup]:
    """Under each target and the claim of its outputs: every transferred drafter below the native ones, with a row for
    what the plan leaves out.
    """
    groups = []
    for target in condition.targets:
        lines = [condition.line(source, target) for source in condition.sources]
        here = [line for line in lines if line is not None]
        natives = {native.drafter: native for line in here if (native := condition.native(line)) is not None}
        rows = [pair_row(condition, native, frames) for native in natives.values()]
        for source, line in zip(condition.sources, lines, strict=True):
            if line is None:
                rows.append((Value(condition.names[source]), Value(ABSENT), *[Value(DASH)] * (len(PAIR_HEADS) - 2)))
            elif not line.native:
                rows.append(pair_row(condition, line, frames))
        if rows:
            groups.append((f"{before}{target}{claim_on(condition.lines[target])}", tuple(rows)))
    return groups


def claim_on(lines: tuple[Line, ...]) -> str:
    """What all outputs of a condition on one target may claim: it follows from the noise and the target's cache."""
    return f": {lines[0].first.claim}{given(lines[0].first)}" if lines else ""


def pair_row(condition: Condition, line: Line, frames: Frames) -> tuple[Value, ...]:
    """One drafter on one target."""
    decoded = by_prompt(frames, line)
    forwards = [fmean(row.counters.nfe for (row,) in seeds) for seeds in decoded]
    tokens = ratio_of_sums([fmean(row.tokens_generated for (row,) in seeds) for seeds in decoded], forwards)
    name = condition.names.get((line.drafter, line.digest), line.name)
    broken = marks.broken(*line.results)
    few = marks.partial(*line.results)
    missing = len(condition.places[line.target]) - len(line.cells)
    prompts = (few or str(line.n)) + (f", {count(missing, 'cell')} {ABSENT}" if missing else "")
    native = None if line.native else condition.native(line)
    return (
        Value(f"{name}{f', {NATIVE}' if line.native else ''}{broken}", flag="alarm" if broken else ""),
        Value(prompts, flag="warning" if few or missing else ""),
        identical(line),
        shown(mean(forwards), 1),
        Value(NATIVE) if line.native else native_nfe(line, native, frames),
        shown(tokens),
        lost(condition, line, frames),
        standing(fewest(condition.baselines(line, trained=False)), line, frames),
        standing(fewest(condition.baselines(line, trained=True)), line, frames),
    )


def native_nfe(line: Line, native: Line | None, frames: Frames) -> Value:
    """The native drafter's mean forwards on the prompts that both decoded."""
    if native is None:
        return Value("no native drafter")
    estimate = mean([theirs for _, theirs in paired(frames, line, native)])
    return Value(number(estimate.value, 1) + marks.mark(*native.results), interval(estimate, 1))


def identical(line: Line) -> Value:
    """How many generations equal draft-free decoding, and what an approximate cache changes."""
    checked = sum(result.identity.n_checked for result in line.results)
    equal = sum(result.identity.n_identical for result in line.results)
    broken = marks.broken(*line.results)
    return Value(f"{equal:,} of {checked:,}{broken}", agreed(*line.results), flag="alarm" if broken else "")


def standing(baseline: Line | None, line: Line, frames: Frames) -> Value:
    """Ahead of, behind or open against a baseline, with the ratio."""
    ratio = versus(frames, line, baseline)
    if baseline is None or ratio.value is None:
        return Value(DASH)
    said = VERDICTS[verdict(ratio)] if ratio.has_interval else ""
    text = f"{said}{baseline.name}{marks.mark(*baseline.results)} {number(ratio.value)}"
    return Value(text, interval(ratio) or no_interval([ratio]))
