"""What a ladder found, in sentences: how far its top is above threshold decoding, which steps help, what lossy costs.

A step helps where the 95 % interval of its forwards or its throughput lies above 1; one that does not is said not to.
Broken and incomplete rungs are named and enter nothing.
"""

from collections.abc import Iterator

from reports.frames import Frames
from reports.ladder_groups import LadderGroup, is_doubted, is_sound, pooled_forwards, pooled_outputs
from reports.ladder_tables import over_lowest
from reports.model import Level, Lines
from reports.phrases import evidence, fewer
from reports.text import TIMES, count, interval, number, percent
from sweeps.claims import Claim
from sweeps.ladder import THRESHOLD, Rung
from sweeps.means import arithmetic, geometric
from sweeps.statistics import AGREE, Estimate

Line = tuple[Level, str]
PAPER = "the paper has product within 4 points of exact on each task"


def findings(group: LadderGroup, frames: Frames) -> Lines:
    """The sentences of one group."""
    return Lines(
        lines=(
            *unsound(group),
            *tops(group),
            *lossy(group, frames),
            *steps(group, frames),
        )
    )


def unsound(group: LadderGroup) -> Iterator[Line]:
    """The rungs that failed somewhere."""
    for key in group.keys:
        if tasks := group.unsound(key):
            text = f"{group.names[key]}: missing, incomplete or failed on {', '.join(tasks)}; it enters no mean"
            yield "warning", f"{text} and no sentence."


def tops(group: LadderGroup) -> Iterator[Line]:
    """The highest rung that keeps the output, and the highest that may change it: forwards, floor and throughput."""
    sound = [key for key in group.keys if not group.unsound(key) and not group.rungs(key)[0].result.cell.is_baseline]
    for keeps in (True, False):
        keys = [key for key in sound if (group.rungs(key)[0].result.claim != Claim.LOSSY) is keeps]
        if not keys:
            continue
        top = max(keys, key=lambda key: group.mean(key, reduction, arithmetic).value or 0.0)
        rungs, ratio = group.rungs(top), group.mean(top, reduction, arithmetic)
        if ratio.value is None:
            continue
        reads = (forwards, lambda rung: rung.least, lambda rung: rung.blocks)
        nfe, least, blocks = (group.mean(top, read, arithmetic).value for read in reads)
        text = (
            f"{rungs[0].result.claim}: up to the rung {group.names[top]}, decoding needs "
            f"{fewer(ratio, 'threshold decoding')}{over(group)}. It takes {number(nfe, 1)} forwards a prompt; the "
            f"fewest that its steps allow are {number(least, 1)}, one a block would be {number(blocks, 1)}."
        )
        yield "note", f"{text[0].upper()}{text[1:]}{paces(group, top)}"


def over(group: LadderGroup) -> str:
    """What a mean is over."""
    n = len(group.ladders)
    return f", in the arithmetic mean of {count(n, 'task')}" if n > 1 else ""


def paces(group: LadderGroup, top: str) -> str:
    """Throughput over the lowest rung, of threshold decoding and of a rung, where no timing is in doubt."""
    both = [(key, group.mean(key, over_lowest(group), arithmetic)) for key in (THRESHOLD, top)]
    rungs = [rung for key, _ in both for rung in group.rungs(key)]
    if any(estimate.value is None for _, estimate in both):
        return ""
    if any(map(is_doubted, rungs)):
        return " A timing failed a gate: nothing is said of throughput."
    free, own = (f"{number(one.value)} {TIMES} ({evidence(one)})" for _, one in both)
    if not group.over_standard:
        return f" Throughput over threshold decoding: this rung {own}."
    return f" Throughput over standard decoding: threshold {free}, this rung {own}."


def steps(group: LadderGroup, frames: Frames) -> Iterator[Line]:
    """Each drafted rung against the one below it: forwards of all prompts together, throughput as a mean of tasks."""
    for key in group.drafted:
        if group.stepped(key):
            both = [
                (group.before(ladder, rung), rung) for _, ladder in group.ladders if (rung := group.rung(ladder, key))
            ]
            ratio = pooled_forwards(frames, [(below.result, rung.result) for below, rung in both if below is not None])
            if ratio.value is not None:
                level, text = verdict(ratio, pace_step(group, key))
                yield level, f"{group.names[key]}: {text}."


