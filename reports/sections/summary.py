"""The top of the page: what is wrong first, then what was run, then what came out, in numbers."""

from collections import Counter
from collections.abc import Sequence

from reports.frames import Frames
from reports.labels import labels_of
from reports.marks import is_broken
from reports.method_findings import forwards_findings, throughput_findings
from reports.model import Facts, Group, Level, Lines, SectionInfo
from reports.text import count, visible
from reports.uncached import sentences
from reports.winners import is_lossy

MOST_OF_A_STUDY = 4
MOST_METHODS, MOST_BESIDE_STUDIES, MOST_SPEEDS = 4, 2, 3


def info(frames: Frames, others: Sequence[SectionInfo] = ()) -> SectionInfo:
    """Alarms, findings and facts. `others` are the page's other sections: what studies found comes before methods."""
    studies = [section for section in others if section.findings]
    labels = labels_of(frames.results)
    methods, speeds = forwards_findings(frames, labels), throughput_findings(frames, labels)
    most = MOST_BESIDE_STUDIES if studies else MOST_METHODS
    groups = [Group(title="Checks", parts=(Lines(lines=tuple(checks(frames))),))]
    groups += [Group(title=s.title, parts=(notes(s.findings[:MOST_OF_A_STUDY]),), link=s.key) for s in studies]
    if methods:
        said = [*methods[:most], *speeds[:MOST_SPEEDS]]
        groups.append(Group(title="Methods", parts=(notes(said),), link="results"))
    groups.append(Group(title="What was run", parts=(Facts(rows=facts(frames)),)))
    left = [(section.title, len(section.findings) - MOST_OF_A_STUDY) for section in studies]
    left.append(("Results", max(0, len(methods) - most) + max(0, len(speeds) - MOST_SPEEDS)))
    cuts = tuple(f"{count(n, 'more finding')}: see {title}" for title, n in left if n > 0)
    return SectionInfo(key="summary", title="Summary", lead="", groups=tuple(groups), cuts=cuts)


def notes(texts: Sequence[str]) -> Lines:
    """Sentences as lines of one level."""
    return Lines(lines=tuple(("note", text) for text in texts))


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
    every = (*results, *frames.references)
    alarms = [alarm for result in every for alarm in result.alarms]
    alarms += [alarm for study in frames.studies for alarm in study.alarms]
    for kind, n in Counter(alarm.kind for alarm in alarms).most_common():
        lines.append(("alarm", f"{kind}: {count(n, 'time')}."))
    if frames.problems:
        lines.append(("alarm", f"{count(len(frames.problems), 'file')} under results/ could not be used."))
    failed, missing = sum(result.n_failed for result in every), sum(result.n_missing for result in every)
    if failed:
        cells = sum(result.n_failed > 0 for result in every)
        lines.append(("alarm", f"{count(failed, 'prompt')} failed in {count(cells, 'cell')}; no mean counts them."))
    if missing:
        cells = sum(result.n_missing > 0 for result in every)
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
    lines += [("note", text) for text in sentences(results)]
    if lossy := [result for result in results if is_lossy(result) and not is_broken(result)]:
        outputs = [own for result in lossy if (own := result.fidelity) is not None]
        equal, n = sum(own.n_identical for own in outputs), sum(own.n for own in outputs)
        told = f"{equal:,} of {n:,} equal draft-free decoding by the same rule" if n else "none was compared"
        text = f"{count(len(lossy), 'cell is', 'cells are')} lossy, which promises nothing of its outputs: {told}."
        lines.append(("note", text))
    unstudied = sum(study.n_failed + study.n_missing for study in frames.studies)
    if unstudied:
        lines.append(("warning", f"{count(unstudied, 'prompt')} of the order study failed or not studied yet."))
    if not (failed or missing or untimed or unstudied):
        with_them = f" and {count(len(frames.references), 'uncached reference')}" if frames.references else ""
        lines.append(("good", f"All {count(len(results), 'cell')}{with_them} are complete."))
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
    ruled = any(cell.decode.threshold is not None for cell in cells)
    return (
        ("Sweep", visible(frames.spec.name)),
        ("Cells", f"{len(drafting):,} with drafts, {len(cells) - len(drafting):,} draft-free"),
        ("Targets", names([cell.target.name for cell in cells])),
        ("Tasks", names([cell.task.name for cell in cells])),
        ("Drafters", names([cell.drafter.name for cell in drafting if not cell.drafter.oracle])),
        *((("Bounds", names([f"{cell.drafter.name}{cell.drafter.mark}" for cell in bounds])),) if bounds else ()),
        ("Budgets", ", ".join(str(budget) for budget in sorted({cell.drafter.budget for cell in drafting}))),
        ("Temperatures", ", ".join(f"{value:g}" for value in sorted({cell.decode.temperature for cell in cells}))),
        *((("Commit rules", names([cell.decode.rule for cell in cells])),) if ruled else ()),
        ("Prompts", f"{sum(result.n for result in results):,} decoded, {timed:,} also timed"),
    )
