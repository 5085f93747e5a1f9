"""The section on transfer: matrices, losses and standings worked out by hand, and what is absent, failed or broken."""

from dataclasses import replace

import pytest

from reports.marks import BROKEN
from reports.model import Chart, Lines, Table
from reports.sections import summary, transfer
from sweeps.made_on import MadeOn
from tests.synthetic import Faults, sweep
from tests.transfers import made_on, transfers, with_nfe
from tests.unit.reports.conftest import framed

ONE = {"tasks": ("tiny-arith",), "budgets": (8,), "temperatures": (0.0,)}
CELLS = transfers(targets=2, **ONE)
NFE = {
    ("tiny-a", "from-tiny-a"): (16, 16, 20, 20),  # 72
    ("tiny-a", "from-tiny-b"): (18, 18, 27, 27),  # 90
    ("tiny-a", "ssd"): (23, 22, 32, 31),  # 108
    ("tiny-a", "spiffy"): (20, 17, 25, 26),  # 88
    ("tiny-b", "from-tiny-b"): (30, 32, 28, 30),  # 120
    ("tiny-b", "from-tiny-a"): (24, 25, 22, 25),  # 96
    ("tiny-b", "ssd"): (21, 22, 19, 22),  # 84
    ("tiny-b", "spiffy"): (33, 33, 32, 32),  # 130
}


def parts(info, kind):
    return [part for group in info.groups for part in group.parts if isinstance(part, kind)]


def texts(table):
    return [[value.text for value in row] for _, rows in table.groups for row in rows]


@pytest.fixture(scope="module")
def frames():
    return framed(with_nfe(sweep(CELLS, prompts=4, timed=0), NFE))


@pytest.fixture(scope="module")
def info(frames):
    return transfer.info(frames)


def test_no_section_without_a_transferred_drafter(clean_frames):
    assert transfer.info(clean_frames) is None
    native = tuple(cell for cell in CELLS if cell.is_native is not False)
    assert transfer.info(framed(sweep(native, prompts=2, timed=0))) is None


def test_the_matrices_are_those_of_the_rows(frames, info):
    reduced, lost = parts(info, Table)[:2]
    assert [head.name for head in reduced.heads] == ["NFE reduction", "tiny-a", "tiny-b"]
    assert [head.unit for head in reduced.heads[1:]] == ["\u00d7", "\u00d7, exact given the cache"]
    tokens = {
        name: sum(
            row.tokens_generated
            for result in frames.results
            if result.cell.is_baseline and result.cell.target.name == name
            for row in frames.rows[result.cell_id].generations.values()
        )
        for name in ("tiny-a", "tiny-b")
    }
    assert texts(reduced) == [
        ["from-tiny-a", f"{tokens['tiny-a'] / 72:.2f} native", f"{tokens['tiny-b'] / 96:.2f}"],
        ["from-tiny-b", f"{tokens['tiny-a'] / 90:.2f}", f"{tokens['tiny-b'] / 120:.2f} native"],
    ]
    assert texts(lost) == [
        ["from-tiny-a", "native", "-25.0"],
        ["from-tiny-b", "20.0", "native"],
    ]  # 1 - 120/96, 1 - 72/90


def test_every_pair_stands_beside_its_native_drafter_and_its_baselines(info):
    table = parts(info, Table)[2]
    assert [name for name, _ in table.groups] == ["tiny-a: lossless", "tiny-b: exact given the cache (dual)"]
    native_a, b_on_a, native_b, a_on_b = texts(table)
    assert native_a[0] == "from-tiny-a, native"
    assert native_a[3:5] == ["18.0", "native"]
    assert b_on_a[:5] == ["from-tiny-b", "4", "4 of 4", "22.5", "18.0"]
    assert b_on_a[6:] == ["20.0", "ahead of ssd 1.20", "open: spiffy 0.98"]  # 108/90, 88/90
    assert native_b[0] == "from-tiny-b, native"
    assert a_on_b[:5] == ["from-tiny-a", "4", "4 of 4", "24.0", "30.0"]
    assert a_on_b[6:] == ["-25.0", "behind ssd 0.88", "behind ssd 0.88"]  # 84/96
    uncached = [row[2].interval for _, rows in table.groups for row in rows]
    assert uncached == ["", "", "2/4 equal uncached", "2/4 equal uncached"]
    assert table.note == ""


