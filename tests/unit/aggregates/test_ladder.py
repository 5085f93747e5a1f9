"""Ladders: which cells are rungs, what a rung adds, and its numbers against the records by hand."""

from dataclasses import replace

import pytest

from sweeps.aggregate import aggregate_all
from sweeps.cell import NO_DRAFTER, Cell
from sweeps.ladder import Ladder, ladders
from tests.set_rows import by_rule, rungs, set_cells, sets
from tests.synthetic import Sweep, grid, sweep

BASE = grid(tasks=("a",), budgets=(8,), temperatures=(0.0,))[0]
NAMES = [
    "standard decoding",
    "threshold decoding",
    "+ set drafter and tree",
    "+ mass floor 0.1",
    "+ cross-block",
    "+ draft refresh",
    "+ product, max-commit",
]


def found(cells: tuple[Cell, ...], **options: int) -> tuple[list[Ladder], Sweep]:
    made = sweep(cells, **{"prompts": 5, "timed": 4, **options})
    return list(ladders(aggregate_all(made.jobs, made.rows()), made.rows())), made


def test_rungs_are_named_by_what_they_add() -> None:
    (ladder,), _ = found(set_cells(BASE, drafters=rungs()))
    assert [rung.name for rung in ladder.rungs] == NAMES
    assert ladder.threshold.cell.decode.rule == "threshold 0.9"
    assert ladder.top.claim == "lossy"


def test_only_some_rungs_are_a_ladder_too_and_say_all_that_they_add() -> None:
    _, _, cross, _, product = rungs()
    (ladder,), _ = found(set_cells(BASE, drafters=(cross, product)))
    assert [rung.name for rung in ladder.rungs[2:]] == [
        "+ set drafter and tree, mass floor 0.1, cross-block",
        "+ draft refresh, product, max-commit",
    ]
    (ladder,), _ = found(set_cells(BASE, drafters=(cross, rungs()[0])))
    assert ladder.rungs[3].name == "without mass floor, cross-block"
    mixed = replace(cross, name="fresh", refresh=True, gamma=0.0)
    (ladder,), _ = found(set_cells(BASE, drafters=(cross, mixed)))
    assert ladder.rungs[3].name == "+ draft refresh, without mass floor"


def test_without_the_standard_rule_threshold_decoding_is_the_lowest_rung() -> None:
    (ladder,), _ = found(set_cells(BASE, drafters=rungs(), standard=False))
    (whole,), _ = found(set_cells(BASE, drafters=rungs()))
    assert [rung.name for rung in ladder.rungs] == NAMES[1:]
    assert (ladder.over_standard, whole.over_standard) == (False, True)
    assert ladder.threshold.cell == whole.threshold.cell == ladder.rungs[0].result.cell
    assert ladder.rungs[0].forwards.value is ladder.rungs[0].throughput.value is None
    assert ladder.rungs[1:] != whole.rungs[2:]  # their pace, which is over standard decoding
    for own, other in zip(ladder.rungs[1:], whole.rungs[2:], strict=True):
        assert (own.forwards, own.throughput, own.least) == (other.forwards, other.throughput, other.least)
        assert own.result.pace is None or own.result.pace.ratio.value is None


def test_without_the_threshold_rule_and_with_an_axis_in_place_of_names_there_is_no_ladder() -> None:
    assert (
        found(
            [
                cell
                for cell in set_cells(BASE, drafters=rungs())
                if cell.drafter != NO_DRAFTER or cell.decode.commit == "standard"
            ]
        )[0]
        == []
    )
    assert found(set_cells(BASE, drafters=rungs())[:2])[0] == []  # nothing is drafted
    assert found(set_cells(BASE, drafters=by_rule()))[0] == []  # one name, four cells: a study of acceptance
    assert found(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,)))[0] == []


def test_taus_budgets_and_kinds_are_ladders_of_their_own() -> None:
    other = replace(sets("freedave"), kind="freedave", digest="")
    cells = set_cells(BASE, taus=(0.7, 0.9), budgets=(4, 8), drafters=(*rungs()[:2], other))
    made = found(cells, timed=0)[0]
    assert len(made) == 2 * 2 * 2
    for ladder in made:
        drafted = [rung.result.cell for rung in ladder.rungs[2:]]
        assert len({(cell.decode.tau, cell.drafter.budget, cell.drafter.kind) for cell in drafted}) == 1
        assert {cell.decode.tau for cell in drafted} == {ladder.threshold.cell.decode.tau}
        assert ladder.rungs[0].result.cell.decode.commit == "standard"
    assert {ladder.rungs[2].name for ladder in made} == {"+ set drafter and tree", "+ freedave drafts"}


