"""Temperature and noise: forwards, stale draws and quality against T, coupled noise beside independent noise.

Shown when a run has several temperatures above 0 or both noise modes. Cells are grouped by what they share apart from
temperature and noise; at T = 0 nothing is drawn, so the greedy cells stand in every group and under both modes.
"""

from collections.abc import Iterable

from reports import marks
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Group, Part, SectionInfo, notes_of
from reports.noise_modes import pairs
from reports.phrases import UNCORRECTED
from reports.temperature_charts import charts
from reports.temperature_findings import PAPER, findings
from reports.temperature_quality import qualities
from reports.temperature_tables import comparison, table
from reports.text import count
from sweeps.aggregate import CellResult

MOST_STUDIES = 4

LEAD = (
    "Coupled: drafter and target draw with one table of noise. Independent: the target draws afresh at every forward. "
    "{law} Agreement asks, commit by commit, whether the drafter's stale draw at the committed "
    "position was the token. For coupled noise the paper bounds it from below by (1-d)/(1+d), d being the total "
    "variation between stale and fresh distribution there. Draft-free, the stale distribution is one commit old; with "
    "drafts it is as old as the walk has come in its round, so d of different methods is not of one age. The bound is "
    "for positions chosen without looking at the noise (confidence top1), and for trees that do not weigh drawn "
    "scores; SPOT's do, so there it is a close guide. "
    f"{UNCORRECTED} {marks.LEAD}"
)
TOP1 = (
    "Both sample the target's own distribution; coupled output also equals the draft-free one token for token, "
    "independent output does not."
)
SAMPLED = (
    "With confidence sampled they follow different distributions: a coupled position passed over keeps its draw, so "
    "coupled runs equal their own draft-free runs token for token, and yet do not follow the law of fresh draws, as "
    "independent ones do. A difference between the modes may then come from their texts."
)


def law(results: Iterable[CellResult]) -> str:
    """What the noise modes sample, by the rule of confidence that the drawn cells have."""
    rules = {result.cell.decode.confidence for result in results if result.cell.decode.temperature > 0}
    if "sampled" not in rules:
        return TOP1
    return f"With confidence top1: {TOP1[0].lower()}{TOP1[1:]} {SAMPLED}" if "top1" in rules else SAMPLED


def info(frames: Frames) -> SectionInfo | None:
    """Findings, pictures and a table for each group of cells; None where temperature and noise do not vary."""
    measured = [result for result in frames.results if result.n]
    labels = labels_of(frames.results)
    studies = [(title, own) for title, own in studies_of(measured, labels).items() if varies(own)]
    if not studies:
        return None
    groups = tuple(
        Group(title=title, parts=parts(title, own, frames, labels), folded=place > 0)
        for place, (title, own) in enumerate(studies[:MOST_STUDIES])
    )
    more = len(studies) - MOST_STUDIES
    cuts = (f"{count(more, 'more group')} of cells; their numbers are in report-data/cells.csv",) if more > 0 else ()
    lead = LEAD.format(law=law(result for _, own in studies for result in own))
    return SectionInfo(
        key="temperature",
        title="Temperature and noise",
        lead=lead,
        groups=groups,
        cuts=cuts,
        findings=notes_of(groups, but=PAPER),
    )


def varies(results: list[CellResult]) -> bool:
    """Whether there are several temperatures above 0, or both noise modes."""
    sampled = {(r.cell.decode.temperature, r.cell.decode.noise) for r in results if r.cell.decode.temperature > 0}
    return len({temperature for temperature, _ in sampled}) > 1 or len({noise for _, noise in sampled}) > 1


def studies_of(results: list[CellResult], labels: Labels) -> dict[str, list[CellResult]]:
    """Results by what they share apart from temperature and noise; the greedy ones join each group they fit."""
    names = {result.cell_id: apart_from_noise(result, labels) for result in results}
    greedy = [result for result in results if result.cell.decode.temperature == 0]
    sampled = [result for result in results if result.cell.decode.temperature > 0]
    seeds = len({result.cell.seed for result in sampled}) > 1
    confidences = len({result.cell.decode.confidence for result in sampled}) > 1
    studies: dict[str, list[CellResult]] = {}
    for result in sampled:
        name = names[result.cell_id]
        title = name + (f", confidence {result.cell.decode.confidence}" if confidences else "")
        title += f", seed {result.cell.seed}" if seeds else ""
        fitting = [other for other in greedy if names[other.cell_id] == name]
        studies.setdefault(title, fitting).append(result)
    return studies


def apart_from_noise(result: CellResult, labels: Labels) -> str:
    """The name of a cell's setting without its temperature, noise and confidence."""
    hidden = ("T = ", "noise ", "confidence ")
    return ", ".join(fact for fact in labels.setting[result.cell_id].split(", ") if not fact.startswith(hidden))


def parts(title: str, results: list[CellResult], frames: Frames, labels: Labels) -> tuple[Part, ...]:
    """Findings, pictures and the tables of one group."""
    ordered = sorted(results, key=lambda r: (r.cell.decode.noise, r.cell.decode.temperature))
    compared = list(pairs(ordered, frames.rows))
    quality = qualities(ordered, frames.rows, labels)
    tables = (*((comparison(title, compared, labels),) if compared else ()), table(title, ordered, labels))
    return (findings(results, compared, quality, labels), *charts(title, ordered, quality, labels), *tables)
