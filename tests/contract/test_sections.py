"""Every section of the table, over whole, faulty, empty and hostile runs: what all of them owe a reader."""

import re
from dataclasses import fields, is_dataclass

import pytest

from reports.model import Chart, Lines, SectionInfo, Table
from reports.render import environment, function
from reports.sections import SECTIONS
from tests.pages import Page
from tests.set_rows import by_rule, rungs, set_cells
from tests.synthetic import HOSTILE, Faults, cached, grid, sweep
from tests.transfers import transfers
from tests.unit.reports.conftest import framed

ONE = {"tasks": ("tiny-arith",), "budgets": (8,), "temperatures": (0.0,)}
HOT = {**ONE, "temperatures": (0.0, 0.5, 2.0, 3.0), "noises": ("coupled", "independent")}


def ruled(mark="", temperatures=(0.0,), noises=("coupled",)):
    """Cells of one drafter under all rules of acceptance, by two taus and two budgets, and the standard rule."""
    bases = grid(tasks=("tiny-arith",), budgets=(8,), temperatures=temperatures, noises=noises, mark=mark)
    return tuple(
        cell
        for base in bases
        if base.is_baseline
        for cell in set_cells(base, taus=(0.7, 0.95), budgets=(4, 8), drafters=by_rule(f"sets{mark}"))
    )


def laddered(mark=""):
    """A ladder on two tasks by two taus."""
    bases = grid(budgets=(8,), temperatures=(0.0,), mark=mark)
    return tuple(
        cell for base in bases if base.is_baseline for cell in set_cells(base, taus=(0.9, 0.95), drafters=rungs())
    )


RUNS = {
    "clean": lambda: sweep(grid(), prompts=4),
    "one budget": lambda: sweep(grid(**ONE), prompts=4),
    "faulty": lambda: sweep(grid(), faults=Faults(failed=1, missing=1, near_ties=1, bugs=1, empty_cells=3, noisy=True)),
    "nothing decoded": lambda: sweep(grid(**ONE), prompts=4, faults=Faults(missing=4), timed=0),
    "everything failed": lambda: sweep(grid(**ONE), prompts=4, faults=Faults(failed=4), timed=0),
    "only draft-free": lambda: sweep(grid(**ONE)[:1], prompts=2),
    "one prompt": lambda: sweep(grid(**ONE), prompts=1, timed=1, repeats=1),
    "an empty answer": lambda: sweep(grid(), prompts=4, faults=Faults(empty=1)),
    "all but one are empty": lambda: sweep(grid(), prompts=4, timed=4, faults=Faults(empty=3)),
    "all answers are empty": lambda: sweep(grid(**HOT), prompts=4, studied=2, faults=Faults(empty=4)),
    "one prompt, empty": lambda: sweep(grid(oracles=True), prompts=1, timed=1, repeats=1, faults=Faults(empty=1)),
    "empty and timed alone": lambda: sweep(grid(**ONE), prompts=8, timed=2, faults=Faults(empty=2)),
    "hostile": lambda: sweep(grid(**ONE, mark=HOSTILE[3]), prompts=7, faults=Faults(hostile=True, failed=2, bugs=1)),
    "oracles": lambda: sweep(grid(oracles=True, budgets=(4, 8), gammas=()), prompts=4),
    "faulty oracles": lambda: sweep(
        grid(oracles=True, mark=HOSTILE[3], **ONE), prompts=4, faults=Faults(failed=1, bugs=1, empty_cells=3)
    ),
    "studied": lambda: sweep(grid(**ONE | {"temperatures": (0.0, 1.0)}), prompts=2, timed=0, studied=6),
    "study with faults": lambda: sweep(
        grid(**ONE, mark=HOSTILE[3]), prompts=4, studied=4, faults=Faults(failed=1, missing=2, hostile=True)
    ),
    "nothing studied": lambda: sweep(grid(**ONE), prompts=3, timed=0, studied=3, faults=Faults(failed=3)),
    "approximate caches": lambda: sweep(cached(grid(**HOT), "dual", "prefix"), prompts=4, timed=0),
    "caches with faults": lambda: sweep(
        cached(grid(**ONE, mark=HOSTILE[3]), "dual"), prompts=6, uncached=4, faults=Faults(failed=1, missing=3, bugs=1)
    ),
    "caches, not measured": lambda: sweep(cached(grid(**ONE), "dual"), prompts=3, uncached=0),
    "caches beside none": lambda: sweep(
        (*grid(**ONE), *cached(grid(**ONE), "dual"), *(cell.uncached() for cell in cached(grid(**ONE)[:1], "dual"))),
        prompts=2,
        timed=0,
    ),
    "temperatures and noise": lambda: sweep(grid(**HOT), prompts=3, timed=0),
    "sizes": lambda: sweep(grid(targets=2, gammas=(), **ONE), prompts=4, timed=3),
    "sizes with faults": lambda: sweep(
        grid(targets=3, mark=HOSTILE[3], budgets=(4, 8)),
        prompts=4,
        faults=Faults(failed=1, bugs=1, empty=1, noisy=True),
    ),
    "sizes, one prompt": lambda: sweep(grid(targets=2, seeds=(0, 1), **ONE), prompts=1, timed=1, repeats=1),
    "transfers": lambda: sweep(transfers(budgets=(8,)), prompts=4, timed=0),
    "faulty transfers": lambda: sweep(
        transfers(mark=HOSTILE[3], **ONE), prompts=4, timed=0, faults=Faults(failed=1, bugs=1, empty_cells=5)
    ),
    "nothing of a transfer decoded": lambda: sweep(transfers(**ONE), prompts=4, timed=0, faults=Faults(missing=4)),
    "rules of acceptance": lambda: sweep(ruled(), prompts=4, timed=3),
    "rules, sampled": lambda: sweep(
        ruled(temperatures=(0.0, 1.0), noises=("coupled", "independent")), prompts=4, timed=0
    ),
    "faulty rules": lambda: sweep(
        ruled(mark=HOSTILE[3]), prompts=5, faults=Faults(failed=1, bugs=1, empty=1, empty_cells=3, noisy=True)
    ),
    "nothing of the rules decoded": lambda: sweep(ruled(), prompts=4, faults=Faults(missing=4), timed=0),
    "a ladder": lambda: sweep(laddered(), prompts=6),
    "a faulty ladder": lambda: sweep(
        laddered(mark=HOSTILE[3]), prompts=5, faults=Faults(failed=1, near_ties=1, bugs=1, empty_cells=2, noisy=True)
    ),
    "one rung, one prompt": lambda: sweep(laddered()[:3], prompts=1, timed=1, repeats=1),
    "standard and threshold alone": lambda: sweep(laddered()[:2], prompts=4),
    "seeds and targets": lambda: sweep(grid(targets=2, seeds=(0, 1), **ONE), prompts=3, timed=0),
}


