"""LaTeX tables: every special character escaped once, the same number of columns in every row."""

import re
from dataclasses import replace

import pytest

from reports import latex
from reports.labels import labels_of
from sweeps.aggregate import aggregate_all
from tests.synthetic import Faults, grid, sweep

NAMES = ("fast_dllm", "50% & more", "a#b", "x^2", "{y}", "~", "\\cmd", "$5", "数学", "[h] first", "*star")


def rows_of(names):
    made = []
    for cell in grid(tasks=("tiny-arith", "a & b_c"), budgets=(4,), temperatures=(0.0,)):
        if cell.drafter.name == "ssd":
            made += [
                replace(cell, drafter=replace(cell.drafter, name=name, budget=4 + i)) for i, name in enumerate(names)
            ]
        elif cell.is_baseline:
            made.append(cell)
    synthetic = sweep(tuple(made), prompts=3)
    return aggregate_all(synthetic.jobs, synthetic.rows())


def unescaped_ampersands(line):
    return len(re.findall(r"(?<!\\)&", line))


def test_every_row_has_the_same_columns_whatever_the_names():
    results = list(rows_of(NAMES))
    text = latex.table("tiny_sdar, T = 0", results, labels_of(results))
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(body) == 2 + len(NAMES)
    assert unescaped_ampersands(body[0]) == 3  # two multicolumns of three
    assert {unescaped_ampersands(line) for line in body[1:]} == {7}
    assert not any(line.startswith(("[", "*")) for line in body)
    assert r"\caption{tiny\_sdar, T = 0." in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fast_dllm", r"fast\_dllm"),
        ("50% & more", r"50\% \& more"),
        ("a#b", r"a\#b"),
        ("x^2", r"x\textasciicircum{}2"),
        ("{y}", r"\{y\}"),
        ("~", r"\textasciitilde{}"),
        ("\\cmd", r"\textbackslash{}cmd"),
        ("$5", r"\$5"),
        ("数学", "数学"),
        ("[h] first", "{[h] first}"),
        ("plain", "plain"),
    ],
)
def test_each_special_is_escaped_once(name, expected):
    assert latex.escape(name) == expected


def test_names_that_are_not_latin_bring_a_note_on_the_engine():
    assert "XeLaTeX" in latex.note("数学")
    assert "XeLaTeX" not in latex.note("plain")


def test_numbers_are_those_of_the_results():
    results = list(rows_of(("ssd",)))
    text = latex.table("s", results, labels_of(results))
    first = next(r for r in results if not r.cell.is_baseline)
    row = next(line for line in text.splitlines() if line.startswith("ssd"))
    n, reduction, throughput = row.split(" & ")[2:5]
    assert n == str(first.n) == "3"
    for text, estimate in ((reduction, first.nfe_reduction), (throughput, first.throughput.ratio)):
        ends = rf"{{\scriptsize [{estimate.low:.2f}, {estimate.high:.2f}]}}"
        assert text == f"{estimate.value:.2f} " + ends


def test_a_broken_claim_a_failed_gate_and_missing_prompts_are_marked_and_explained():
    made = sweep(grid(budgets=(4,), temperatures=(0.0,)), prompts=8, faults=Faults(bugs=1, missing=2, noisy=True))
    results = [result for result in aggregate_all(made.jobs, made.rows()) if not result.cell.is_baseline]
    assert all(result.claim_holds is False and result.throughput.doubts for result in results)
    text = latex.table("s", results, labels_of(results))
    rows = [line for line in text.splitlines() if line.startswith(("ssd", "spot"))]
    assert len(rows) == 3
    for row in rows:
        name, _, *numbers = row.removesuffix(r" \\").split(" & ")
        assert name.endswith(latex.BROKEN)
        assert [text for text in numbers if " of " in text] == ["6 of 8", "6 of 8"]
        assert [latex.BROKEN in text for text in numbers] == [False, True, True] * 2
        assert [latex.GATE in text for text in numbers] == [False, False, True] * 2
    caption = next(line for line in text.splitlines() if line.startswith(r"\caption"))
    assert f"{latex.BROKEN}: a claim of identity did not hold" in caption
    assert f"{latex.GATE}: the timing failed a gate." in caption


def test_sound_cells_have_no_mark_and_their_column_is_called_what_it_holds():
    results = list(rows_of(("ssd",)))
    text = latex.table("s", results, labels_of(results))
    assert latex.BROKEN not in text
    assert "NFE &" not in text
    assert text.count("NFE reduction &") == 2
