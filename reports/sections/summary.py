"""The top of the page: what is wrong first, then what was run, then what came out, in numbers."""

from collections import Counter

from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Facts, Group, Level, Lines, SectionInfo
from reports.text import count, interval, number, visible
from sweeps.aggregate import CellResult
from sweeps.statistics import Estimate

MOST_FINDINGS = 12


def info(frames: Frames) -> SectionInfo:
    """Alarms, facts and findings."""
    labels = labels_of(frames.results)
    found = findings(frames, labels)
    groups = [Group(title="Checks", parts=(Lines(lines=tuple(checks(frames))),))]
    if found:
        groups.append(Group(title="Findings", parts=(Lines(lines=tuple(found[:MOST_FINDINGS])),)))
    groups.append(Group(title="What was run", parts=(Facts(rows=facts(frames)),)))
    left = len(found) - MOST_FINDINGS
    cuts = (f"{count(left, 'more finding')}: see the results below",) if left > 0 else ()
    return SectionInfo(key="summary", title="Summary", lead="", groups=tuple(groups), cuts=cuts)


def checks(frames: Frames) -> list[tuple[Level, str]]:
    """What a reader must know before any number, worst first."""
    results = frames.results
    lines: list[tuple[Level, str]] = []
    promised = [result for result in results if result.claim_holds is not None]
    compared = sum(result.identity.n_checked for result in promised)
    identical = sum(result.identity.n_identical for result in promised)
    bugs = sum(result.identity.bugs for result in promised)
    ties = sum(result.identity.near_ties for result in promised)
    if bugs:
        lines.append(
            (
                "alarm",
                f"BUG: {count(bugs, 'generation')} differ from draft-free at a margin that rounding cannot explain.",
            )
        )
    if ties:
        lines.append(
            (
                "alarm",
                f"{count(ties, 'generation')} differ from draft-free at a near-tie: the claim does not hold there.",
            )
        )
    alarms = [alarm for result in results for alarm in result.alarms]
    alarms += [alarm for study in frames.studies for alarm in study.alarms]
    for kind, n in Counter(alarm.kind for alarm in alarms).most_common():
        lines.append(("alarm", f"{kind}: {count(n, 'time')}."))
    if frames.problems:
        lines.append(("alarm", f"{count(len(frames.problems), 'file')} under results/ could not be used."))
    failed, missing = sum(result.n_failed for result in results), sum(result.n_missing for result in results)
    if failed:
        cells = sum(result.n_failed > 0 for result in results)
        lines.append(("alarm", f"{count(failed, 'prompt')} failed in {count(cells, 'cell')}; no mean counts them."))
    if missing:
        cells = sum(result.n_missing > 0 for result in results)
        lines.append(("warning", f"{count(missing, 'prompt')} of {count(cells, 'cell')} not run yet."))
    untimed = sum(result.n_timing_failed + result.n_timing_missing for result in results)
    if untimed:
        lines.append(("warning", f"{count(untimed, 'timing')} failed or not run yet (see Missing and failed)."))
    doubtful = sum(bool(result.throughput.doubts) for result in results if not result.cell.is_baseline)
    if doubtful:
        lines.append(
            (
                "warning",
                f"Timings of {count(doubtful, 'cell')} failed a gate (marked †): too few repeats or prompts, or noise.",
            )
        )
    if compared and identical == compared:
        lines.append(
            (
                "good",
                f"Every generation that must equal draft-free decoding does: {identical:,} of {compared:,} compared.",
            )
        )
    elif compared:
        lines.append(("note", f"Identical to draft-free, token by token: {identical:,} of {compared:,}."))
    unstudied = sum(study.n_failed + study.n_missing for study in frames.studies)
    if unstudied:
        lines.append(("warning", f"{count(unstudied, 'prompt')} of the order study failed or not studied yet."))
    if not (failed or missing or untimed or unstudied):
        lines.append(("good", f"All {count(len(results), 'cell')} are complete."))
    return lines


def facts(frames: Frames) -> tuple[tuple[str, str], ...]:
    """What was run."""
    results = frames.results
    cells = [result.cell for result in results]

    def names(values: list[str]) -> str:
        return ", ".join(visible(name, 80) for name in dict.fromkeys(values))

    drafting = [cell for cell in cells if not cell.is_baseline]
    bounds = [cell for cell in drafting if cell.drafter.oracle]
    timed = sum(result.throughput.ratio.n for result in results)
    return (
        ("Sweep", visible(frames.spec.name)),
        ("Cells", f"{len(drafting):,} with drafts, {len(cells) - len(drafting):,} draft-free"),
        ("Targets", names([cell.target.name for cell in cells])),
        ("Tasks", names([cell.task.name for cell in cells])),
        ("Drafters", names([cell.drafter.name for cell in drafting if not cell.drafter.oracle])),
        *((("Bounds", names([f"{cell.drafter.name}{cell.drafter.mark}" for cell in bounds])),) if bounds else ()),
        ("Budgets", ", ".join(str(budget) for budget in sorted({cell.drafter.budget for cell in drafting}))),
        ("Temperatures", ", ".join(f"{value:g}" for value in sorted({cell.decode.temperature for cell in cells}))),
        ("Prompts", f"{sum(result.n for result in results):,} decoded, {timed:,} also timed"),
    )


def findings(frames: Frames, labels: Labels) -> list[tuple[Level, str]]:
    """For each setting and task: where the fewest forwards were needed, and the highest throughput that can be trusted.

    Ratios whose timing failed a gate name nobody the fastest.
    """
    lines: list[tuple[Level, str]] = []
    for setting, results in labels.by_setting(frames.results):
        for task in dict.fromkeys(labels.task[result.cell_id] for result in results):
            here = [r for r in results if labels.task[r.cell_id] == task and not r.cell.is_baseline]
            methods = [result for result in here if not result.cell.drafter.oracle]
            sound = [result for result in methods if result.claim_holds is not False and not result.alarms]
            fewest = max(sound, key=lambda r: r.nfe_reduction.value or 0, default=None)
            timed = [result for result in sound if result.throughput.ratio.value and not result.throughput.doubts]
            fastest = max(timed, key=lambda r: r.throughput.ratio.value or 0, default=None)
            if fewest is not None and fewest.nfe_reduction.value:
                lines.append(("note", f"{setting}, {task}: {sentence(labels, fewest, fastest)}"))
    return lines


def sentence(labels: Labels, fewest: CellResult, fastest: CellResult | None) -> str:
    """One finding."""
    reduction = fewest.nfe_reduction
    text = (
        f"{name(labels, fewest)} needs {number(reduction.value)} times fewer forwards than draft-free decoding "
        f"({evidence(reduction)})"
    )
    if fastest is not None and fastest.throughput.ratio.value is not None:
        ratio = fastest.throughput.ratio
        who = "this" if fastest is fewest else name(labels, fastest)
        text += (
            f". Of the timings that passed the gates, {who} has the highest throughput: {number(ratio.value)} times "
        )
        text += f"draft-free ({evidence(ratio)})"
    return text + "."


def evidence(estimate: Estimate) -> str:
    """What a number rests on: its interval, where it has one, and its prompts."""
    prompts = count(estimate.n, "prompt")
    return f"{interval(estimate)}; {prompts}" if interval(estimate) else prompts


def name(labels: Labels, result: CellResult) -> str:
    """Method and budget."""
    return f"{labels.method[result.cell_id]} at D = {result.cell.drafter.budget}"
