"""Whether independent noise needs more forwards is decided by the interval, never by the value alone."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.noise_modes import Pair, pairs
from sweeps.aggregate import aggregate_all
from sweeps.records import GenerationRecord
from tests.synthetic import generation, grid, sweep

CELLS = grid(
    tasks=("tiny-arith",), budgets=(8,), gammas=(), temperatures=(2.0,), noises=("coupled", "independent")
)  # draft-free, ssd and spot in both modes
PROMPTS = 8
ALIKE = (1,) * PROMPTS
ONE_HARD = (4, *(1,) * (PROMPTS - 1))  # one prompt of eight decides the mean alone


def shortened(row: GenerationRecord, factor: int) -> GenerationRecord:
    """`row` with `factor` times fewer tokens for its forwards."""
    return replace(row, tokens_generated=row.tokens_generated // factor)


def compared(coupled: Sequence[int], independent: Sequence[int]) -> list[Pair]:
    """Pairs whose rows are equal, apart from prompts with so many times fewer tokens for their forwards."""
    made = sweep(CELLS, prompts=PROMPTS, timed=0)
    rows = made.rows()
    for cell in CELLS:
        if not cell.is_baseline:
            shared = replace(cell, decode=replace(cell.decode, noise="coupled"))
            factors = coupled if cell.decode.noise == "coupled" else independent
            own = {index: shortened(generation(shared, index), factor) for index, factor in enumerate(factors)}
            rows[cell.cell_id] = replace(rows[cell.cell_id], generations=own)
    found = list(pairs(aggregate_all(made.jobs, rows), rows))
    assert [pair.coupled.cell.drafter.kind for pair in found] == ["ssd", "spot"]
    return found


@pytest.mark.parametrize(("coupled", "independent", "sign"), [(ALIKE, ONE_HARD, 1), (ONE_HARD, ALIKE, -1)])
def test_one_hard_prompt_moves_the_value_and_shows_nothing(
    coupled: Sequence[int], independent: Sequence[int], sign: int
) -> None:
    for pair in compared(coupled, independent):
        value, low, high = pair.ratio.value, pair.ratio.low, pair.ratio.high
        assert value is not None
        assert sign * (value - 1) > 0.05
        assert low is not None
        assert high is not None
        assert low < 1 < high
        assert not pair.more
        assert not pair.fewer


@pytest.mark.parametrize(
    ("coupled", "independent", "more"), [(ALIKE, (2,) * PROMPTS, True), ((2,) * PROMPTS, ALIKE, False)]
)
def test_a_difference_on_every_prompt_is_one(coupled: Sequence[int], independent: Sequence[int], more: bool) -> None:
    for pair in compared(coupled, independent):
        assert (pair.more, pair.fewer) == (more, not more)
