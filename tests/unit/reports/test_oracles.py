"""The section on oracles: its numbers worked out from the rows by hand, its sentences for every outcome of the duel."""

from dataclasses import replace

import pytest

from reports.contests import verdict
from reports.labels import labels_of
from reports.model import Chart, Lines, Table
from reports.sections import accepted, across, curves, downloads, headline, oracles, summary, traces
from reports.winners import nfe_winners, throughput_winners
from sweeps.statistics import Estimate
from tests.synthetic import Faults, grid, sweep
from tests.unit.reports.conftest import framed

ONE = {"tasks": ("tiny-arith",), "temperatures": (0.0,), "gammas": (), "oracles": True}
CELLS = grid(budgets=(8,), **ONE)


def with_nfe(made, wanted):
    """The sweep with other forwards a prompt: by drafter kind, the difference to the least possible for each prompt."""
    results = {}
    for job in made.jobs:
        change = wanted.get(job.cell.drafter.kind)
        items = made.results[job.cell_id]
        if change is not None:
            items = tuple(
                replace(item, generations=tuple(lengthened(row, change[row.prompt_index]) for row in item.generations))
                for item in items
            )
        results[job.cell_id] = items
    return replace(made, results=results)


def lengthened(row, nfe):
    """`row` with `nfe` rounds (only its counters: nothing else is read here)."""
    spread = (1,) * (row.tokens_generated - nfe) + (0,) * nfe
    taken = [sum(spread[i::nfe]) for i in range(nfe)]
    return replace(row, counters=replace(row.counters, nfe=nfe, accepted=tuple(taken), drafted=(8,) * nfe))


def part(info, kind, place=0):
    return [part for group in info.groups for part in group.parts if isinstance(part, kind)][place]


def rows_of(table):
    return [[value.text for value in row] for _, rows in table.groups for row in rows]


def test_no_oracle_no_section(clean_frames):
    assert oracles.info(clean_frames) is None


def test_shares_and_duel_are_those_of_the_rows():
    wanted = {
        "ssd": (40, 50),
        "spot": (25, 35),
        "oracle_position": (20, 30),
        "oracle_token": (36, 44),
        "oracle_joint": (15, 25),
    }
    frames = framed(with_nfe(sweep(CELLS, prompts=2, timed=0), wanted))
    tokens = sum(row.tokens_generated for row in frames.rows[CELLS[0].cell_id].generations.values())
    info = oracles.info(frames)
    table = part(info, Table, 1)
    assert [head.name for head in table.heads][-2:] == ["NFE reduction", "Share of the joint bound"]
    assert rows_of(table) == [
        ["ssd", "8", "2", "45.0", f"{tokens / 90:.2f}", "44.4"],  # 40 of 90
        ["oracle_token (bound)", "8", "2", "40.0", f"{tokens / 80:.2f}", "50.0"],
        ["spot", "8", "2", "30.0", f"{tokens / 60:.2f}", "66.7"],
        ["oracle_position (bound)", "8", "2", "25.0", f"{tokens / 50:.2f}", "80.0"],
        ["oracle_joint (bound)", "8", "2", "20.0", f"{tokens / 40:.2f}", "100.0"],
    ]
    (duel,) = rows_of(part(info, Table, 0))
    assert duel[:3] == ["tiny-arith", "8", "2"]
    assert duel[3:6] == [f"{tokens / 50:.2f}", f"{tokens / 80:.2f}", "1.60"]  # 80 over 50
    chart = part(info, Chart)
    assert {point.series: round(point.y, 1) for point in chart.points} == {
        "ssd": 44.4,
        "spot": 66.7,
        "oracle_position (bound)": 80.0,
        "oracle_token (bound)": 50.0,
    }


