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
    assert side_of(Estimate(value=2.0, low=None, high=None, n=1)) == "no interval"
    assert side_of(Estimate(value=None, low=None, high=None, n=0)) == ""


BETTER, WORSE, SAME = ratio(1.1, 1.3), ratio(0.4, 0.6), ratio(0.7, 0.9 + 0.4)
ALONE = Estimate(value=2.0, low=None, high=None, n=1)


def test_verdicts_say_help_cost_both_or_neither():
    assert verdict("X", "fewer", "more", [BETTER, SAME]) == (
        "good",
        "X: helps (fewer in 1, more in 0 of 2 comparisons; geometric mean of the ratios 1.10).",
    )
    assert verdict("X", "fewer", "more", [WORSE])[0] == "warning"
    assert "costs (" in verdict("X", "fewer", "more", [WORSE])[1]
    assert "helps here and costs there" in verdict("X", "fewer", "more", [WORSE, BETTER])[1]
    assert "no difference that these prompts can show" in verdict("X", "fewer", "more", [SAME])[1]


def test_one_difference_of_eight_is_what_chance_may_give_and_two_are_not():
    level, text = verdict("X", "fewer", "more", [BETTER, *[SAME] * 7])
    assert level == "note"
    assert text.startswith("X: no difference that these prompts can show (fewer in 1, more in 0 of 8 comparisons; ")
    assert "1 of 8 is what chance may give" in text
    level, text = verdict("X", "fewer", "more", [BETTER, BETTER, *[SAME] * 6])
    assert (level, "X: helps (" in text, "chance" in text) == ("good", True, False)
    level, text = verdict("X", "fewer", "more", [BETTER, BETTER, WORSE, *[SAME] * 5])
    assert (level, "X: helps (" in text, "1 of 8 is what chance may give" in text) == ("good", True, True)
    assert verdict("X", "fewer", "more", [WORSE, WORSE, *[SAME] * 6])[0] == "warning"
    both = verdict("X", "fewer", "more", [WORSE, *[SAME] * 6, BETTER])[1]
    assert both.count("1 of 8 is what chance may give") == 1


def test_without_an_interval_nothing_is_said_and_such_pairs_are_counted_apart():
    assert verdict("X", "fewer", "more", [ALONE, ALONE]) == (
        "note",
        "X: no interval (1 prompt): nothing can be said (2 comparisons; geometric mean of the ratios 2.00).",
    )
    level, text = verdict("X", "fewer", "more", [WORSE, ALONE])
    assert level == "warning"
    assert "fewer in 0, more in 1 of 1 comparison;" in text
    assert text.endswith(" 1 more comparison has no interval (1 prompt): nothing can be said of it.")
    section = info(framed(sweep((BASE, SPOT, COST, UNMERGED), prompts=1, timed=0)))
    for _, text in section.groups[0].parts[0].lines:
        assert "no interval (1 prompt): nothing can be said" in text
        assert "no difference" not in text


def changed(made, cell, change):
    """The sweep with every generation of one cell changed."""
    items = tuple(
        replace(item, generations=tuple(change(row) for row in item.generations)) for item in made.results[cell.cell_id]
    )
    return replace(made, results={**made.results, cell.cell_id: items})


def other_text(row):
    return replace(row, output_ids=(*row.output_ids[:-1], row.output_ids[-1] + 1))


def one_again(row):
    counters = replace(row.counters, nfe=row.counters.nfe + 3, recomputes=3)
    return replace(row, counters=counters)


def test_a_margin_is_told_by_identity_and_what_it_took():
    """Prompts 0 to 2 of 6 differ without the margin, none with it; 3 verdicts a prompt are made again."""
    verified = variant("verified", verify_margin=0.25)
    made = sweep((BASE, SPOT, verified), prompts=6, timed=0)
    made = changed(made, SPOT, lambda row: other_text(row) if row.prompt_index < 3 else row)
    made = changed(made, verified, one_again)
    forwards = sum(row.counters.nfe for row in made.rows()[verified.cell_id].generations.values())
    section = info(framed(made))
    ((level, text),) = section.groups[0].parts[0].lines
    assert level == "good"
    assert text == (
        "Verify margin 0.25, tiny-sdar (float32): identical to draft-free 3 of 6 \u2192 6 of 6; "
        f"18 verdicts made again, 18 extra forwards ({100 * 18 / forwards:.1f} % of its {forwards})."
    )
    (row,) = section.groups[1].parts[0].groups[0][1]
    assert row[-1].text == "3/6 \u2717 \u2192 6/6"
    worse = changed(sweep((BASE, SPOT, verified), prompts=6, timed=0), verified, other_text)
    ((level, text),) = info(framed(worse)).groups[0].parts[0].lines
    assert (level, "6 of 6 \u2192 0 of 6" in text) == ("warning", True)


def test_a_margin_with_nothing_to_repair_says_so_and_targets_stay_apart():
    half = tuple(
        replace(cell, target=replace(cell.target, name="half", dtype="bfloat16"))
        for cell in (BASE, SPOT, variant("verified", verify_margin=0.25))
    )
    section = info(framed(sweep((BASE, SPOT, variant("verified", verify_margin=0.001), *half), prompts=6, timed=0)))
    lines = [text for _, text in section.groups[0].parts[0].lines]
    assert [text.partition(":")[0] for text in lines] == [
        "Verify margin 0.001, tiny-sdar (float32)",
        "Verify margin 0.25, half (bfloat16)",
    ]
    assert all(text.endswith("all were identical without it, so there was nothing to repair.") for text in lines)


def test_independent_noise_promises_no_identity_to_a_margin():
    cells = grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(1.0,), gammas=(), noises=("independent",))
    base, spot = cells[0], cells[-1]
    verified = replace(spot, drafter=replace(spot.drafter, name="verified", verify_margin=0.25))
    section = info(framed(sweep((base, spot, verified), prompts=6, timed=0)))
    ((level, text),) = section.groups[0].parts[0].lines
    assert level == "note"
    assert "no output that must equal a draft-free one was compared" in text
    (row,) = section.groups[1].parts[0].groups[0][1]
    assert row[-1].text == "not promised"


def test_timings_that_failed_a_gate_are_marked_and_not_counted():
    section = info(framed(sweep((BASE, SPOT, COST), prompts=6, timed=6, faults=Faults(noisy=True))))
    lines = [text for _, text in section.groups[0].parts[0].lines]
    assert lines[1] == "Cost-aware budget, throughput: 1 timing of 1 failed a gate and is not counted."
    (row,) = section.groups[1].parts[0].groups[0][1]
    assert row[7].text.endswith(" \u2020")
