"""The two tables of a ladder, rung by rung and task by task: what each costs, and what becomes of the outputs."""

from collections.abc import Sequence
from dataclasses import replace

from reports import marks
from reports.frames import Frames
from reports.ladder_groups import LadderGroup, Mean, Read, is_doubted, key_of, pooled_outputs, standard_id, threshold_id
from reports.model import Head, Table, Value
from reports.shown import points, shown
from reports.text import DASH, NOT_AVAILABLE, TIMES, interval, number
from sweeps.agreement import Outputs
from sweeps.ladder import Ladder, Rung
from sweeps.means import arithmetic, geometric
from sweeps.pace import CHAINED
from sweeps.statistics import Estimate, undefined

BETTER, WORSE = "\u25b2", "\u25bc"
DIRECT, LINKS = "direct", "two links"
COSTS = (
    Head(name="Rung", number=False),
    Head(name="Claim", number=False, meaning="what the output may claim to be, against threshold decoding"),
    Head(name="Prompts"),
    Head(name="NFE", unit="forwards/prompt", meaning="target forwards, mean over prompts"),
    Head(name="Step: forwards", unit=TIMES, meaning="forwards of the rung before over own: above 1 the step helps"),
    Head(name="Over standard", unit=f"{TIMES}, throughput", meaning="tokens/s over standard decoding's, same prompts"),
    Head(name="Step: throughput", unit=TIMES, meaning="throughput over that of the rung before"),
    Head(name="NFE reduction", unit=f"{TIMES}, over threshold", meaning="threshold decoding's forwards over own"),
    Head(
        name="Fewest",
        unit="for its steps",
        meaning="by any drafter of this budget, with cross-block drafts where this rung has them",
    ),
    Head(name="Blocks", unit="fewest of all", meaning="one forward a block: the fewest whatever the steps and budget"),
    Head(name="Over threshold", unit=f"{TIMES}, throughput", meaning="tokens/s over threshold's, side by side"),
    Head(
        name="Got",
        number=False,
        meaning=f"over standard; {DIRECT}: side by side; {LINKS}: over threshold, times threshold over standard",
    ),
    Head(name="Timed", unit="prompts", meaning="prompts behind the throughput over the lowest rung"),
)
OUTPUTS = (
    Head(name="Rung", number=False),
    Head(name="Claim", number=False),
    Head(name="Compared", unit="prompts", meaning="with threshold decoding"),
    Head(name="Identical to threshold", unit="%", meaning="equal kept outputs; Wilson interval"),
    Head(name="First difference", unit="token", meaning="index, from 0; median over the prompts that differ"),
    Head(name="Edit distance", unit="%", meaning="insertions, deletions, replacements, of the longer output; mean"),
    Head(name="Correct", unit="%", meaning="right answers; Wilson interval"),
    Head(name="Less threshold", unit="points", meaning="right answers less threshold decoding's, paired; Tango"),
    Head(name="Less standard", unit="points", meaning="right answers less standard decoding's, paired; Tango"),
    Head(name="Identical to standard", unit="%", meaning="equal kept outputs; Wilson interval"),
)
AGAINST_STANDARD = ("Over standard", "Got", "Less standard", "Identical to standard")
Row = tuple[Value, ...]


def costs(group: LadderGroup, frames: Frames) -> Table:
    """Throughput and forwards of every rung, by task, then the means over tasks."""
    bodies = [(task, tuple(cost_row(group, ladder, rung) for rung in ladder.rungs)) for task, ladder in group.ladders]
    if len(group.ladders) > 1:
        means = (("Arithmetic mean of the tasks", arithmetic), ("Geometric mean of the tasks", geometric))
        bodies += [(name, tuple(mean_row(group, key, of) for key in group.keys)) for name, of in means]
    return measured(
        group, Table(caption=f"Ladder, what each rung costs: {group.title}", heads=COSTS, groups=tuple(bodies))
    )