def test_shares_pair_prompts_that_both_decoded():
    made = sweep(CELLS, prompts=3, timed=0)
    wanted = {"spot": (20, 30, 40), "oracle_joint": (10, 15, 20)}
    made = with_nfe(made, wanted)
    joint = next(job.cell_id for job in made.jobs if job.cell.drafter.kind == "oracle_joint")
    (item,) = made.results[joint]
    made = replace(made, results={**made.results, joint: (replace(item, generations=item.generations[1:]),)})
    table = part(oracles.info(framed(made)), Table, 1)
    (share,) = [row[-1] for row in rows_of(table) if row[0] == "spot"]
    assert share == "50.0"  # 35 of 70, prompt 0 left out


def duel_sentence(position, token):
    frames = framed(with_nfe(sweep(CELLS, prompts=4, timed=0), {"oracle_position": position, "oracle_token": token}))
    return part(oracles.info(frames), Lines).lines[0]


def test_the_sentence_says_who_needs_fewer_forwards():
    level, text = duel_sentence((20, 21, 22, 21), (40, 42, 45, 41))
    assert level == "note"
    assert text.startswith(
        "The position oracle needs 2.00 times fewer forwards than the token oracle (D = 8, 4 prompts"
    )
    assert "the commit order, more than the tokens, is what should be predicted (alone it reaches " in text
    assert text.endswith("in 1 of 1.")
    level, text = duel_sentence((40, 42, 45, 41), (20, 21, 22, 21))
    assert level == "note"
    assert text.startswith("The position oracle does not need fewer forwards: the token oracle needs 2.00 times fewer")
    assert "token over position 0.50" in text
    assert text.endswith("in 0 of 1.")
    _, text = duel_sentence((20, 40, 20, 40), (40, 20, 40, 20))
    assert text.startswith("It is not beyond doubt")
    assert "1.00" in text


def test_one_prompt_decides_nothing():
    frames = framed(sweep(CELLS, prompts=1, timed=0))
    text = part(oracles.info(frames), Lines).lines[0][1]
    assert text.startswith("Nothing can be said of which oracle needs fewer forwards: NFE ratio token over position")
    assert "no interval" in text
    assert text.endswith("1 duel has no interval (1 prompt): nothing can be said of it.")
    assert "beyond" not in text
    assert rows_of(part(oracles.info(frames), Table))[0][-1] == "no interval (1 prompt)"
    assert verdict(Estimate(value=5.0, low=None, high=None, n=1)) == 0


def test_the_largest_budget_speaks_for_the_target_and_tasks_are_pooled():
    cells = grid(**{**ONE, "tasks": ("tiny-arith", "tiny-code")}, budgets=(4, 8))
    frames = framed(sweep(cells, prompts=3, timed=0))
    text = part(oracles.info(frames), Lines).lines[0][1]
    assert "(D = 8, 6 prompts, all tasks; 95 %: " in text
    assert text.endswith("of 4.")


def test_the_bound_is_checked_against_arithmetic():
    made = sweep(CELLS, prompts=2, timed=0)
    level, text = part(oracles.info(framed(made)), Lines).lines[1]
    assert (level, text.partition(" (")[0]) == (
        "good",
        "In all 2 generations the joint oracle took the least possible forwards",
    )
    rows = framed(made).rows
    joint = next(job for job in made.jobs if job.cell.drafter.kind == "oracle_joint")
    least = [row.counters.nfe for row in rows[joint.cell_id].generations.values()]
    level, text = part(oracles.info(framed(with_nfe(made, {"oracle_joint": (least[0], least[1] + 1)}))), Lines).lines[1]
    assert (level, text.partition(" the joint")[0]) == ("warning", "In 1 of 2 generations")
    level, text = part(oracles.info(framed(with_nfe(made, {"spot": (least[0] - 1, least[1])}))), Lines).lines[1]
    assert (level, text) == ("alarm", "1 generation took fewer forwards than their budget allows: a count is wrong.")


def test_an_oracle_never_wins_nor_takes_the_win_from_a_method():
    with_oracles = framed(sweep(CELLS, timed=8))
    methods = tuple(cell for cell in CELLS if not cell.drafter.oracle)
    without = framed(sweep(methods, timed=8))
    for winners in (nfe_winners, throughput_winners):
        won = winners(with_oracles, labels_of(with_oracles.results))
        assert won == winners(without, labels_of(without.results)) != set()