def test_numbers_of_a_rung_by_hand() -> None:
    (ladder,), made = found(set_cells(BASE, drafters=rungs()))
    rows = {rung.name: made.rows()[rung.result.cell_id] for rung in ladder.rungs}
    nfe = {
        name: [row.counters.nfe for row in sorted(own.generations.values(), key=lambda row: row.prompt_index)]
        for name, own in rows.items()
    }
    for before, name, rung in zip(NAMES, NAMES[1:], ladder.rungs[1:], strict=False):
        assert rung.forwards.value == pytest.approx(sum(nfe[before]) / sum(nfe[name]))
        assert rung.forwards.n == 5
    assert ladder.rungs[0].forwards.value is ladder.rungs[0].throughput.value is None
    for rung in ladder.rungs[2:]:
        tokens, seconds = rates(rows[rung.name])
        below, slower = rates(rows[NAMES[NAMES.index(rung.name) - 1]])
        if rung.name == NAMES[2]:  # beside threshold decoding, in its own timings
            own = rows[rung.name].timings.values()
            below = sum(row.baseline_tokens_kept or 0 for row in own)
            slower = sum(sorted(row.baseline_seconds)[1] for row in own)
            assert rung.throughput.value == pytest.approx(tokens / seconds / (below / slower))
        assert rung.throughput.n == 4
        blocks = [
            -(-(row.prompt_tokens + row.tokens_generated) // 32) - row.prompt_tokens // 32
            for row in made_rows(rows, rung.name)
        ]
        assert rung.blocks.value == pytest.approx(sum(blocks) / 5)
        assert (rung.blocks.value or 0) <= (rung.least.value or 0) <= (rung.result.nfe.value or 0)


def made_rows(rows, name):  # type: ignore[no-untyped-def]
    return rows[name].generations.values()


def rates(own) -> tuple[int, float]:  # type: ignore[no-untyped-def]
    timings = own.timings.values()
    return sum(row.tokens_kept for row in timings), sum(sorted(row.variant_seconds)[1] for row in timings)


def test_a_lossy_rung_knows_the_one_that_differs_in_its_rule_alone() -> None:
    (ladder,), _ = found(set_cells(BASE, drafters=rungs()), timed=0)
    *exact, product = ladder.rungs
    assert product.exact is ladder.rungs[5].result
    assert all(rung.exact is None for rung in exact)
    (ladder,), _ = found(set_cells(BASE, drafters=(rungs()[0], rungs()[4])), timed=0)
    assert ladder.rungs[-1].exact is None


def test_rungs_that_never_ran_have_no_numbers_and_stay_in_place() -> None:
    cells = set_cells(BASE, drafters=rungs())
    made = sweep(cells, prompts=3)
    results = {
        cell_id: () if cell_id in {cells[0].cell_id, cells[4].cell_id} else own for cell_id, own in made.results.items()
    }
    made = replace(made, results=results)
    (ladder,) = ladders(aggregate_all(made.jobs, made.rows()), made.rows())
    assert [rung.name for rung in ladder.rungs] == NAMES
    floor = ladder.rungs[4]
    assert floor.forwards.value is floor.throughput.value is floor.least.value is None
    assert ladder.rungs[5].forwards.value is None  # the rung before has no number
    assert ladder.rungs[3].forwards.value is not None


def test_a_step_is_doubted_where_either_of_its_timings_is() -> None:
    _, made = found(set_cells(BASE, drafters=rungs()))
    results = list(aggregate_all(made.jobs, made.rows()))
    quiet = [replace(result, throughput=replace(result.throughput, doubts=())) for result in results]
    for noisy, doubted in ((NAMES[4], NAMES[4:6]), (NAMES[1], NAMES[1:2])):
        place = NAMES.index(noisy)
        before = quiet[place]
        changed = [*quiet]
        changed[place] = replace(before, throughput=replace(before.throughput, doubts=("varies",)))
        (ladder,) = ladders(changed, made.rows())
        assert [rung.name for rung in ladder.rungs if rung.doubts] == doubted