def outputs(group: LadderGroup, frames: Frames) -> Table:
    """Outputs of every rung beside those of threshold and standard decoding, by task, then all prompts together."""
    bodies = [
        (task, tuple(output_row(group, [rung], frames) for rung in ladder.rungs)) for task, ladder in group.ladders
    ]
    if len(group.ladders) > 1:
        rows = (
            unsound_row(group, key, OUTPUTS) if group.unsound(key) else output_row(group, group.rungs(key), frames)
            for key in group.keys
        )
        bodies.append(("Prompts of all tasks together", tuple(rows)))
    caption = f"Ladder, what becomes of the outputs: {group.title}"
    return measured(group, Table(caption=caption, heads=OUTPUTS, groups=tuple(bodies)))


def measured(group: LadderGroup, table: Table) -> Table:
    """The table without what is against standard decoding, where that was not run."""
    if group.over_standard:
        return table
    kept = [place for place, head in enumerate(table.heads) if head.name not in AGAINST_STANDARD]
    bodies = tuple((name, tuple(tuple(row[i] for i in kept) for row in rows)) for name, rows in table.groups)
    return replace(table, heads=tuple(table.heads[i] for i in kept), groups=bodies)


def cost_row(group: LadderGroup, ladder: Ladder, rung: Rung) -> Row:
    """One rung on one task; a step from a broken rung is marked as one."""
    result, below = rung.result, group.before(ladder, rung)
    cross = marks.broken(result, below.result) if below is not None else ""
    pace, doubted = over_lowest(group)(rung), is_doubted(rung)
    return (
        named(group, key_of(rung), [rung]),
        marks.claim(result),
        marks.prompts(result),
        shown(result.nfe, 1),
        crossed(stepped(rung.forwards), cross),
        dagger(shown(pace), doubted),
        crossed(dagger(stepped(rung.throughput), bool(rung.doubts)), cross),
        shown(result.nfe_reduction) if not result.cell.is_baseline else Value(DASH),
        *floors(rung.least, rung.blocks, result.cell.decode.commit == "threshold"),
        marks.doubted(shown(over_threshold(rung)), result) if not result.cell.is_baseline else Value(DASH),
        Value(got(rung)),
        Value(DASH) if rung is ladder.rungs[0] else Value(str(pace.n)),
    )


def mean_row(group: LadderGroup, key: str, of: Mean) -> Row:
    """One rung over all tasks."""
    if group.unsound(key):
        return unsound_row(group, key, COSTS)
    rungs = group.rungs(key)
    first, doubted = rungs[0], any(map(is_doubted, rungs))
    is_free, by_standard = first.result.cell.is_baseline, first.result.cell.decode.commit == "standard"
    pace = group.mean(key, over_lowest(group), of)
    return (
        named(group, key, rungs),
        Value(first.result.claim),
        Value(str(sum(rung.result.n for rung in rungs))),
        shown(group.mean(key, lambda rung: rung.result.nfe, of), 1),
        stepped(step(group, key, lambda rung: rung.forwards, of)),
        Value(DASH) if by_standard else dagger(shown(pace), doubted),
        dagger(stepped(step(group, key, lambda rung: rung.throughput, of)), any(rung.doubts for rung in rungs)),
        Value(DASH) if is_free else shown(group.mean(key, lambda rung: rung.result.nfe_reduction, of)),
        *floors(
            group.mean(key, lambda rung: rung.least, of), group.mean(key, lambda rung: rung.blocks, of), not by_standard
        ),
        Value(DASH) if is_free else dagger(shown(group.mean(key, over_threshold, of)), doubted),
        Value(got(first)),
        Value(DASH) if key == group.keys[0] else Value(str(pace.n)),
    )


def step(group: LadderGroup, key: str, read: Read, of: Mean) -> Estimate:
    """The mean of a step over the tasks; undefined where either of its rungs is unsound on one of them."""
    return group.mean(key, read, of) if group.stepped(key) else undefined()


def crossed(value: Value, cross: str) -> Value:
    """A step of which a rung is broken."""
    if not cross or value.text in (NOT_AVAILABLE, DASH):
        return value
    return Value(value.text.rstrip(f" {BETTER}{WORSE}") + cross, value.interval, flag="alarm")


def floors(least: Estimate, blocks: Estimate, of_sets: bool) -> tuple[Value, Value]:
    """The fewest forwards for a rung's steps, and for its blocks; by the standard rule they say nothing here."""
    return (shown(least, 1), shown(blocks, 1)) if of_sets else (Value(DASH), Value(DASH))