def test_the_picture_shows_the_losses(info):
    (chart,) = parts(info, Chart)
    assert [(point.facet, point.series, round(point.y, 6)) for point in chart.points] == [
        ("tiny-a", "from-tiny-b", 20.0),
        ("tiny-b", "from-tiny-a", -25.0),
    ]
    assert all(point.low < point.y < point.high for point in chart.points)


def test_the_sentences_say_what_it_costs_and_who_is_ahead(frames, info):
    loss, standing = info.findings
    assert loss.startswith(
        "Transferred drafters' loss is -2.5 % of the native NFE reduction, the mean of 2 pairs, "
        "from -25.0 % (from-tiny-a on tiny-b) to 20.0 %; the worst is from-tiny-b on tiny-a (95 %: "
    )
    assert loss.endswith("Beyond their intervals 1 of 2 lose and 1 gain.")
    first, second = standing.split(" 0 of 2 ")
    assert first == (
        "1 of 2 transferred pairs need fewer forwards than the best baseline without training on their target (ssd) "
        "beyond the interval, 1 need more, 0 are open."
    )
    assert second == (
        "transferred pairs need fewer forwards than the best of all baselines on their target (spiffy, ssd) beyond the "
        "interval, 1 need more, 1 are open."
    )
    (identity,) = [line for line in parts(info, Lines)[0].lines if line[0] == "good"]
    assert identity[1] == (
        "All 8 generations of 2 transferred cells that promise identity equal draft-free decoding "
        "(of approximate caches: with the same cache)."
    )
    page = summary.info(frames, [info])
    assert any(group.link == "transfer" for group in page.groups)


def test_the_paper_is_quoted_as_the_paper(info):
    last = info.groups[-1]
    assert last.title == "The paper's figures (arXiv 2610.22543), for its setting"
    assert texts(last.parts[0])[0] == ["SDAR-8B", "LLaDA2.0-mini", "loses 3 to 11 % NFE", "\u2013"]


def test_only_prompts_that_both_decoded_are_compared():
    made = with_nfe(sweep(CELLS, prompts=4, timed=0), NFE)
    native = next(c.cell_id for c in CELLS if (c.target.name, c.drafter.name) == ("tiny-a", "from-tiny-a"))
    (item,) = made.results[native]
    made = replace(made, results={**made.results, native: (replace(item, generations=item.generations[2:]),)})
    _, lost, pairs = parts(transfer.info(framed(made)), Table)[:3]
    assert texts(lost)[1][1] == "25.9 (6 of 8)"  # 1 - 40/54: of the pair's eight prompts two have no number
    assert texts(pairs)[1][3:5] == ["22.5", "20.0 (2 of 4)"]


def test_tasks_are_pooled_and_shown_one_by_one():
    both = transfers(targets=2, **ONE | {"tasks": ("tiny-arith", "tiny-code")})
    made = with_nfe(sweep(both, prompts=4, timed=0), NFE)
    made = with_nfe_of(made, "tiny-code", ("tiny-a", "from-tiny-a"), (18, 18, 18, 18))  # 72 of 90 again, and 72 of 160
    made = with_nfe_of(made, "tiny-code", ("tiny-a", "from-tiny-b"), (20, 20, 20, 10 + 20))
    info = transfer.info(framed(made))
    assert texts(parts(info, Table)[1])[1][1] == "20.0"  # 1 - (72 + 72) / (90 + 90)
    (by_task,) = [group for group in info.groups if group.title.startswith("By task")]
    assert by_task.folded
    (table,) = by_task.parts
    claims = ("tiny-a: lossless", "tiny-b: exact given the cache (dual)")
    heads = [f"{task}, {claim}" for task in ("tiny-arith", "tiny-code") for claim in claims]
    assert [(name, len(rows)) for name, rows in table.groups] == [(head, 2) for head in heads]
    assert [row[0].text for _, rows in table.groups for row in rows if row[6].text == "20.0"] == ["from-tiny-b"] * 2


def with_nfe_of(made, task, names, nfe):
    """The sweep with the forwards of one drafter on one target and task."""
    own = {job.cell_id for job in made.jobs if job.cell.task.name == task}
    changed = with_nfe(made, {names: nfe})
    return replace(made, results={id: (changed if id in own else made).results[id] for id in made.results})