def verdict(forwards: Estimate, pace: Estimate | None) -> Line:
    """Whether a step helps: it saves forwards, or time. `pace` is None where no timing speaks of it.

    What has no interval is not judged, neither way; a step of which nothing can be judged is said to be that alone.
    """
    both = {"forwards": forwards} | ({"throughput": pace} if pace is not None else {})
    judged = [name for name, ratio in both.items() if is_judged(ratio)]
    if not judged:
        return "note", f"cannot be judged ({'; '.join(f'{name} {bare(ratio)}' for name, ratio in both.items())})"
    timed = f"throughput {times(pace)}" if pace is not None else "of throughput nothing can be said"
    text = f"forwards {saved(forwards)}; {timed}"
    if any(ratio.above() for ratio in both.values()):
        return "good", f"helps: {text}"
    level: Level = "warning" if any(ratio.below() for ratio in both.values()) else "note"
    return level, f"does not help here{'' if len(judged) == 2 else f' in {judged[0]}'}: {text}"


def is_judged(ratio: Estimate) -> bool:
    """Whether a ratio says anything: it has an interval, or is the same on every single prompt."""
    return ratio.has_interval or is_unchanged(ratio)


def is_unchanged(ratio: Estimate) -> bool:
    """Whether a step changes no prompt; sums of a few prompts are also equal by chance."""
    return ratio.value == 1.0 and (ratio.low == ratio.high if ratio.has_interval else ratio.why == AGREE)


def bare(ratio: Estimate) -> str:
    """A ratio with what it rests on."""
    return f"ratio {number(ratio.value, 3)}, {evidence(ratio)}"


def saved(ratio: Estimate) -> str:
    """What a step does to forwards."""
    if is_unchanged(ratio):
        return f"stay as they are ({bare(ratio)})"
    return f"{turned(ratio, 'are fewer', 'are more', 'differ by no more than chance may give')} ({bare(ratio)})"


def times(ratio: Estimate) -> str:
    """What a step does to throughput."""
    said = turned(ratio, "is higher", "is lower", "shows no change beyond its interval")
    return f"{said} ({number(ratio.value)} {TIMES} the rung before, {evidence(ratio)})"


def turned(ratio: Estimate, above: str, below: str, within: str) -> str:
    """The words for the side on which a ratio lies; without an interval it lies on none."""
    if not ratio.has_interval:
        return "cannot be judged"
    return above if ratio.above() else below if ratio.below() else within


def pace_step(group: LadderGroup, key: str) -> Estimate | None:
    """Throughput over the rung below, a mean of the tasks; None where it was not timed, or a timing failed a gate."""
    rungs, ratio = group.rungs(key), group.mean(key, lambda rung: rung.throughput, geometric)
    return None if ratio.value is None or any(rung.doubts for rung in rungs) else ratio


def lossy(group: LadderGroup, frames: Frames) -> Iterator[Line]:
    """What rungs that may change the output do to it, against the rung that keeps it and differs in nothing else."""
    for key in group.keys:
        rungs = group.rungs(key)
        pairs = [(rung.exact, rung.result) for rung in rungs if rung.exact is not None and is_sound(rung.exact)]
        if rungs[0].result.claim != Claim.LOSSY or group.unsound(key) or len(pairs) < len(rungs):
            continue
        outputs = pooled_outputs(frames, [(own, exact.cell_id) for exact, own in pairs])
        ratio = pooled_forwards(frames, pairs)
        name = f"{group.names[key]} ({rungs[0].result.claim})"
        text = f"{name} against the same with the exact rule: {fewer(ratio, 'exact')}"
        if not rungs[0].result.cell.draws_anew:
            same = f"identical outputs {outputs.n_identical} of {outputs.n}"
            text += f"; {same}, edit distance {percent(outputs.edit_distance.value)} of the longer output"
        told = [f"all together {correctness(outputs.correct_difference)}"] if len(pairs) > 1 else []
        for (task, _), (exact, own) in zip(group.ladders, pairs, strict=True):
            alone = pooled_outputs(frames, [(own, exact.cell_id)])
            told.append(f"{task} {correctness(alone.correct_difference)}")
        rule = rungs[0].result.cell.drafter.acceptance
        yield "note", f"{text}. Right answers, {rule} less exact: {'; '.join(told)} ({PAPER})."


def correctness(difference: Estimate) -> str:
    """A paired difference of right answers in words."""
    if difference.value is None:
        return "not scored"
    return f"{100 * difference.value:+z.1f} points ({interval(difference, 1, 100)}; {count(difference.n, 'prompt')})"


def reduction(rung: Rung) -> Estimate:
    """Threshold decoding's forwards over a rung's."""
    return rung.result.nfe_reduction


def forwards(rung: Rung) -> Estimate:
    """Forwards a prompt."""
    return rung.result.nfe
