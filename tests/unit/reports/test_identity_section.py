"""The identity section: the match rate of every cell that promises identity, worst first, and each mismatch's class."""

from dataclasses import replace

from reports.sections.identity import info
from tests.synthetic import GAP, TIE, Faults, grid, sweep
from tests.unit.reports.conftest import framed

CELLS = grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,), gammas=())  # draft-free, ssd, spot


def tables(faults: Faults) -> dict[str, list[list[str]]]:
    section = info(framed(sweep(CELLS, prompts=8, faults=faults)))
    parts = [part for group in section.groups for part in group.parts]
    return {part.caption: [[value.text for value in row] for _, rows in part.groups for row in rows] for part in parts}


def test_each_promising_cell_has_its_rate_and_the_largest_margin_of_its_mismatches() -> None:
    found = tables(Faults(near_ties=2, bugs=1))
    rates = found["Match rate by cell"]
    assert [row[3] for row in rates] == [
        "ssd \u2717",
        "spot \u2717",
    ]  # draft-free promises nothing: it is the reference
    for row in rates:
        assert row[1] == "float32"
        assert row[5:11] == ["8", "5", "62.5", "2", "1", f"{GAP:.2f}"]
    assert [row[-1] for row in found["Mismatches"]] == ["BUG"] * 2 + ["near-tie"] * 4
    assert {row[-2] for row in found["Mismatches"]} == {f"{GAP:.2f}", f"{TIE:.1e}"}


def test_where_all_is_equal_the_rates_say_so_and_there_is_no_list() -> None:
    found = tables(Faults())
    assert list(found) == ["Match rate by cell"]
    assert [row[5:11] for row in found["Match rate by cell"]] == [["8", "8", "100.0", "0", "0", "\u2013"]] * 2


def test_a_cell_with_a_bug_comes_first() -> None:
    clean, broken = (sweep(CELLS, prompts=4, faults=faults) for faults in (Faults(), Faults(bugs=1)))
    base, ssd, spot = (cell.cell_id for cell in CELLS)
    mixed = {base: broken.results[base], ssd: clean.results[ssd], spot: broken.results[spot]}
    section = info(framed(replace(clean, results=mixed)))
    rates = section.groups[0].parts[0].groups[0][1]
    assert [(row[3].text, row[9].text) for row in rates] == [("spot \u2717", "1"), ("ssd", "0")]
