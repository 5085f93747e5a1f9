"""From a work item to its result, without knowing of Ray: load what the cell names, go through the prompts, grade.

A prompt that fails is a failed row and its siblings go on; what fails before the first prompt fails the item. Nothing
is raised but a keyboard interrupt, and nothing is written: the caller stores the result.
"""

import math
import socket
import time
from dataclasses import dataclass, field, replace

import torch

from sweeps.cell import Cell
from sweeps.origin import code_digest, library_versions
from sweeps.records import Drawn, Failure, GenerationRecord, ItemResult, Provenance, TimingRecord, WorkItem
from sweeps.study import StudyRecord
from workers.decoding.loop import decode
from workers.decoding.noise import sample_seed
from workers.decoding.observe import Observer
from workers.decoding.tally import Generation
from workers.decoding.verification import Verification
from workers.drafters.base import Drafter, Oracle
from workers.drafters.none import NoDrafter
from workers.futures import Futures, told
from workers.guard import failure_of
from workers.loading import Loaded
from workers.models.order_model import OrderModel
from workers.replay.record import record
from workers.replay.study import study
from workers.replay.trace import encode_trace
from workers.room import size_of
from workers.targets.base import Target
from workers.tasks.base import Prompt, Task
from workers.timing import time_prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """An item with everything loaded, and its rows in the making. `prompts` are those of the item's range.

    `futures` are the worker's: what oracles of all items are told. `order_model` is there for studies, which draft
    nothing.
    """

    item: WorkItem
    cell: Cell
    target: Target
    drafter: Drafter | Oracle
    task: Task
    prompts: tuple[Prompt, ...]
    futures: Futures
    order_model: OrderModel | None = None
    generations: list[GenerationRecord] = field(default_factory=list)
    timings: list[TimingRecord] = field(default_factory=list)
    traces: list[bytes] = field(default_factory=list)
    studies: list[StudyRecord] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


class Runner:
    """Runs items on one device with a fixed number of torch threads; keeps what it loads for the next item."""

    def __init__(self, device: str = "cpu", threads: int = 1) -> None:
        torch.set_num_threads(threads)
        self.loaded = Loaded(device)
        self.futures = Futures()
        self.provenance = Provenance(
            host=socket.gethostname(),
            device=torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
            threads=threads,
            code_digest=code_digest(),
            versions=library_versions(),
        )

    def run(self, item: WorkItem, cell: Cell) -> ItemResult:
        """Decode, time, trace or study the prompts `[item.first, item.last)` of the cell's task."""
        began = time.perf_counter()
        result = ItemResult(
            item_id=item.item_id, cell_id=item.cell_id, kind=item.kind, first=item.first, last=item.last
        )
        try:
            work = self.prepared(item, cell)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: what a cell names may not end a worker
            return self.stamped(replace(result, failures=(failure_of(error),)), began)
        load_seconds = time.perf_counter() - began
        for index in range(item.first, item.last):
            try:
                run_prompt(work, index)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                work.failures.append(row_failure(work, index, error))
                release_memory()
        result = replace(
            result,
            generations=tuple(work.generations),
            timings=tuple(work.timings),
            traces=tuple(work.traces),
            studies=tuple(work.studies),
            failures=tuple(work.failures),
            load_seconds=load_seconds,
        )
        return self.stamped(result, began)

    def prepared(self, item: WorkItem, cell: Cell) -> Work:
        """Everything that the item's prompts need. Raises what loading raises."""
        task, length, studied = self.loaded.get_task(cell.task), cell.decode.block_length, item.kind == "study"
        return Work(
            item=item,
            cell=cell,
            target=self.loaded.get_target(cell.target, size_of(cell.decode, cell.drafter)),
            drafter=NoDrafter() if studied else self.loaded.get_drafter(cell.drafter, cell.decode),
            order_model=self.loaded.get_order_model(cell.drafter, length) if studied else None,
            task=task,
            prompts=task.prompts(split=cell.task.split, limit=item.last, seed=0)[item.first :],
            futures=self.futures,
        )

    def stamped(self, result: ItemResult, began: float) -> ItemResult:
        """The result with its times and where it was made."""
        seconds = time.perf_counter() - began
        return replace(result, seconds=seconds, finished_at=time.time(), provenance=self.provenance)


def run_prompt(work: Work, index: int) -> None:
    """One prompt of the item: a row of its kind. Raises what decoding or grading raises."""
    cell, item = work.cell, work.item
    if index - item.first >= len(work.prompts):
        size = item.first + len(work.prompts)
        raise ValueError(f"task {cell.task.name} has {size} prompts in split {cell.task.split!r}: no prompt {index}")
    prompt = work.prompts[index - item.first]
    ids, seed = work.target.encode(prompt.text), sample_seed(cell.seed, prompt.id)
    if item.kind in ("trace", "study"):
        _, trace = record(
            work.target, cell, prompt_id=prompt.id, prompt_index=index, prompt_ids=ids, states=item.states
        )
        if work.order_model is None:
            work.traces.append(encode_trace(trace))
        else:
            work.studies.append(study(trace, work.order_model))
        return
    # before any clock runs: what recording the future takes is no part of what is timed
    drafter = told(work.drafter, lambda: work.futures.of(work.target, cell, prompt.id, ids))
    verification = Verification.of(cell.drafter)
    if item.kind == "decode":
        observer = Observer(cell.decode)
        generation = decode(
            work.target, drafter, ids, spec=cell.decode, seed=seed, watch=observer, verification=verification
        )
        if cell.is_baseline:
            work.futures.heard(cell, prompt.id, generation)
        work.generations.append(graded(work, index, prompt, generation, observer.drawn()))
    else:
        work.timings.append(
            time_prompt(
                work.target,
                drafter,
                prompt,
                index,
                ids,
                spec=cell.decode,
                beside=cell.timed_beside().decode,
                seed=seed,
                repeats=item.repeats,
                verification=verification,
            )
        )


def graded(work: Work, index: int, prompt: Prompt, generation: Generation, drawn: Drawn) -> GenerationRecord:
    """A generation as a record: its text, graded by the task, and how its tokens were drawn."""
    text = work.target.decode(generation.output_ids[: generation.tokens_kept])
    score = work.task.score(prompt, text)
    return GenerationRecord(
        prompt_id=prompt.id,
        prompt_index=index,
        prompt_tokens=generation.prompt_tokens,
        output_ids=generation.output_ids,
        tokens_generated=len(generation.output_ids),
        tokens_kept=generation.tokens_kept,
        finish_reason=generation.finish_reason,
        text=text,
        correct=score.correct,
        score_reason=score.reason,
        order=generation.order,
        rounds=generation.rounds,
        steps=generation.steps,
        margins=tuple(margin if math.isfinite(margin) else None for margin in generation.margins),
        counters=generation.counters,
        pieces=tuple(work.target.decode((token,)) for token in generation.output_ids),
        drawn=drawn,
    )


def row_failure(work: Work, index: int, error: BaseException) -> Failure:
    """The failure of one prompt."""
    offset = index - work.item.first
    prompt_id = work.prompts[offset].id if offset < len(work.prompts) else ""
    return replace(failure_of(error), prompt_index=index, prompt_id=prompt_id)


def release_memory() -> None:
    """Give cached device memory back, so that a prompt that ran out of it does not fail its siblings."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