def test_a_pair_that_the_plan_leaves_out_and_one_without_a_native_drafter_are_shown_as_such():
    def kept(cell):
        return (cell.target.name, cell.drafter.name) not in {("tiny-a", "from-tiny-b"), ("tiny-b", "from-tiny-b")}

    info = transfer.info(framed(sweep(tuple(filter(kept, transfers(**ONE))), prompts=4, timed=0)))
    reduced, lost, pairs = parts(info, Table)[:3]
    assert [row[:2] for row in texts(reduced) if row[0] == "from-tiny-b"] == [["from-tiny-b", "not in the plan"]]
    (on_a,) = [rows for name, rows in pairs.groups if name == "tiny-a: lossless"]
    absent = ["from-tiny-b", "not in the plan", *["\u2013"] * 7]
    assert [[value.text for value in row] for row in on_a if row[0].text == "from-tiny-b"] == [absent]
    names = [head.name for head in lost.heads]
    assert {row[names.index("tiny-b")] for row in texts(lost)} == {"no native drafter", "not in the plan"}


def test_a_native_drafter_without_a_number_is_shown_as_missing_and_not_as_absent():
    made = sweep(CELLS, prompts=4, timed=0)
    native = next(c.cell_id for c in CELLS if (c.target.name, c.drafter.name) == ("tiny-a", "from-tiny-a"))
    results = {cell_id: items for cell_id, items in made.results.items() if cell_id != native}
    info = transfer.info(framed(replace(made, results=results)))
    _, lost, pairs = parts(info, Table)[:3]
    assert texts(lost)[1][1] == "n/a (4 of 8)"
    assert texts(pairs)[0][:2] == ["from-tiny-a, native", "0 of 4"]
    assert texts(pairs)[1][4] == "n/a (0 of 4)"
    assert "1 pair has no interval (0 prompts): nothing can be said of it." in info.findings[0]


def test_failed_prompts_and_broken_cells_are_marked_wherever_they_count():
    info = transfer.info(framed(sweep(CELLS, prompts=4, timed=0, faults=Faults(failed=1))))
    reduced, lost, pairs = parts(info, Table)[:3]
    assert all("(3 of 4)" in text for row in texts(reduced) for text in row[1:])
    assert all(row[1] == "3 of 4" for row in texts(pairs))
    made = sweep(CELLS, prompts=4, timed=0)
    native = next(c.cell_id for c in CELLS if (c.target.name, c.drafter.name) == ("tiny-a", "from-tiny-a"))
    (item,) = made.results[native]
    other = tuple(replace(row, output_ids=(*row.output_ids[:-1], row.output_ids[-1] + 1)) for row in item.generations)
    frames = framed(replace(made, results={**made.results, native: (replace(item, generations=other),)}))
    info = transfer.info(frames)
    reduced, lost, pairs = parts(info, Table)[:3]
    assert [[BROKEN in text for text in row] for row in texts(reduced)] == [[True, True, False], [False, False, False]]
    assert [[BROKEN in text for text in row] for row in texts(lost)] == [[True, False, False], [False, True, False]]
    assert [row[0].count(BROKEN) for row in texts(pairs)] == [1, 0, 0, 0]
    assert BROKEN in texts(pairs)[1][4]
    assert "the mean of 1 pair; the worst is from-tiny-a on tiny-b" in info.findings[0]
    assert info.findings[0].endswith(f" 1 of 2 pairs has a cell marked {BROKEN} and is not counted.")
    (chart,) = parts(info, Chart)
    assert [BROKEN in point.mark for point in chart.points] == [True, False]


def test_a_broken_transferred_cell_is_an_alarm_of_the_section():
    made = sweep(CELLS, prompts=4, timed=0)
    away = next(c.cell_id for c in CELLS if (c.target.name, c.drafter.name) == ("tiny-a", "from-tiny-b"))
    (item,) = made.results[away]
    first, *rest = item.generations
    bad = replace(first, output_ids=(*first.output_ids[:-1], first.output_ids[-1] + 1))
    frames = framed(replace(made, results={**made.results, away: (replace(item, generations=(bad, *rest)),)}))
    lines = parts(transfer.info(frames), Lines)[0].lines
    text = "Of 8 generations of 2 transferred cells that promise identity, 7 equal draft-free decoding"
    assert ("alarm", f"{text} (of approximate caches: with the same cache).") in lines


def test_without_an_interval_nothing_is_called_ahead_or_lost():
    info = transfer.info(framed(with_nfe(sweep(CELLS, prompts=2, timed=0), NFE)))
    assert "nothing can be said" in info.findings[0]
    assert not any(word in " ".join(info.findings) for word in ("ahead", "need fewer", "Beyond their intervals"))
    assert info.findings[1].startswith(
        "Against the best baseline without training 2 comparisons have no interval (2 prompts): nothing can be said of "
    )
    table = parts(info, Table)[2]
    assert table.note == f"{table.caption}. Ratios over baselines have no interval (2 prompts): " + (
        "nothing is called ahead or behind."
    )
    assert all(row[7].startswith("ssd ") for row in texts(table))
    assert {value.interval for _, rows in table.groups for row in rows for value in row[7:]} == {""}


