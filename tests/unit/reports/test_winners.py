"""Bold only what is better beyond doubt, and never a cell whose check failed."""

from dataclasses import replace

from reports.labels import labels_of
from reports.winners import nfe_winners, throughput_winners
from tests.synthetic import Faults, grid, sweep
from tests.unit.reports.conftest import framed

CELLS = grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,), gammas=())  # draft-free, ssd, spot


def names(frames, ids):
    return {result.cell.drafter.name for result in frames.results if result.cell.cell_id in ids}


def test_a_clear_difference_wins_and_a_twin_does_not():
    frames = framed(sweep(CELLS))
    assert names(frames, nfe_winners(frames, labels_of(frames.results))) == {"spot"}
    twin = replace(CELLS[2], drafter=replace(CELLS[2].drafter, name="twin", hedge=0.5))
    made = sweep((*CELLS, twin))
    copied = {**made.results, twin.cell_id: tuple(copy(r, twin.cell_id) for r in made.results[CELLS[2].cell_id])}
    frames = framed(replace(made, results=copied))
    assert nfe_winners(frames, labels_of(frames.results)) == set()
    assert throughput_winners(frames, labels_of(frames.results)) == set()


def copy(result, cell_id):
    return replace(result, cell_id=cell_id, item_id=f"{cell_id}-{result.kind}")


def test_a_cell_with_a_broken_claim_cannot_win():
    made = sweep(CELLS)
    broken = sweep(CELLS, faults=Faults(bugs=1))
    spot = CELLS[2].cell_id
    frames = framed(replace(made, results={**made.results, spot: broken.results[spot]}))
    assert nfe_winners(frames, labels_of(frames.results)) == set()


def test_a_noisy_timing_cannot_win():
    calm, noisy = framed(sweep(CELLS, timed=8)), framed(sweep(CELLS, timed=8, faults=Faults(noisy=True)))
    assert names(calm, throughput_winners(calm, labels_of(calm.results))) == {"spot"}
    assert throughput_winners(noisy, labels_of(noisy.results)) == set()


def test_one_method_alone_has_nobody_to_beat():
    frames = framed(sweep(CELLS[:2]))
    assert nfe_winners(frames, labels_of(frames.results)) == set()
