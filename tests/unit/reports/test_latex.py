"""LaTeX tables: every special character escaped once, the same number of columns in every row."""

import re
from dataclasses import replace

import pytest

from reports import latex
from reports.labels import labels_of
from sweeps.aggregate import aggregate_all
from tests.synthetic import grid, sweep

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
    assert unescaped_ampersands(body[0]) == 3  # two multicolumns of two
    assert {unescaped_ampersands(line) for line in body[1:]} == {5}
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
    assert row.split(" & ")[2] == f"{first.nfe_reduction.value:.2f}"
    assert row.split(" & ")[3] == f"{first.throughput.ratio.value:.2f}"