def test_one_ratio_without_an_interval_says_so_in_its_own_row():
    made = with_nfe(sweep(CELLS, prompts=4, timed=0), NFE)
    away = next(c.cell_id for c in CELLS if (c.target.name, c.drafter.name) == ("tiny-a", "from-tiny-b"))
    (item,) = made.results[away]
    few = replace(made, results={**made.results, away: (replace(item, generations=item.generations[:2]),)})
    table = parts(transfer.info(framed(few)), Table)[2]
    assert table.note == ""
    rows = [row for _, rows in table.groups for row in rows]
    assert [row[7].interval == "no interval (2 prompts)" for row in rows] == [False, True, False, False]
    assert rows[1][7].text == "ssd 1.25"  # (23 + 22) / (18 + 18), and neither ahead nor behind


def test_one_made_on_several_targets_is_native_to_each_whatever_the_dtype_or_cache():
    both = made_on(0, 1)
    cells = [replace(c, drafter=replace(c.drafter, origins=both)) if c.drafter.kind == "spot" else c for c in CELLS]
    assert all(cell.is_native for cell in cells if cell.drafter.kind == "spot")
    assert transfer.info(framed(sweep(tuple(cells), prompts=2, timed=0))) is None
    (native,) = [c for c in CELLS if (c.target.name, c.drafter.name) == ("tiny-a", "from-tiny-a")]
    assert replace(native, target=replace(native.target, name="other", dtype="bfloat16", cache="none")).is_native
    assert not replace(native, target=replace(native.target, digest="f" * 64)).is_native


def test_one_of_unknown_origin_is_neither_native_nor_transferred():
    cells = tuple(
        replace(c, drafter=replace(c.drafter, origins=())) if c.drafter.name == "from-tiny-b" else c for c in CELLS
    )
    assert {c.is_native for c in cells if c.drafter.name in ("from-tiny-b", "ssd", "none")} == {None}
    table = parts(transfer.info(framed(sweep(cells, prompts=2, timed=0))), Table)[0]
    assert [row[0] for row in texts(table)] == ["from-tiny-a"]


def test_where_a_drafter_was_made_changes_no_cell():
    (native,) = [c for c in CELLS if (c.target.name, c.drafter.name) == ("tiny-a", "from-tiny-a")]
    other = replace(native, drafter=replace(native.drafter, origins=(MadeOn(target="x", digest="y"),)))
    assert other.cell_id == native.cell_id


def test_temperatures_budgets_and_dtypes_are_kept_apart():
    cells = transfers(targets=2, tasks=("tiny-arith",), budgets=(4, 8), temperatures=(0.0, 1.0))
    half = tuple(replace(c, target=replace(c.target, dtype="bfloat16")) for c in cells if c.target.name == "tiny-a")
    info = transfer.info(framed(sweep(cells + half, prompts=3, timed=0)))
    titles = [group.title for group in info.groups]
    assert titles[:4] == ["T = 0, D = 4", "T = 0, D = 8", "T = 1, D = 4", "T = 1, D = 8"]
    heads = [head.name for head in parts(info, Table)[0].heads]
    assert heads[1:] == ["tiny-a, dtype float32", "tiny-b", "tiny-a, dtype bfloat16"]
    warm = transfers(
        targets=2, tasks=("tiny-arith",), budgets=(4,), temperatures=(1.0,), noises=("coupled", "independent")
    )
    titles = [group.title for group in transfer.info(framed(sweep(warm, prompts=3, timed=0))).groups]
    assert titles[:2] == ["T = 1, D = 4, noise coupled", "T = 1, D = 4, noise independent"]