@pytest.fixture(scope="module", params=RUNS)
def frames(request):
    return framed(RUNS[request.param](), title=HOSTILE[0])


@pytest.mark.parametrize("reference", SECTIONS)
def test_a_section_is_plain_frozen_data_or_nothing(reference, frames):
    info = function(reference)(frames)
    assert info is None or isinstance(info, SectionInfo)
    for value in leaves(info):
        assert value is None or isinstance(value, str | int | float | bool), type(value)
        if isinstance(value, str):
            assert value != "None"
            assert not re.search(r"\b(nan|inf)\b", value), value
        if isinstance(value, float):
            assert value - value == 0, "neither NaN nor infinity"


@pytest.mark.parametrize("reference", SECTIONS)
def test_a_section_is_the_same_for_the_same_frames(reference, frames):
    assert function(reference)(frames) == function(reference)(frames)


@pytest.mark.parametrize("reference", SECTIONS)
def test_tables_have_rows_and_charts_have_points(reference, frames):
    info = function(reference)(frames)
    for part in (part for group in (info.groups if info else ()) for part in group.parts):
        if isinstance(part, Table):
            assert any(rows for _, rows in part.groups), part.caption
        if isinstance(part, Chart):
            assert part.points
            assert {point.series for point in part.points} <= set(part.series)


@pytest.mark.parametrize("reference", SECTIONS)
def test_no_text_of_a_section_becomes_markup(reference, frames, monkeypatch):
    monkeypatch.setattr("reports.charts.svg", lambda chart: "")
    info = function(reference)(frames)
    html = environment().get_template("report.html.j2").render(title="t", name="n", sections=[info] if info else [])
    page = Page(html)
    assert page.open == []
    assert {"script", "img", "svg", "b"} & set(page.tags) == set()
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


@pytest.mark.parametrize("reference", SECTIONS)
def test_a_finding_is_a_sentence_of_its_section(reference, frames):
    info = function(reference)(frames)
    parts = [part for group in (info.groups if info else ()) for part in group.parts if isinstance(part, Lines)]
    said = [text for part in parts for _, text in part.lines]
    for finding in info.findings if info else ():
        assert any(finding.endswith(text) for text in said), finding


def test_keys_are_unique(frames):
    keys = [info.key for reference in SECTIONS if (info := function(reference)(frames)) is not None]
    assert len(set(keys)) == len(keys)
    assert {"summary", "results", "provenance"} <= set(keys)


def leaves(value):
    if is_dataclass(value):
        assert type(value).__dataclass_params__.frozen
        for field in fields(value):
            yield from leaves(getattr(value, field.name))
    elif isinstance(value, tuple):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value
