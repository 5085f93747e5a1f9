"""The section of options: what it says of an option that helps, one that costs and one that does neither."""

from dataclasses import replace

from reports.sections.beyond import info, side_of, verdict
from sweeps.statistics import Estimate
from tests.synthetic import Faults, grid, sweep
from tests.unit.reports.conftest import framed

BASE, SSD, SPOT = grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,), gammas=())


def variant(name, **options):
    return replace(SPOT, drafter=replace(SPOT.drafter, name=name, **options))


COST, UNMERGED = variant("by-cost", cost_digest="curve"), variant("apart", merge_states=False)


def ratio(low, high):
    return Estimate(value=(low + high) / 2, low=low, high=high, n=4)


def test_without_two_cells_that_differ_in_one_option_there_is_no_section():
    assert info(framed(sweep((BASE, SSD, SPOT), prompts=3))) is None
    assert info(framed(sweep((BASE, SPOT, variant("x", merge_states=False, verify_margin=0.1)), prompts=3))) is None
    assert info(framed(sweep((BASE, SPOT, COST), prompts=3, faults=Faults(missing=3), timed=0))) is None


def test_each_option_has_its_verdict_and_a_table_of_its_pairs():
    section, setting = info(framed(sweep((BASE, SPOT, COST, UNMERGED), prompts=6))), "tiny-sdar, T = 0"
    assert [group.title for group in section.groups] == [
        "Which help",
        "State merging: " + setting,
        "Cost-aware budget: " + setting,
    ]
    merging, cost = (group.parts[0].groups[0][1] for group in section.groups[1:])
    assert [row[1].text for row in merging] == ["spot"]
    assert [row[2].text for row in merging] == ["apart"]
    assert [(row[1].text, row[2].text, row[3].text, row[4].text) for row in cost] == [("by-cost", "spot", "8", "6")]
    assert [part.caption.rpartition(", ")[2] for part in section.groups[1].parts] == ["T = 0", "counts a round"]
    said = [text for _, text in section.groups[0].parts[0].lines]
    assert len(said) == 4
    assert all("of 1 comparison;" in text for text in said)


def test_a_side_is_taken_only_where_one_is_outside_of_the_interval():
    assert side_of(ratio(1.01, 1.2)) == "better"
    assert side_of(ratio(0.8, 0.99)) == "worse"
    assert side_of(ratio(0.99, 1.2)) == "no difference"
    assert side_of(Estimate(value=2.0, low=None, high=None, n=1)) == "no difference"
    assert side_of(Estimate(value=None, low=None, high=None, n=0)) == ""


def test_verdicts_say_help_cost_both_or_neither():
    better, worse, same = "better", "worse", "no difference"
    assert verdict("X", "fewer", "more", [better, same], [1.2, 0.8]) == (
        "good",
        "X: helps (fewer in 1, more in 0 of 2 comparisons; geometric mean of the ratios 0.98).",
    )
    assert verdict("X", "fewer", "more", [worse], [0.5])[0] == "warning"
    assert "costs (" in verdict("X", "fewer", "more", [worse], [0.5])[1]
    assert "helps here and costs there" in verdict("X", "fewer", "more", [worse, better], [1.0])[1]
    assert "no difference that these prompts can show" in verdict("X", "fewer", "more", [same], [1.0])[1]


def test_timings_that_failed_a_gate_are_marked_and_not_counted():
    section = info(framed(sweep((BASE, SPOT, COST), prompts=6, timed=6, faults=Faults(noisy=True))))
    lines = [text for _, text in section.groups[0].parts[0].lines]
    assert lines[1] == "Cost-aware budget, throughput: 1 timing of 1 failed a gate and is not counted."
    (row,) = section.groups[1].parts[0].groups[0][1]
    assert row[7].text.endswith(" \u2020")
