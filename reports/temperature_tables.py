"""The tables of a temperature study: the noise modes compared pair by pair, and every number of every cell."""

from dataclasses import replace

from reports import marks
from reports.labels import Labels
from reports.model import Head, Table, Value
from reports.noise_modes import Pair, forwards_a_token
from reports.shown import shown
from reports.text import no_interval
from sweeps.aggregate import CellResult
from sweeps.draws import bound_holds_for

MOST_ROWS = 200

HEADS = (
    Head(name="Method", number=False),
    Head(name="D", meaning="budget: draft states verified beside the root"),
    Head(name="Noise", number=False),
    Head(name="T", meaning="temperature"),
    Head(name="Prompts", meaning="decoded prompts"),
    Head(name="NFE", unit="forwards/prompt", meaning="target forwards, mean over prompts"),
    Head(name="Per token", unit="forwards", meaning="forwards over generated tokens; draft-free, standard rule: 1"),
    Head(name="Accepted", unit="states/round", meaning="draft states on the walk, mean over rounds"),
    Head(name="Stale d", meaning="total variation between stale and fresh tempered distribution, mean over commits"),
    Head(
        name="Agreement", unit="%", meaning="commits whose token is the drafter's own draw from the stale distribution"
    ),
    Head(name="Bound", unit="%", meaning="mean of (1-d)/(1+d): under coupled noise agreement is at least this"),
    Head(name="Argmax", unit="% of draws", meaning="tokens that are the noise-free best of the fresh distribution"),
    Head(name="Correct", unit="%", meaning="right answers; Wilson interval"),
    Head(name="Claim", number=False, meaning="what the output may claim to be"),
)

COMPARISON = (
    Head(name="Method", number=False),
    Head(name="D"),
    Head(name="T"),
    Head(name="Prompts", meaning="decoded in both modes"),
    Head(name="Forwards a token", unit="independent / coupled", meaning="prompts resampled for both modes together"),
    Head(name="Independent needs", number=False, meaning="more or fewer: the 95 % interval excludes 1"),
)


def comparison(title: str, compared: list[Pair], labels: Labels) -> Table:
    """Independent over coupled noise, pair by pair."""
    by_task: dict[str, list[tuple[Value, ...]]] = {}
    for pair in compared:
        cell_id, cell = pair.coupled.cell_id, pair.coupled.cell
        word = "more" if pair.more else "fewer" if pair.fewer else "the same, within the interval"
        word = word if pair.judged else no_interval([pair.ratio])
        texts = (labels.budget(cell), f"{pair.temperature:g}", str(pair.ratio.n))
        named = marks.method(labels, pair.coupled, pair.independent)
        values = (named, *(Value(text) for text in texts), shown(pair.ratio, 3), Value(word))
        by_task.setdefault(labels.task[cell_id], []).append(values)
    groups = tuple((task, tuple(rows)) for task, rows in by_task.items())
    return Table(caption=f"Independent over coupled noise: {title}", heads=COMPARISON, groups=groups)


def table(title: str, results: list[CellResult], labels: Labels) -> Table:
    """Every number of a group, by task."""
    tasks = list(dict.fromkeys(labels.task[result.cell_id] for result in results))
    ranked = sorted(results, key=lambda r: place(r, labels))
    shown, groups = 0, []
    for task in tasks:
        rows = [row(r, labels) for r in ranked if labels.task[r.cell_id] == task][: MOST_ROWS - shown]
        shown += len(rows)
        if rows:
            groups.append((task, tuple(rows)))
    caption = f"Temperature and noise: {title}"
    return Table(caption=caption, heads=HEADS, groups=tuple(groups), omitted=len(results) - shown)


def row(result: CellResult, labels: Labels) -> tuple[Value, ...]:
    """The numbers of one cell."""
    cell, draws = result.cell, result.draws
    flagged = draws.below_bound and bound_holds_for(cell.decode)
    agreement = shown(draws.agreement, 1, 100)
    return (
        marks.method(labels, result, counted=True),
        Value(labels.budget(cell)),
        Value(cell.decode.noise if cell.decode.temperature > 0 else "none drawn"),
        Value(f"{cell.decode.temperature:g}"),
        marks.prompts(result),
        shown(result.nfe, 1),
        shown(forwards_a_token(result), 3),
        shown(result.accepted_per_round, 2),
        shown(draws.distance, 3),
        replace(agreement, text=f"{agreement.text} < bound", flag="warning") if flagged else agreement,
        shown(draws.bound, 1, 100),
        shown(draws.argmax, 1, 100),
        shown(result.correct, 1, 100),
        marks.claim(result),
    )


def place(result: CellResult, labels: Labels) -> tuple[bool, str, int, str, float]:
    """Where a cell stands in the table: draft-free first, then by method, budget, noise and temperature."""
    cell = result.cell
    method = labels.method[result.cell_id]
    return not cell.is_baseline, method, cell.drafter.budget, cell.decode.noise, cell.decode.temperature