def test_every_number_of_an_oracle_stands_beside_the_word_bound():
    frames = framed(sweep(grid(budgets=(4, 8), **{**ONE, "tasks": ("tiny-arith", "tiny-code")}), prompts=3))
    for section in (headline, across, accepted, curves, oracles):
        info = section.info(frames)
        for group in info.groups:
            for found in group.parts:
                if isinstance(found, Table):
                    texts = [value.text for _, rows in found.groups for row in rows for value in row]
                    named = [text for text in texts if "oracle_" in text]
                elif isinstance(found, Chart):
                    named = [point.series for point in found.points if "oracle_" in point.series]
                else:
                    continue
                assert named or "oracle" in found.caption.lower() or "position" in found.caption.lower()
                assert all("(bound)" in text for text in named)
    assert "(bound): an oracle" in headline.info(frames).lead
    tex = part(downloads.info(frames), object, 1).text
    assert tex.count(r"oracle\_joint (bound)") == 2  # one a budget
    facts = dict(part(summary.info(frames), object, -1).rows)
    assert facts["Drafters"] == "ssd, spot"
    assert facts["Bounds"] == "oracle_position (bound), oracle_token (bound), oracle_joint (bound)"
    findings = " ".join(text for _, text in part(summary.info(frames), Lines, 1).lines)
    assert "spot at D" in findings
    assert "oracle" not in findings


def test_frames_say_which_cells_are_bounds():
    frames = framed(sweep(CELLS, prompts=2))
    for frame in (frames.cells, frames.prompts):
        assert (frame["bound"] == frame["drafter"].str.startswith("oracle")).all()


def test_a_broken_claim_is_marked_beside_the_number():
    info = oracles.info(framed(sweep(CELLS, prompts=4, timed=0, faults=Faults(bugs=1))))
    names = {row[0] for row in rows_of(part(info, Table, 1))}
    assert "spot ✗" in names
    assert "oracle_joint (bound) ✗" in names


def test_an_oracle_without_the_others_has_no_duel_and_no_shares():
    cells = tuple(cell for cell in CELLS if cell.drafter.kind not in ("oracle_token", "oracle_joint"))
    info = oracles.info(framed(sweep(cells, prompts=3, timed=0)))
    assert {row[-1] for row in rows_of(part(info, Table))} == {"n/a"}
    assert not [part for part in info.groups[0].parts if isinstance(part, Lines | Chart)]
    assert info.groups[-1].title.startswith("The paper's figures")


@pytest.mark.parametrize("oracle", [True, False])
def test_the_mirror_tags_bounds(oracle):
    from orchestrator.tracking_rows import row_of

    result = next(r for r in framed(sweep(CELLS, prompts=2)).results if r.cell.drafter.oracle is oracle)
    row = row_of(result, "s")
    assert row.tags["bound"] == row.params["bound"] == str(oracle).lower()
    assert ("(bound)" in row.name) is oracle


def test_the_drill_down_shows_methods_first():
    frames = framed(sweep(CELLS, prompts=2, timed=0))
    titles = [group.title for group in traces.info(frames).groups]
    assert ", spot, D = 8" in titles[0]
    assert all("(bound)" in title for title in titles[-3:])
    assert not any("(bound)" in title for title in titles[:-3])


def test_a_long_table_says_how_many_rows_it_leaves_out(monkeypatch):
    monkeypatch.setattr(oracles, "MOST_ROWS", 7)
    frames = framed(sweep(grid(budgets=(8,), **{**ONE, "tasks": ("a", "b", "c")}), prompts=2, timed=0))
    table = part(oracles.info(frames), Table, 1)
    assert [(task, len(rows)) for task, rows in table.groups] == [("a", 5), ("b", 2)]
    assert table.omitted == 8