def output_row(group: LadderGroup, rungs: Sequence[Rung], frames: Frames) -> Row:
    """The outputs of one rung on one task, or on all."""
    results = [rung.result for rung in rungs]
    cell = results[0].cell
    own = pooled_outputs(frames, [(result, threshold_id(result)) for result in results])
    standard = pooled_outputs(frames, [(result, standard_id(result)) for result in results])
    is_free, by_standard, chance = cell.is_baseline, cell.decode.commit == "standard", cell.draws_anew
    beside = [Value(DASH)] * 3 if is_free else compared(own, chance)
    return (
        named(group, key_of(rungs[0]), rungs),
        marks.claim(results[0]) if len(results) == 1 else Value(results[0].claim),
        Value(DASH) if is_free else Value(str(own.n)),
        *beside,
        shown(own.correct, 1, 100),
        Value(DASH) if is_free else points(own.correct_difference),
        Value(DASH) if by_standard else points(standard.correct_difference),
        Value(DASH) if by_standard else compared(standard, chance)[0],
    )


def compared(own: Outputs, chance: bool) -> list[Value]:
    """Identical outputs, where they part, and how far apart they are; by chance they differ under independent noise."""
    if chance:
        return [Value("drawn anew"), Value(DASH), Value(DASH)]
    first = DASH if own.first_divergence is None else f"{own.first_divergence:g}"
    return [shown(own.identical, 1, 100), Value(first), shown(own.edit_distance, 1, 100)]


def unsound_row(group: LadderGroup, key: str, heads: Sequence[Head]) -> Row:
    """A rung that is not averaged, and on which tasks it failed."""
    why = Value(f"not averaged: incomplete or failed on {', '.join(group.unsound(key))}", flag="warning")
    rungs = group.rungs(key)
    return (named(group, key, rungs), why, *[Value(NOT_AVAILABLE)] * (len(heads) - 2))


def named(group: LadderGroup, key: str, rungs: Sequence[Rung]) -> Value:
    """The name of a rung with the marks of its cells."""
    results = [rung.result for rung in rungs]
    return Value(group.names[key] + marks.broken(*results), flag="alarm" if marks.broken(*results) else "")


def pace_of(rung: Rung) -> Estimate:
    """Throughput over standard decoding: of the standard rung itself 1, by definition."""
    if rung.result.cell.decode.commit == "standard":
        return one(rung)
    return rung.result.pace.ratio if rung.result.pace else undefined()


def over_lowest(group: LadderGroup) -> Read:
    """Throughput over the group's lowest rung, which has 1 by definition: standard decoding, or threshold decoding."""
    return (
        pace_of
        if group.over_standard
        else lambda rung: one(rung) if rung.result.cell.is_baseline else over_threshold(rung)
    )


def one(rung: Rung) -> Estimate:
    """The ratio of a rung to itself."""
    return Estimate(value=1.0, low=None, high=None, n=rung.result.n, how="definition")


def got(rung: Rung) -> str:
    """How a throughput over standard decoding was got."""
    pace = rung.result.pace
    return DASH if pace is None or pace.ratio.value is None else LINKS if pace.ratio.how == CHAINED else DIRECT


def over_threshold(rung: Rung) -> Estimate:
    """Throughput over threshold decoding."""
    return rung.result.throughput.ratio


def dagger(value: Value, doubted: bool) -> Value:
    """A timed number, marked where a timing behind it failed a gate."""
    if not doubted or value.text in (NOT_AVAILABLE, DASH):
        return value
    return Value(f"{value.text} {marks.GATE}", value.interval, flag="warning")


def stepped(ratio: Estimate) -> Value:
    """What a step does, marked by the side on which its interval lies."""
    if ratio.value is None:
        return Value(DASH if not ratio.n else NOT_AVAILABLE)
    side = f" {BETTER}" if ratio.above() else f" {WORSE}" if ratio.below() else ""
    return Value(
        number(ratio.value) + side, interval(ratio), flag="good" if ratio.above() else "warning" if side else ""
    )
