"""The observation study of one prompt: how well a stale distribution foretells the commits that follow it.

A step leaves a stale distribution and its own next commit, the known one. Look-ahead k asks for the commit k steps
later, given the k true commits in between. Counts only, by look-ahead and by the index which the commit asked for has
within its block: small, exact to merge, and enough for every share of the report (arXiv 2610.22543, Figure 2).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sweeps.cell import Cell
from sweeps.spec import DrafterSpec

LOOK_AHEADS = 8
TOPS = (1, 2, 4, 8, 16, 32)
STUDY = "order-study"

Grid = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRecord:
    """One prompt, decoded draft-free and looked back on.

    Every grid counts `[k - 1][b]`: look-ahead k, commit index b in [0, L). `asked` are the commits asked for; those
    that leave no choice (one open position) are not. Of them, `in_top[i]`: the token is among the stale top `TOPS[i]`
    of its position; `drawn`: it is the stale draw (at T = 0 the argmax); `by_confidence`: its position is the most
    confident stale one that is still open; `by_model`: it is the order model's first choice.
    """

    prompt_id: str
    prompt_index: int
    commits: int
    asked: Grid
    in_top: tuple[Grid, ...]
    drawn: Grid
    by_confidence: Grid
    by_model: Grid

    def __post_init__(self) -> None:
        if len(self.in_top) != len(TOPS) or len(self.asked) != LOOK_AHEADS:
            found = f"{len(self.in_top)} by {len(self.asked)}"
            raise ValueError(f"study: tops by look-aheads are {found}: allowed is {len(TOPS)} by {LOOK_AHEADS}")
        for name, grid in self.counts():
            widths = [len(row) for row in grid]
            if widths != [len(row) for row in self.asked]:
                raise ValueError(f"study: {name} has rows of {widths}: those of asked differ")
            if any(
                not 0 <= n <= most for a, b in zip(grid, self.asked, strict=True) for n, most in zip(a, b, strict=True)
            ):
                raise ValueError(f"study: {name} counts more than was asked, or less than nothing")

    def counts(self) -> Iterator[tuple[str, Grid]]:
        """Every grid of what came true, by name."""
        yield from ((f"in_top[{top}]", grid) for top, grid in zip(TOPS, self.in_top, strict=True))
        yield from (("drawn", self.drawn), ("by_confidence", self.by_confidence), ("by_model", self.by_model))


def study_cell(cell: Cell) -> Cell:
    """What a study of `cell`'s order model is stored under: its draft-free cell and that model, nothing else.

    Budgets and drafter options do not change what is observed, so all cells that share both share one study, and a
    sweep whose budgets change finds it again.
    """
    drafter = cell.drafter
    model = DrafterSpec(
        name=STUDY,
        kind=STUDY,
        budget=1,
        hedge=0.0,
        merge_states=False,
        checkpoint=drafter.checkpoint,
        digest=drafter.digest,
    )
    return replace(cell, drafter=model)


def is_study(cell: Cell) -> bool:
    """Whether a cell is one that only studies are stored under."""
    return cell.drafter.kind == STUDY
