"""Forwards of the chain drafters from the recorded draft-free trajectory alone: where is the first wrong guess?

`accepted_of` shares no code with the decoder or the drafters: it reads the arrays of a trace and counts. The first
forward of a block is made with nothing drafted. Every later one has a root whose last commit was decided by the step
before it; the rows of that step give the guesses, most confident first, and those before the first wrong one are
committed with it, plus the one commit that the forward itself decides.
"""

import numpy as np
import pytest

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec, TaskSpec
from tests.toys import ToyTarget, coarse_target
from workers.catalog import DRAFTERS, FAMILIES, TARGETS, TASKS, resolve
from workers.decoding.loop import decode
from workers.decoding.noise import sample_seed
from workers.replay.record import record
from workers.replay.trace import Trace
from workers.targets.base import Target
from workers.targets.inspect import inspect_checkpoint

KINDS = ("ssd", "freedave")


def accepted_of(trace: Trace, budget: int) -> tuple[int, ...]:
    """Accepted drafts of every forward of a chain drafter; their number is the NFE."""
    spec, prompt = trace.header.decode, len(trace.header.prompt_ids)
    commits = list(zip(trace.arrays["positions"].tolist(), trace.arrays["tokens"].tolist(), strict=True))
    odds, drawn = trace.arrays["logodds"].tolist(), trace.arrays["drawn_ids"][:, 0].tolist()
    if spec.temperature == 0:
        assert drawn == trace.arrays["ids"][:, 0].tolist(), "the drawn token is the most probable one"
    accepted: list[int] = []
    start, first, row = prompt // spec.block_length * spec.block_length, 0, 0
    while first < len(commits):
        width = min(start + spec.block_length, prompt + spec.max_new_tokens) - max(start, prompt)
        block = commits[first : first + width]
        row_of_step = row + np.cumsum([0, *range(width, 0, -1)])  # one row less with every commit
        accepted.append(0)
        done = 1
        while done < width:
            still_open = sorted(place for place, _ in block[done - 1 :])
            row_of = {place: int(row_of_step[done - 1]) + index for index, place in enumerate(still_open)}
            rest = sorted((place for place, _ in block[done:]), key=lambda place: (-odds[row_of[place]], place))
            guesses = [(place, drawn[row_of[place]]) for place in rest[: min(budget, len(rest) - 1)]]
            wrong = [guess != commit for guess, commit in zip(guesses, block[done:], strict=False)]
            accepted.append(wrong.index(True) if True in wrong else len(wrong))
            done += accepted[-1] + 1
        start, first, row = start + spec.block_length, first + width, int(row_of_step[-1])
    assert row == len(odds)
    return tuple(accepted)


def cell_of(task: TaskSpec, decode: DecodeSpec) -> Cell:
    return Cell(
        target=TargetSpec(name="t", digest="d", dtype="float64"), task=task, decode=decode, drafter=NO_DRAFTER, seed=3
    )


def check(target: Target, cell: Cell, prompt_id: str, ids: list[int], budgets: tuple[int, ...]) -> int:
    """Compare every chain drafter and budget on one prompt; returns the accepted drafts in all."""
    free, trace = record(target, cell, prompt_id=prompt_id, prompt_index=0, prompt_ids=ids)
    total = 0
    for budget in budgets:
        expected = accepted_of(trace, budget)
        assert len(expected) + sum(expected) == len(free.output_ids)
        for kind in KINDS:
            spec = DrafterSpec(name=kind, kind=kind, budget=budget)
            drafter = resolve(DRAFTERS[kind].factory)(spec, block_length=cell.decode.block_length, device="cpu")
            run = decode(target, drafter, ids, spec=cell.decode, seed=sample_seed(cell.seed, prompt_id))
            assert run.counters.accepted == expected
            assert run.counters.nfe == len(expected)
        total += sum(expected)
    return total


@pytest.mark.parametrize(
    ("temperature", "confidence"), [(0.0, "top1"), (1.0, "top1"), (1.0, "sampled"), (2.5, "sampled")]
)
def test_forwards_on_toy_targets(temperature: float, confidence: str) -> None:
    total = 0
    for seed in range(30):
        make = coarse_target if seed % 5 == 0 else ToyTarget
        target = make(seed=seed, drift=(0.05, 0.2, 1.0)[seed % 3], stops=(2,) if seed % 2 else ())
        decode_spec = DecodeSpec(
            max_new_tokens=1 + 7 * seed % 40,
            block_length=1 + seed % 9,
            temperature=temperature,
            confidence=confidence,  # type: ignore[arg-type]
        )
        ids = [(3 * seed + index) % 8 for index in range(seed % 11)]
        task = TaskSpec(name="toy", kind="toy", digest="d")
        total += check(target, cell_of(task, decode_spec), str(seed), ids, (1, 2, 5, 20))
    assert total > 150, total


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["tiny-arith", "tiny-code"])
def test_forwards_on_the_shipped_target(kind: str, temperature: float) -> None:
    path = TARGETS["tiny-sdar"].path
    loader = resolve(FAMILIES[inspect_checkpoint(path).architecture].loader)
    target = loader(TargetSpec(name="tiny-sdar", path=path, dtype="float64"), device="cpu")
    task = TaskSpec(name=kind, kind=kind, digest="d")
    prompts = resolve(TASKS[kind].factory)(task).prompts(split="test", limit=2, seed=0)
    cell = cell_of(task, DecodeSpec(max_new_tokens=64, temperature=temperature))
    total = sum(check(target, cell, prompt.id, target.encode(prompt.text), (8, 20)) for prompt in prompts)
    assert total > 64  # of 2 prompts x 2 budgets x 64 tokens
