"""Looking back on a draft-free trajectory: what each stale distribution foretold of the commits behind it.

For every step of a trace and every look-ahead: was the committed token likely there, was the committed position the
most confident one, does the order model, asked as the drafter asks it, name it? (arXiv 2610.22543, Figure 2.)

Shapes: L block width, K kept candidates.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sweeps.study import LOOK_AHEADS, TOPS, Grid, StudyRecord
from workers.decoding.expand import VirtualState
from workers.decoding.stale import Stale
from workers.decoding.state import Commit
from workers.drafters.spot import OrderScorer
from workers.models.order_model import OrderModel
from workers.replay.trace import Trace


@dataclass(slots=True)
class Counts:
    """A grid in the making: `rows[k - 1][b]`."""

    length: int
    rows: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows = [[0] * self.length for _ in range(LOOK_AHEADS)]

    def add(self, look_ahead: int, index: int, hit: bool = True) -> None:
        """Count one in."""
        self.rows[look_ahead - 1][index] += hit

    def grid(self) -> Grid:
        """The counts as plain data."""
        return tuple(map(tuple, self.rows))


def study(trace: Trace, model: OrderModel) -> StudyRecord:
    """What the trace shows, and what `model` makes of it. Raises nothing for a trace of the model's block length."""
    length = trace.header.decode.block_length
    asked, drawn, by_confidence, by_model = (Counts(length) for _ in range(4))
    in_top = [Counts(length) for _ in TOPS]
    for step in range(len(trace)):
        nodes = tuple(virtual_states(trace, step))
        if not nodes:
            continue
        stale, index = trace.stale(step), len(trace.steps[step].fill_order)
        named = OrderScorer(model, stale)(nodes).argmax(-1).tolist()
        for look_ahead, node in enumerate(nodes, start=1):
            commit, place = trace.commits[step + look_ahead], (look_ahead, index + look_ahead)
            asked.add(*place)
            rank = token_rank(stale, commit)
            for top, counts in zip(TOPS, in_top, strict=True):
                counts.add(*place, rank < top)
            drawn.add(*place, int(stale.drawn_ids_L2[commit.position, 0]) == commit.token)
            by_confidence.add(*place, most_confident(stale, node.state.open) == commit.position)
            by_model.add(*place, named[look_ahead - 1] == commit.position)
    return StudyRecord(
        prompt_id=trace.header.prompt_id,
        prompt_index=trace.header.prompt_index,
        commits=len(trace),
        asked=asked.grid(),
        in_top=tuple(counts.grid() for counts in in_top),
        drawn=drawn.grid(),
        by_confidence=by_confidence.grid(),
        by_model=by_model.grid(),
    )


def virtual_states(trace: Trace, step: int) -> Iterator[VirtualState]:
    """The states that true commits lead to from `step`: after 1, 2, .. of them, as long as a choice is left.

    With a single open position there is nothing to foretell, so such states are not asked about.
    """
    state, known = trace.steps[step].state, trace.commits[step].position
    filled: tuple[int, ...] = ()
    for commit in trace.commits[step : step + LOOK_AHEADS]:
        state, filled = state.fill(commit), (*filled, commit.position)
        if len(state.open) < 2:
            return
        yield VirtualState(state, known, filled[1:])


def token_rank(stale: Stale, commit: Commit) -> int:
    """How many tokens were likelier than the committed one; as many as were kept when it is not among them."""
    ids_K = stale.ids_LK[commit.position].tolist()
    return ids_K.index(commit.token) if commit.token in ids_K else len(ids_K)


def most_confident(stale: Stale, open: tuple[int, ...]) -> int:
    """The position among `open` of which the stale distribution is surest; ties to the lowest."""
    odds_L = stale.logodds_L.tolist()
    return max(open, key=odds_L.__getitem__)
