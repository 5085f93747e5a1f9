"""What bold takes: to beat every rival, prompt by prompt, beyond the interval, and for times to pass the gates too."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.contests import forwards_ratio
from reports.frames import Frames
from reports.labels import labels_of
from reports.winners import nfe_winners, throughput_winners
from sweeps.cell import Cell
from sweeps.records import GenerationRecord
from tests.synthetic import draft_free, grid, sweep
from tests.unit.reports.conftest import framed

CELLS = grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,), gammas=())  # draft-free, ssd, spot
FEW = (20, 21, 20, 22, 20, 21, 20, 22)
MORE = tuple(forwards + 1 + place % 2 for place, forwards in enumerate(FEW))  # more on every prompt, by a little
UNSTEADY = (14, 33) * 4  # more than both in the mean, fewer on every other prompt


def needing(cell: Cell, index: int, forwards: int) -> GenerationRecord:
    """The draft-free generation of a prompt, had it taken so many forwards: the first one accepts all the rest."""
    row = draft_free(cell, index)
    accepted = row.tokens_generated - forwards
    assert accepted >= 0
    took = (accepted, *(0,) * (forwards - 1))
    rounds = (*(0,) * (1 + accepted), *range(1, forwards))
    counters = replace(row.counters, nfe=forwards, accepted=took, drafted=took, drafter_calls=forwards)
    return replace(row, rounds=rounds, counters=counters)


def counted(**methods: Sequence[int]) -> Frames:
    """A run of methods that take so many forwards, a prompt each."""
    spot = CELLS[2].drafter
    cells = {
        name: replace(CELLS[2], drafter=replace(spot, name=name, hedge=(1 + place) / 10))
        for place, name in enumerate(methods)
    }
    (prompts,) = {len(forwards) for forwards in methods.values()}
    made = sweep((CELLS[0], *cells.values()), prompts=prompts, timed=0)
    results = dict(made.results)
    for name, cell in cells.items():
        (item,) = made.results[cell.cell_id]
        rows = tuple(needing(cell, index, forwards) for index, forwards in enumerate(methods[name]))
        results[cell.cell_id] = (replace(item, generations=rows),)
    frames = framed(replace(made, results=results))
    assert not any(result.alarms or result.claim_holds is False for result in frames.results)
    return frames


def bold(frames: Frames) -> set[str]:
    won = nfe_winners(frames, labels_of(frames.results))
    return {result.cell.drafter.name for result in frames.results if result.cell_id in won}


def test_a_better_mean_alone_is_not_bold() -> None:
    frames = counted(few=FEW, unsteady=UNSTEADY)
    few, unsteady = frames.results[1:]
    assert (few.nfe_reduction.value or 0) > 1.1 * (unsteady.nfe_reduction.value or 0)
    assert bold(frames) == set()


def test_a_winner_beats_every_rival_and_not_only_the_runner_up() -> None:
    assert bold(counted(few=FEW, more=MORE)) == {"few"}
    assert bold(counted(few=FEW, more=MORE, unsteady=UNSTEADY)) == set()
    steady = tuple(forwards + 1 for forwards in MORE)
    assert bold(counted(steady=steady, more=MORE, few=FEW)) == {"few"}, "whatever the order of the rows"


def test_rivals_are_compared_prompt_by_prompt() -> None:
    """Prompts differ far more than the methods do: unpaired, the two could not be told apart."""
    hard = (5, 30, 8, 27, 6, 32, 9, 24)
    harder = tuple(forwards + 1 for forwards in hard)
    frames = counted(hard=hard, harder=harder)
    one, other = (result.nfe for result in frames.results[1:])
    assert (one.high or 0) > (other.low or 0)
    assert bold(frames) == {"hard"}


def test_two_prompts_decide_nothing_and_three_may() -> None:
    assert bold(counted(few=(10, 11), more=(20, 23))) == set()
    assert bold(counted(few=(10, 11, 10), more=(20, 23, 21))) == {"few"}


@pytest.mark.parametrize("times", [1, 4])
def test_one_method_under_two_names_ties_and_neither_is_bold(times: int) -> None:
    """Counts are equal on every prompt, so neither is better than every rival, though both beat the third.

    Of 8 prompts that agree there is no interval; of 32 there is one, of no width, and it does not exclude 1.
    """
    frames = counted(one=FEW * times, alias=FEW * times, more=MORE * times)
    one, alias, more = frames.results[1:]
    assert forwards_ratio(frames, [(one, alias)]).value == 1.0
    assert all((forwards_ratio(frames, [(more, result)]).low or 0) > 1 for result in (one, alias))
    assert bold(frames) == set()


def test_rivals_that_are_equal_to_each_other_do_not_shield_each_other() -> None:
    assert bold(counted(few=FEW, more=MORE, alias=MORE)) == {"few"}


def test_a_clear_ratio_of_times_that_failed_a_gate_is_not_bold() -> None:
    """Two repeats of steady clocks: the intervals lie far apart, and still too little was measured."""
    sound, hasty = (framed(sweep(CELLS, timed=8, repeats=repeats)) for repeats in (3, 2))
    for frames in (sound, hasty):
        ssd, spot = (result.throughput for result in frames.results[1:])
        assert (spot.ratio.low or 0) > (ssd.ratio.high or 9)
    assert [result.throughput.doubts for result in hasty.results[1:]] == [("2 repeats, fewer than 3",)] * 2
    assert throughput_winners(sound, labels_of(sound.results)) == {CELLS[2].cell_id}
    assert throughput_winners(hasty, labels_of(hasty.results)) == set()
