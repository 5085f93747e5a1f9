"""The ladder of a commit rule: standard decoding, threshold decoding, then named drafters, each one option further.

A rung is a cell. All rungs of a ladder share target, task, temperature, tau, budget, seed and the drafter's kind and
artifact, and stand in the order of the plan. Each is held against the rung before it on the same prompts; forwards and
outputs also against threshold decoding, throughput also against the standard rule (`sweeps.pace`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sweeps.aggregate import CellResult
from sweeps.bound import fewest_forwards, fewest_rounds
from sweeps.cell import NO_DRAFTER, canonical_json
from sweeps.merge import NO_ROWS, CellRows
from sweeps.pairs import throughput_ratio
from sweeps.spec import DrafterSpec
from sweeps.statistics import Estimate, mean, ratio_of_sums, undefined

STANDARD, THRESHOLD = "standard decoding", "threshold decoding"
DRAFTS = {"spot-sets": "set drafter and tree"}
WORDS = {"gamma": "mass floor", "refresh": "draft refresh"}
OPTIONS = ("gamma", "cross_block", "refresh", "acceptance", "max_commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One cell of a ladder. `name` says what it adds to the rung before it.

    `forwards`: forwards of the rung before over its own, `throughput`: its throughput over that of the rung before,
    both paired by prompt: above 1 the step helps (undefined on the first rung). `least`: the fewest forwards in which
    any drafter of its budget and options could have taken its very steps, mean over prompts; `blocks` the fewest for
    as many tokens, whatever the steps. `exact`: the rung that differs in the acceptance rule alone and keeps the output
    (None where there is none, or it is that itself).
    """

    name: str
    result: CellResult
    forwards: Estimate
    throughput: Estimate
    least: Estimate
    blocks: Estimate
    doubts: tuple[str, ...] = ()
    exact: CellResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Rungs from the lowest: the standard rule where it was run, the threshold rule, drafters of one kind."""

    rungs: tuple[Rung, ...]

    @property
    def threshold(self) -> CellResult:
        """Threshold decoding without drafts."""
        return next(rung.result for rung in self.rungs if rung.name == THRESHOLD)

    @property
    def over_standard(self) -> bool:
        """Whether the standard rule is the lowest rung; without it throughput is over threshold decoding alone."""
        return self.rungs[0].name == STANDARD

    @property
    def top(self) -> CellResult:
        """The highest rung."""
        return self.rungs[-1].result


def ladders(results: Iterable[CellResult], rows: Mapping[str, CellRows]) -> Iterator[Ladder]:
    """Every ladder of a run, in its order; none without the threshold rule's draft-free cell in the plan.

    A drafter that an axis multiplies (two cells of one name at one place) is no rung, but a study of that axis.
    """
    results = tuple(results)
    free = {result.cell_id: result for result in results if result.cell.is_baseline}
    places: dict[str, list[CellResult]] = defaultdict(list)
    for result in results:
        if not result.cell.is_baseline and result.cell.decode.commit == "threshold":
            places[place_of(result)].append(result)
    for own in places.values():
        named = Counter(result.cell.drafter.name for result in own)
        own = [result for result in own if named[result.cell.drafter.name] == 1]
        threshold = free.get(own[0].cell.baseline().cell_id) if own else None
        standard = free.get(threshold.cell.timed_beside().cell_id) if threshold else None
        if threshold is not None:
            lowest = [standard] if standard is not None else []
            yield Ladder(rungs=tuple(rungs_of([*lowest, threshold, *own], rows)))


def place_of(result: CellResult) -> str:
    """What drafted cells of one ladder share."""
    drafter = result.cell.drafter
    return canonical_json([result.cell.baseline().cell_id, drafter.kind, drafter.digest, drafter.budget])


def rungs_of(results: list[CellResult], rows: Mapping[str, CellRows]) -> Iterator[Rung]:
    """The rungs of cells in order."""
    for before, result in zip((None, *results), results, strict=False):
        own = rows.get(result.cell_id, NO_ROWS)
        yield Rung(
            name=name_of(before, result),
            result=result,
            forwards=forwards_over(before, result, rows),
            throughput=throughput_over(before, result, rows),
            least=mean([fewest_rounds(result.cell, row) for row in own.generations.values()]),
            blocks=mean([fewest_forwards(result.cell, row) for row in own.generations.values()]),
            doubts=doubts_of(before, result),
            exact=exact_of(result, results),
        )


def doubts_of(before: CellResult | None, result: CellResult) -> tuple[str, ...]:
    """The gates that the timings behind a step failed: a drafted cell's own, the threshold rule's beside standard."""
    pace = result.pace.doubts if result.cell.is_baseline and result.pace else ()
    below = before.throughput.doubts if before is not None and not before.cell.is_baseline else ()
    return tuple(dict.fromkeys((*pace, *result.throughput.doubts, *below)))


def name_of(before: CellResult | None, result: CellResult) -> str:
    """What a rung is, or adds."""
    if before is None or result.cell.is_baseline:
        return STANDARD if result.cell.decode.commit == "standard" else THRESHOLD
    drafter, other = result.cell.drafter, before.cell.drafter
    first = before.cell.is_baseline
    added = [DRAFTS.get(drafter.kind, f"{drafter.kind} drafts")] if first else []
    more, gone = changes(NO_DRAFTER if first else other, drafter)
    plus = f"+ {', '.join(added + more or [drafter.name])}" if added or more or not gone else ""
    return ", ".join([*([plus] if plus else []), *([f"without {', '.join(gone)}"] if gone else [])])


def changes(other: DrafterSpec, drafter: DrafterSpec) -> tuple[list[str], list[str]]:
    """The options that a drafter has and another has not, or has otherwise; and those that it lacks, in words."""
    more: list[str] = []
    gone: list[str] = []
    for option in OPTIONS:
        value = getattr(drafter, option)
        if value == getattr(other, option):
            continue
        name = WORDS.get(option, option.replace("_", "-"))
        text = str(value) if option == "acceptance" else f"{name} {value:g}" if option == "gamma" else name
        (more.append(text) if value else gone.append(name))
    return more, gone


def exact_of(result: CellResult, results: list[CellResult]) -> CellResult | None:
    """The cell that is equal but for its acceptance rule, which is `exact`."""
    if result.cell.drafter.acceptance == "exact":
        return None
    wanted = result.cell.exactly().cell_id
    return next((other for other in results if other.cell_id == wanted), None)


def forwards_over(before: CellResult | None, result: CellResult, rows: Mapping[str, CellRows]) -> Estimate:
    """Forwards of `before` over those of `result`, over the prompts that both decoded."""
    if before is None:
        return undefined()
    theirs, ours = (rows.get(one.cell_id, NO_ROWS).generations for one in (before, result))
    both = sorted(ours.keys() & theirs.keys())
    return ratio_of_sums([theirs[i].counters.nfe for i in both], [ours[i].counters.nfe for i in both])


def throughput_over(before: CellResult | None, result: CellResult, rows: Mapping[str, CellRows]) -> Estimate:
    """Throughput of `result` over that of `before`; two drafted cells as multiples of threshold decoding."""
    if before is None:
        return undefined()
    if result.cell.is_baseline:
        return result.pace.ratio if result.pace else undefined()
    if before.cell.is_baseline:
        return result.throughput.ratio
    ours, theirs, free = (
        rows.get(id, NO_ROWS) for id in (result.cell_id, before.cell_id, result.cell.baseline().cell_id)
    )
    return throughput_ratio(ours, theirs, free.generations)
