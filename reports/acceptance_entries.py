"""Drafted cells of the threshold rule as entries of a study of acceptance: what they gain, what they keep, what beats
them.

Gain and agreement are both against draft-free decoding by the same tau, on the same prompts. An entry is on the front
where no sound entry of its panel gains at least as much and keeps at least as much, and more of one of them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from reports.frames import Frames
from reports.labels import RULE, Labels
from reports.ladder_groups import is_sound
from reports.text import visible
from sweeps.aggregate import CellResult
from sweeps.merge import NO_ROWS
from sweeps.records import GenerationRecord
from sweeps.statistics import Estimate, undefined

Read = Callable[[CellResult], Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The entries of one task and setting, apart from the commit rule; `title` is both, `setting` the latter."""

    title: str
    setting: str
    results: tuple[CellResult, ...]


def panels(results: Iterable[CellResult], labels: Labels) -> list[Panel]:
    """The panels in which a rule of acceptance other than `exact` was tried."""
    seeds = len({result.cell.seed for result in results}) > 1
    groups: dict[tuple[str, str], list[CellResult]] = defaultdict(list)
    for result in results:
        cell = result.cell
        if cell.decode.commit == "threshold" and not cell.is_baseline and not cell.drafter.oracle:
            setting = apart_from_rule(result, labels) + (f", seed {cell.seed}" if seeds else "")
            groups[setting, labels.task[result.cell_id]].append(result)
    order = list(dict.fromkeys(setting for setting, _ in groups))
    return [
        Panel(title=f"{setting}: {task}", setting=setting, results=tuple(own))
        for (setting, task), own in sorted(groups.items(), key=lambda item: order.index(item[0][0]))
        if any(result.cell.drafter.acceptance != "exact" for result in own)
    ]


def apart_from_rule(result: CellResult, labels: Labels) -> str:
    """The name of a cell's setting without its commit rule."""
    facts = labels.setting[result.cell_id].split(", ")
    return ", ".join(fact for fact in facts if not fact.startswith(RULE))


def gain(result: CellResult) -> Estimate:
    """Threshold decoding's forwards over own."""
    return result.nfe_reduction


def identical(result: CellResult) -> Estimate:
    """Share of outputs equal to threshold decoding's."""
    return result.fidelity.identical if result.fidelity else undefined()


def kept_tokens(result: CellResult) -> Estimate:
    """1 less the edit distance from threshold decoding's output, as a share of the longer one."""
    if result.fidelity is None or (distance := result.fidelity.edit_distance).value is None:
        return undefined()
    low, high = (None if end is None else 1 - end for end in (distance.high, distance.low))
    return replace(distance, value=1 - distance.value, low=low, high=high)


def front(results: Iterable[CellResult], agreement: Read) -> set[str]:
    """Ids of the cells on the front: sound ones that no other sound one beats."""
    places = {
        result.cell_id: (x, y)
        for result in results
        if is_sound(result) and (x := gain(result).value) is not None and (y := agreement(result).value) is not None
    }
    return {id for id, place in places.items() if not any(beats(other, place) for other in places.values())}


def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether one place is at least as good both ways, and better one way."""
    return one != other and one[0] >= other[0] and one[1] >= other[1]


def rule_of(result: CellResult) -> str:
    """The rule of acceptance with its claim."""
    return f"{result.cell.drafter.acceptance} ({result.claim})"


def rest_of(result: CellResult, results: Iterable[CellResult]) -> str:
    """What tells an entry from others of its rule: tau, and drafter and budget where there are several."""
    drafters = {(other.cell.drafter.name, other.cell.drafter.budget) for other in results}
    name = [visible(result.cell.drafter.name, 40)] if len({name for name, _ in drafters}) > 1 else []
    budget = [f"D {result.cell.drafter.budget}"] if len({budget for _, budget in drafters}) > 1 else []
    return ", ".join([*name, f"tau {result.cell.decode.tau:g}", *budget])


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One prompt under one rule and under `exact`, all taus and budgets together: forwards, equal outputs, settings."""

    forwards: int
    forwards_exact: int
    identical: int
    correct: int
    correct_exact: int
    scored: int
    settings: int


def beside_exact(rule: str, own: Iterable[Panel], frames: Frames) -> list[Beside]:
    """Each prompt that cells of a rule decoded, beside the cells that differ in that alone; sound cells only."""
    found: dict[tuple[str, int], list[tuple[GenerationRecord, GenerationRecord]]] = defaultdict(list)
    for panel in own:
        by_id = {result.cell_id: result for result in panel.results}
        for result in panel.results:
            exact = by_id.get(result.cell.exactly().cell_id)
            if result.cell.drafter.acceptance != rule or exact is None or not (is_sound(result) and is_sound(exact)):
                continue
            ours, theirs = (frames.rows.get(one.cell_id, NO_ROWS).generations for one in (result, exact))
            for index in ours.keys() & theirs.keys():
                found[panel.title, index].append((ours[index], theirs[index]))
    return [prompt_of(pairs) for _, pairs in sorted(found.items())]


def prompt_of(pairs: list[tuple[GenerationRecord, GenerationRecord]]) -> Beside:
    """The counts of one prompt."""
    scored = [(one.correct, two.correct) for one, two in pairs if one.correct is not None and two.correct is not None]
    return Beside(
        forwards=sum(one.counters.nfe for one, _ in pairs),
        forwards_exact=sum(two.counters.nfe for _, two in pairs),
        identical=sum(one.output_ids == two.output_ids for one, two in pairs),
        correct=sum(one for one, _ in scored),
        correct_exact=sum(two for _, two in scored),
        scored=len(scored),
        settings=len(pairs),
    )
