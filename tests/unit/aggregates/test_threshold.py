"""Rows of the threshold rule: the laws of their counts, where they part from draft-free ones, and what bounds them."""

from dataclasses import replace

import pytest

from sweeps.aggregate import CellResult, aggregate
from sweeps.bound import blocks
from sweeps.cell import Cell
from sweeps.claims import Claim, claim_of
from sweeps.identity import compare, mismatch, steps
from sweeps.laws import generation_alarms
from sweeps.merge import CellRows
from sweeps.records import GenerationRecord
from sweeps.spec import DecodeSpec, DrafterSpec
from sweeps.todo import Job
from tests.toys import ToyTarget
from tests.traces import toy_cell
from workers.decoding.loop import decode
from workers.decoding.tally import Generation
from workers.drafters.none import NoDrafter
from workers.drafters.ssd import SsdDrafter

DECODE = DecodeSpec(max_new_tokens=40, block_length=8, commit="threshold", tau=0.7)
FREE = replace(toy_cell(), decode=DECODE)
DRAFTED = replace(FREE, drafter=DrafterSpec(name="freedave", kind="freedave", budget=6))
TARGET = ToyTarget(seed=4, scale=2.5, drift=0.1)
PROMPT = [1, 2, 3]


def row_of(generation: Generation) -> GenerationRecord:
    return GenerationRecord(
        prompt_id="p",
        prompt_index=0,
        prompt_tokens=generation.prompt_tokens,
        output_ids=generation.output_ids,
        tokens_generated=len(generation.output_ids),
        tokens_kept=generation.tokens_kept,
        finish_reason=generation.finish_reason,
        text="",
        correct=True,
        score_reason="",
        order=generation.order,
        rounds=generation.rounds,
        steps=generation.steps,
        margins=generation.margins,
        counters=generation.counters,
    )


BASE = row_of(decode(TARGET, NoDrafter(), PROMPT, spec=DECODE, seed=0))
ROW = row_of(decode(TARGET, SsdDrafter(6), PROMPT, spec=DECODE, seed=0))


def result(cell: Cell, row: GenerationRecord) -> CellResult:
    return aggregate(Job(cell=cell, prompts=1), CellRows(generations={0: row}), CellRows(generations={0: BASE}))


def test_sound_rows_raise_no_alarm_and_hold_their_claim() -> None:
    assert max(BASE.steps) > 1
    assert BASE.counters.nfe == len(BASE.steps) < BASE.tokens_generated
    assert ROW.counters.nfe < BASE.counters.nfe
    free, drafted = result(FREE, BASE), result(DRAFTED, ROW)
    assert (free.alarms, drafted.alarms) == ((), ())
    assert (drafted.claim, drafted.claim_holds) == (Claim.LOSSLESS, True)
    assert drafted.nfe_reduction.value == BASE.counters.nfe / ROW.counters.nfe
    assert drafted.tokens_per_forward.value == 40 / ROW.counters.nfe


def kinds(cell: Cell, row: GenerationRecord) -> list[str]:
    return [alarm.kind for alarm in generation_alarms(cell, row, BASE)]


def test_counts_that_contradict_each_other_are_alarms() -> None:
    accepted = (ROW.counters.accepted[0] + 1, *ROW.counters.accepted[1:])
    assert kinds(DRAFTED, replace(ROW, counters=replace(ROW.counters, accepted=accepted))) == ["counts do not add up"]
    assert kinds(FREE, ROW) == ["draft-free NFE differs from steps"]
    for made in ((0, *ROW.steps[1:-1], ROW.steps[-1] + ROW.steps[0]), (ROW.steps[0] + 1, *ROW.steps[1:])):
        assert kinds(DRAFTED, replace(ROW, steps=made)) == ["counts do not add up"]
    single = replace(BASE, steps=(40,), counters=replace(BASE.counters, nfe=1, accepted=(0,), drafted=(0,)))
    assert kinds(FREE, single) == ["fewer forwards than can be"]
    standard = replace(FREE, decode=replace(DECODE, commit="standard"))
    assert "counts do not add up" in kinds(standard, BASE), "the standard rule makes one commit a step"


def test_forwards_are_compared_where_the_steps_are_the_same() -> None:
    """Steps cut in two, with the same order and output: another way, which may well take more forwards."""
    n = len(BASE.steps) + 1
    slow = replace(BASE, counters=replace(BASE.counters, nfe=n, accepted=(0,) * n, drafted=(1,) * n))
    place = next(index for index, size in enumerate(BASE.steps) if size > 1)
    cut = (*BASE.steps[:place], 1, BASE.steps[place] - 1, *BASE.steps[place + 1 :])
    assert kinds(DRAFTED, replace(slow, steps=cut)) == []
    assert kinds(DRAFTED, slow) == ["counts do not add up", "more forwards than draft-free"]


def test_rows_part_in_the_first_step_that_differs_even_by_its_size_alone() -> None:
    """The flip is a position that joined a step or did not; the tokens part only later, where the margin is wide."""
    place = next(index for index, size in enumerate(BASE.steps) if size > 1)
    at = sum(BASE.steps[:place])
    cut = (*BASE.steps[:place], 1, BASE.steps[place] - 1, *BASE.steps[place + 1 :])
    ids = list(BASE.output_ids)
    ids[BASE.order[-1]] = (ids[BASE.order[-1]] + 1) % 5
    margins = [5.0] * 40
    margins[at : at + BASE.steps[place]] = [1e-7] * BASE.steps[place]
    ours = replace(BASE, steps=cut, output_ids=tuple(ids), margins=tuple(margins))
    theirs = replace(BASE, margins=tuple(margins))
    found = mismatch(ours, theirs, limit=1e-3)
    assert (found.step, found.margin, found.verdict) == (at, 1e-7, "near-tie")
    assert found.index == BASE.order[-1]
    whole = replace(ours, steps=BASE.steps)
    assert mismatch(whole, theirs, limit=1e-3).verdict == "BUG", "with the same steps the wide margin counts"
    assert compare({0: theirs}, {0: BASE}, dtype="float32").n_identical == 1


def test_rows_of_before_there_were_steps_have_one_commit_each() -> None:
    old = replace(BASE, steps=())
    assert old.step_sizes == (1,) * 40
    assert steps(old) == tuple(((index, BASE.output_ids[index]),) for index in BASE.order)


@pytest.mark.parametrize(
    ("prompt", "new", "length", "expected"),
    [(0, 0, 8, 0), (0, 1, 8, 1), (0, 8, 8, 1), (0, 9, 8, 2), (7, 1, 8, 1), (7, 2, 8, 2), (8, 8, 8, 1), (3, 40, 8, 6)],
)
def test_blocks_are_those_that_hold_a_new_token(prompt: int, new: int, length: int, expected: int) -> None:
    assert blocks(prompt, new, length) == expected == len({at // length for at in range(prompt, prompt + new)})


def test_the_rule_changes_no_claim() -> None:
    drawn = replace(DECODE, temperature=1.0)
    for decode_spec, exact, claim in (
        (DECODE, True, Claim.LOSSLESS),
        (drawn, True, Claim.LOSSLESS),
        (drawn, False, Claim.EXACT_GIVEN_CACHE),
        (replace(drawn, noise="independent"), True, Claim.DISTRIBUTION_EXACT),
    ):
        cell = replace(DRAFTED, decode=decode_spec, target=replace(DRAFTED.target, exact_cache=exact))
        assert claim_of(cell) == claim
        assert cell.baseline().decode == decode_spec
