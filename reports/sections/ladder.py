"""The ladder of SPOT-Sets: standard decoding, threshold decoding, and what each further option adds, rung by rung.

Rungs are found by identity (`sweeps.ladder`), whatever a sweep calls its drafters. A rung that does not help is shown
as one, and a rung whose output may differ is called lossy wherever it stands.
"""

from collections.abc import Iterator
from itertools import zip_longest

from reports import marks
from reports.frames import Frames
from reports.labels import labels_of
from reports.ladder_charts import charts
from reports.ladder_findings import findings
from reports.ladder_groups import LadderGroup, ladder_groups
from reports.ladder_tables import costs, outputs
from reports.model import Group, Head, Level, Lines, Part, SectionInfo, Table, Value
from reports.phrases import UNCORRECTED
from reports.text import DASH, TIMES, count, visible

MOST_GROUPS, OPEN_GROUPS = 8, 2
LEAD = (
    "Each rung adds what it names to the rung before it. Threshold decoding fills, in one forward, every position that "
    "is surer than tau; the rungs above it draft its steps. Throughput over standard decoding is a ratio of times on "
    "the same prompts in this run: threshold decoding was timed beside standard decoding, in turn on one worker, and "
    "each drafted rung beside threshold decoding; a drafted rung's number is the product of both ratios (two links), "
    "and its interval resamples the prompts for both together. Forwards are held against threshold decoding by the "
    "same tau. Fewest (the tick in a bar): no drafter of that budget, with cross-block drafts where the rung has them "
    "and without where it has not, can take the rung's steps in fewer forwards; one a block is the fewest of all. So "
    "they say how much is left to save. Hollow: lossy, "
    "the output may differ from threshold decoding's; all other rungs promise its output, "
    "token by token. Rungs that failed or are incomplete are in no mean. Step: against the rung before; \u25b2 and "
    "\u25bc where 1 is outside of the interval. \u2020: a timing behind the number failed a gate. "
    f"{UNCORRECTED} {marks.LEAD}"
)
PAPER = (
    ("threshold decoding", "3.3 to 6.1; mean 5.0"),
    ("+ set drafter and tree", "6.7"),
    ("+ mass floor", "6.9"),
    ("+ block boundary (cross-block drafting, draft refresh)", "7.5"),
    ("+ product, max-commit (lossy)", "7.9"),
    ("the same, exact", "7.6"),
)


def info(frames: Frames) -> SectionInfo | None:
    """A group of ladders that differ in the task alone, and the paper's figures; None without a ladder."""
    found = ladder_groups(frames, labels_of(frames.results))
    if not found:
        return None
    groups: list[Group] = []
    told: list[tuple[str, ...]] = []
    for place, group in enumerate(found[:MOST_GROUPS]):
        whole = findings(group, frames)
        said = Lines(lines=(*whole.lines, *without_standard(group), *aside(group, found)))
        told.append(tuple(f"{group.title}: {text}" for level, text in whole.lines if level != "warning"))
        parts: tuple[Part, ...] = (*((said,) if said.lines else ()), *charts(group))
        tables = (costs(group, frames), outputs(group, frames))
        groups.append(Group(title=group.title, parts=(*parts, *tables), folded=place >= OPEN_GROUPS))
    more = len(found) - MOST_GROUPS
    return SectionInfo(
        key="ladder",
        title="The ladder, rung by rung",
        lead=LEAD,
        findings=tuple(text for of_rank in zip_longest(*told) for text in of_rank if text),
        groups=(*groups, Group(title="The paper's ladder, for SDAR-8B (arXiv 2610.22543)", parts=(paper(),))),
        cuts=(f"{count(more, 'more ladder')}; their numbers are in report-data/cells.csv",) if more > 0 else (),
    )


def without_standard(group: LadderGroup) -> Iterator[tuple[Level, str]]:
    """What a plan without the standard rule leaves out."""
    if not group.over_standard:
        text = "The standard rule was not run: throughput is over threshold decoding."
        yield "note", f"{text} With commit: [standard, threshold] in the grid it is over standard decoding."


def aside(group: LadderGroup, found: list[LadderGroup]) -> Iterator[tuple[Level, str]]:
    """Which drafters of other names on the same threshold decoding are no rungs of this ladder, and why."""
    own = group.ladders[0][1]
    mine = {rung.result.cell.drafter.name for rung in own.rungs}
    for other in found:
        top = other.ladders[0][1]
        if other is not group and top.threshold.cell_id == own.threshold.cell_id:
            one, two = top.top.cell.drafter, own.top.cell.drafter
            kinds = [f"kind {one.kind}, not {two.kind}"] if one.kind != two.kind else []
            budgets = [f"budget {one.budget}, not {two.budget}"] if one.budget != two.budget else []
            models = ["another checkpoint"] if one.digest != two.digest and not kinds else []
            theirs = dict.fromkeys(rung.result.cell.drafter.name for rung in top.rungs)
            names = ", ".join(visible(name, 40) for name in theirs if name not in mine)
            if names:
                yield "note", f"A ladder of its own, with {' and '.join([*kinds, *budgets, *models])}: {names}."


def paper() -> Table:
    """What the paper reports, to compare shapes with."""
    heads = (Head(name="Rung", number=False), Head(name="Throughput over standard", unit=f"{TIMES}, four tasks"))
    rows = tuple(tuple(Value(text) for text in texts) for texts in PAPER)
    return Table(caption=f"The ladder in the paper {DASH} throughput", heads=heads, groups=(("", rows),))
