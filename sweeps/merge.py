"""The rows of one cell, merged by prompt from its stored results.

Several items may cover one prompt (a retry, a longer timing, another chunk size). The same prompt decoded twice must
give the same tokens and counts: where it does not, an alarm says so and the first record stands.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sweeps.records import Counters, Failure, GenerationRecord, ItemKind, ItemResult, Provenance, TimingRecord
from sweeps.study import StudyRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Something that cannot happen when decoding is correct. `kind` is one of a few fixed phrases."""

    kind: str
    message: str
    prompt_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRows:
    """What is stored of a cell: at most one row of each kind a prompt index, and failures that were not made good.

    A failure of a whole item stands for each of its prompts. `finished_at` is the wall-clock time (seconds since 1970)
    at which the last item ended.
    """

    generations: dict[int, GenerationRecord] = field(default_factory=dict)
    timings: dict[int, TimingRecord] = field(default_factory=dict)
    studies: dict[int, StudyRecord] = field(default_factory=dict)
    failures: dict[tuple[ItemKind, int], Failure] = field(default_factory=dict)
    alarms: tuple[Alarm, ...] = ()
    finished_at: float = 0.0
    provenances: tuple[Provenance, ...] = ()

    def failed(self, kind: ItemKind) -> set[int]:
        """Prompts that have a failure of this kind and no row."""
        return {index for of_kind, index in self.failures if of_kind == kind}

    def within(self, prompts: int, timed_prompts: int, studied_prompts: int = 0) -> "CellRows":
        """Only the rows of the first prompts that are asked for, by kind; alarms stay."""
        most = {"decode": prompts, "timing": timed_prompts, "study": studied_prompts}
        return replace(
            self,
            generations={index: row for index, row in self.generations.items() if index < prompts},
            timings={index: row for index, row in self.timings.items() if index < timed_prompts},
            studies={index: row for index, row in self.studies.items() if index < studied_prompts},
            failures={key: failure for key, failure in self.failures.items() if key[1] < most.get(key[0], 0)},
        )


NO_ROWS = CellRows()


def merge_all(results: Iterable[ItemResult]) -> dict[str, CellRows]:
    """Rows by cell id. The order of `results` makes no difference."""
    by_cell = defaultdict(list)
    for result in results:
        by_cell[result.cell_id].append(result)
    return {cell_id: merge(of_cell) for cell_id, of_cell in sorted(by_cell.items())}


def merge(results: Iterable[ItemResult]) -> CellRows:
    """Merge the results of one cell. Of two timings of a prompt the one with more repeats stands."""
    generations: dict[int, GenerationRecord] = {}
    timings: dict[int, TimingRecord] = {}
    studies: dict[int, StudyRecord] = {}
    failures: dict[tuple[ItemKind, int], Failure] = {}
    alarms: list[Alarm] = []
    provenances: list[Provenance] = []
    finished_at = 0.0
    for result in sorted(results, key=lambda result: result.item_id):
        finished_at = max(finished_at, result.finished_at)
        if result.provenance is not None and result.provenance not in provenances:
            provenances.append(result.provenance)
        for generation in result.generations:
            alarms += repeat_alarms(generations.setdefault(generation.prompt_index, generation), generation)
        for timing in result.timings:
            known = timings.setdefault(timing.prompt_index, timing)
            if len(timing.variant_seconds) > len(known.variant_seconds):
                timings[timing.prompt_index] = timing
        for study in result.studies:
            if studies.setdefault(study.prompt_index, study) != study:
                kind, message = "study differs between repeats", f"prompt {study.prompt_index} was studied twice"
                alarms.append(Alarm(kind=kind, message=f"{message} with different counts", prompt_id=study.prompt_id))
        for failure in result.failures:
            whole = range(result.first, result.last) if failure.prompt_index < 0 else (failure.prompt_index,)
            failures.update(((result.kind, index), failure) for index in whole)
    good = {("decode", index) for index in generations} | {("timing", index) for index in timings}
    good |= {("study", index) for index in studies}
    return CellRows(
        generations=dict(sorted(generations.items())),
        timings=dict(sorted(timings.items())),
        studies=dict(sorted(studies.items())),
        failures={key: failure for key, failure in sorted(failures.items()) if key not in good},
        alarms=tuple(alarms),
        finished_at=finished_at,
        provenances=tuple(provenances),
    )


def repeat_alarms(first: GenerationRecord, again: GenerationRecord) -> list[Alarm]:
    """Alarms of a prompt that was decoded twice with different tokens or different counts."""
    alarms = []
    where = f"prompt {first.prompt_index} was decoded twice"
    if first.output_ids != again.output_ids:
        kind, message = "output differs between repeats", f"{where} with different tokens"
        alarms.append(Alarm(kind=kind, message=message, prompt_id=first.prompt_id))
    if counts(first.counters) != counts(again.counters):
        kind, message = (
            "NFE differs between repeats",
            f"{where}: {first.counters.nfe} and {again.counters.nfe} forwards",
        )
        alarms.append(Alarm(kind=kind, message=message, prompt_id=first.prompt_id))
    return alarms


def counts(counters: Counters) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    """The counts that may not depend on when or where a prompt was decoded."""
    return counters.nfe, counters.recomputes, counters.accepted, counters.drafted
