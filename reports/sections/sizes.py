"""The size study: targets of one family side by side: forwards, throughput, and where the time of a round goes.

Shown when a run has timed cells of two sizes of one family that differ in nothing else. Forwards and times stand in
columns of their own; where a number follows from others by arithmetic it is called predicted.
"""

from reports import marks
from reports.frames import Frames
from reports.labels import Labels, labels_of
from reports.model import Group, Part, SectionInfo
from reports.phrases import UNCORRECTED
from reports.size_charts import charts
from reports.size_findings import findings
from reports.size_groups import SizeGroup, size_groups
from reports.size_tables import costs_table, parts_table, results_table
from reports.text import count

MOST_GROUPS, UNFOLDED = 6, 2
LEAD = (
    "Each row stands beside the row of the same method, task and budget on the other sizes; the draft-free numbers of "
    "a row were timed between its own repeats. A round is one forward with what drafts for it and what walks over "
    "its results: drafter (stale distribution, order model and tree), verification (the forward over the root and its "
    "drafts, (1+D) blocks where draft-free decoding forwards one), walk (output head of the states on the walk and the "
    "target's rule), rest (what is left over, without a range). "
    "Times are means over repeats, summed over prompts; ranges are 95 % intervals over prompts. "
    "Cost: a verification forward over a draft-free forward, measured. Break-even is no measurement: it is the cost at "
    "which the measured NFE reduction would be paid for exactly, with drafter, walk and rest as measured (predicted); "
    "below 1 nothing would pay. {uncorrected} \u2020: the timing failed a gate (see Timing quality). {marks}"
)


def info(frames: Frames) -> SectionInfo | None:
    """Findings, then pictures and tables for each group; None where no family was timed in two sizes."""
    labels = labels_of(frames.results)
    groups = size_groups(frames.results, labels)
    if not groups:
        return None
    found = findings(groups, labels)
    parts = [
        part
        for place, group in enumerate(groups[:MOST_GROUPS])
        for part in parts_of(group, frames, labels, folded=place >= UNFOLDED)
    ]
    more = len(groups) - MOST_GROUPS
    return SectionInfo(
        key="sizes",
        title="Targets by size",
        lead=LEAD.format(uncorrected=UNCORRECTED, marks=marks.LEAD),
        groups=(Group(title="What size changes", parts=(found,)), *parts),
        findings=tuple(text for level, text in found.lines if level == "note"),
        cuts=(f"{count(more, 'more group')} of cells; their numbers are in report-data/cells.csv",) if more > 0 else (),
    )


def parts_of(group: SizeGroup, frames: Frames, labels: Labels, *, folded: bool) -> tuple[Group, ...]:
    """One group of cells under three headings."""
    time: tuple[Part, ...] = (*charts(group, frames, labels), parts_table(group, labels))
    return (
        Group(title=f"{group.title}: forwards and throughput", parts=(results_table(group, labels),), folded=folded),
        Group(title=f"{group.title}: the time of a round", parts=time, folded=folded),
        Group(title=f"{group.title}: what verification costs", parts=(costs_table(group, labels),), folded=folded),
    )