def test_a_broken_baseline_is_the_best_one_only_where_there_is_no_other():
    made = with_nfe(sweep(CELLS, prompts=4, timed=0), NFE)
    graph = next(c.cell_id for c in CELLS if (c.target.name, c.drafter.name) == ("tiny-a", "spiffy"))
    (item,) = made.results[graph]
    wrong = tuple(replace(row, output_ids=(*row.output_ids[:-1], row.output_ids[-1] + 1)) for row in item.generations)
    info = transfer.info(framed(replace(made, results={**made.results, graph: (replace(item, generations=wrong),)})))
    b_on_a = texts(parts(info, Table)[2])[1]
    assert b_on_a[7:] == ["ahead of ssd 1.20"] * 2  # spiffy needs fewer forwards, but its outputs are wrong
    assert "spiffy" not in info.findings[1]
    alone = tuple(cell for cell in CELLS if cell.drafter.kind != "ssd")
    kept = {cell.cell_id: made.results[cell.cell_id] for cell in alone} | {graph: (replace(item, generations=wrong),)}
    jobs = tuple(job for job in made.jobs if job.cell.drafter.kind != "ssd")
    info = transfer.info(framed(replace(made, jobs=jobs, results=kept)))
    assert texts(parts(info, Table)[2])[1][8] == f"open: spiffy {BROKEN} 0.98"
    assert info.findings[1].endswith(f" 1 of 2 comparisons has a cell marked {BROKEN} and is not counted.")
    assert "of 1 transferred pair need fewer forwards than the best of all baselines" in info.findings[1]


def test_a_baseline_that_was_made_elsewhere_or_nobody_knows_where_is_none():
    graph = next(c for c in CELLS if (c.target.name, c.drafter.name) == ("tiny-a", "spiffy"))
    others = tuple(
        replace(graph, drafter=replace(graph.drafter, name=name, digest=name, origins=origins))
        for name, origins in (("elsewhere", made_on(1)), ("unknown", ()))
    )
    few = {("tiny-a", other.drafter.name): (10, 10, 10, 10) for other in others}
    info = transfer.info(framed(with_nfe(sweep(CELLS + others, prompts=4, timed=0), NFE | few)))
    (target, rows), _ = parts(info, Table)[2].groups
    (row,) = [[value.text for value in row] for row in rows if row[0].text == "from-tiny-b"]
    assert target == "tiny-a: lossless"
    assert row[7:] == ["ahead of ssd 1.20", "open: spiffy 0.98"]


def test_seeds_of_one_prompt_are_one_prompt():
    cells = transfers(targets=2, **ONE | {"temperatures": (1.0,)}, seeds=(0, 1))
    made = with_nfe(sweep(cells, prompts=4, timed=0), NFE)  # the same forwards with both seeds
    info = transfer.info(framed(made))
    single = transfer.info(framed(with_nfe(sweep(tuple(c for c in cells if c.seed == 0), prompts=4, timed=0), NFE)))
    both, one = (parts(own, Table)[1] for own in (info, single))
    assert texts(both) == texts(one)
    assert [[v.interval for v in row] for _, rows in both.groups for row in rows] == [
        [v.interval for v in row] for _, rows in one.groups for row in rows
    ]
    assert "; 4 prompts)" in info.findings[0]
    pairs = parts(info, Table)[2]
    row, alone = (
        next(row for row in table.groups[0][1] if row[0].text == "from-tiny-b")
        for table in (pairs, parts(single, Table)[2])
    )
    assert pairs.groups[0][0] == "tiny-a: lossless"
    assert (row[1].text, row[3].text, row[4].text) == ("8", "22.5", "18.0")
    assert [v.interval for v in row[3:5]] == [v.interval for v in alone[3:5]]


def test_options_of_one_artifact_are_told_apart():
    floor = tuple(replace(c, drafter=replace(c.drafter, gamma=0.1)) for c in CELLS if c.drafter.kind == "spot")
    info = transfer.info(framed(sweep(CELLS + floor, prompts=3, timed=0)))
    for table in parts(info, Table)[:2]:
        names = [row[0] for row in texts(table)]
        assert sorted(names) == [f"from-tiny-{x}, gamma {g}" for x in "ab" for g in ("0.0", "0.1")]
    groups = parts(info, Table)[2].groups
    pairs = [(target, row[0].text.removesuffix(", native")) for target, rows in groups for row in rows]
    assert len(set(pairs)) == len(pairs) == 8


def test_control_characters_in_names_are_made_visible_and_long_names_are_cut():
    info = transfer.info(framed(sweep(transfers(targets=2, mark="\x1b<b>" + "x" * 200, **ONE), prompts=2, timed=0)))
    tables = parts(info, Table)[:3]
    names = [text for table in tables for row in texts(table) for text in row[:2]]
    names += [name.partition(": ")[0] for table in tables for name, _ in table.groups]
    assert not any("\x1b" in name or len(name) > 130 for name in names)
