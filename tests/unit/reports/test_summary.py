"""The summary answers the question of the sweep: what studies found first, then methods, rivals and throughput."""

from dataclasses import replace

import pytest

from reports.labels import labels_of
from reports.method_findings import forwards_findings, throughput_findings
from reports.model import Lines
from reports.render import infos, page
from reports.sections import order_study, summary, temperature
from reports.temperature_findings import PAPER
from sweeps.statistics import Estimate
from tests.pages import Page
from tests.synthetic import Faults, grid, sweep
from tests.unit.reports.conftest import framed

ONE = {"tasks": ("tiny-arith",), "budgets": (8,), "temperatures": (0.0,)}


def groups_of(frames):
    """The summary's groups between the checks and what was run."""
    return next(info for info in infos(frames) if info.key == "summary").groups[1:-1]


def texts(group):
    (part,) = group.parts
    assert isinstance(part, Lines)
    return [text for _, text in part.lines]


def lines_of(frames, key):
    """All sentences of a section."""
    section = next(info for info in infos(frames) if info.key == key)
    return [text for group in section.groups for part in group.parts if part.kind == "lines" for _, text in part.lines]


@pytest.mark.parametrize(
    ("made", "key"),
    [
        (lambda: sweep(grid(oracles=True, gammas=(), **ONE), prompts=4, timed=0), "oracles"),
        (lambda: sweep(grid(gammas=(), **ONE), prompts=4, timed=0, studied=4), "order-study"),
        (lambda: sweep(grid(**ONE), prompts=4, timed=0), "beyond"),
        (
            lambda: sweep(grid(gammas=(), **{**ONE, "temperatures": (0.0, 0.5, 2.0)}), prompts=4, timed=0),
            "temperature",
        ),
    ],
)
def test_what_a_study_found_is_said_first_and_leads_to_its_section(made, key):
    frames = framed(made())
    first, *_, last = groups_of(frames)
    assert first.link == key
    assert 0 < len(texts(first)) <= summary.MOST_OF_A_STUDY
    assert all(any(said == text for said in lines_of(frames, key)) for text in texts(first))
    assert (last.title, last.link) == ("Methods", "results")
    assert f"#{key}" in [value for tag, name, value in Page(page(frames)).attributes if (tag, name) == ("a", "href")]


def test_studies_stand_in_the_order_of_the_page_and_the_paper_is_no_finding():
    cells = grid(oracles=True, **{**ONE, "temperatures": (0.0, 0.5, 2.0)})
    frames = framed(sweep(cells, prompts=4, timed=0, studied=4))
    links = [group.link for group in groups_of(frames)]
    assert links == ["oracles", "order-study", "temperature", "beyond", "results"]
    said = [text for info in infos(frames) for text in info.findings]
    assert said
    assert not {PAPER, order_study.PAPER} & set(said)
    assert PAPER in lines_of(frames, "temperature")
    assert len(temperature.info(frames).findings) > 1


def test_findings_are_few_and_what_is_left_out_is_said():
    cells = grid(**{**ONE, "temperatures": (0.0, 0.5, 1.0, 2.0), "tasks": ("a", "b")}, gammas=())
    frames = framed(sweep(cells, prompts=4, timed=0))
    (study, methods) = groups_of(frames)
    assert study.link == "temperature"
    assert len(texts(methods)) == summary.MOST_BESIDE_STUDIES
    section = next(info for info in infos(frames) if info.key == "summary")
    assert f"{8 - summary.MOST_BESIDE_STUDIES} more findings: see Results" in section.cuts
    alone = summary.info(frames)
    assert len(texts(alone.groups[1])) == summary.MOST_METHODS


def sums(frames, name):
    """Forwards of all prompts of a drafter."""
    (cell_id,) = [result.cell_id for result in frames.results if result.cell.drafter.name == name]
    return sum(row.counters.nfe for row in frames.rows[cell_id].generations.values())


def test_the_best_method_is_held_against_draft_free_and_its_best_rival():
    frames = framed(sweep(grid(**ONE), timed=0))
    (text,) = forwards_findings(frames, labels_of(frames.results))
    free, ssd, best = (sums(frames, name) for name in ("none", "ssd", "spot-gamma"))
    assert best < sums(frames, "spot") < ssd
    assert text.startswith(f"tiny-sdar, T = 0, tiny-arith: spot-gamma at D = 8 needs {free / best:.2f} times fewer")
    # the same drafter with another option is no rival
    assert f"and {ssd / best:.2f} times fewer forwards than the best rival at that budget, ssd (" in text
    assert text.count("16 prompts") == 2


def test_a_lead_within_the_interval_is_called_doubtful():
    frames = framed(sweep(grid(**ONE, gammas=()), prompts=2, timed=0))
    (text,) = forwards_findings(frames, labels_of(frames.results))
    assert "That it needs fewer than the best rival at that budget, ssd, is not beyond doubt: NFE ratio " in text
    assert "no interval: fewer than 3 prompts; 2 prompts" in text


def test_one_method_alone_has_no_rival():
    frames = framed(sweep(grid(**ONE, gammas=())[:2], timed=0))
    (text,) = forwards_findings(frames, labels_of(frames.results))
    assert "rival" not in text


def timed(ratios, **options):
    """Frames whose drafters have these throughput ratios: (value, low, high), by name."""
    frames = framed(sweep(grid(**ONE, gammas=()), timed=4, **options))
    results = []
    for result in frames.results:
        if result.cell.drafter.name in ratios:
            value, low, high = ratios[result.cell.drafter.name]
            ratio = Estimate(value=value, low=low, high=high, n=4)
            result = replace(result, throughput=replace(result.throughput, ratio=ratio))
        results.append(result)
    return replace(frames, results=tuple(results))


def speeds(frames):
    return throughput_findings(frames, labels_of(frames.results))


def test_no_winner_is_named_where_none_is_faster_beyond_its_interval():
    (text,) = speeds(timed({"ssd": (0.78, 0.5, 1.23), "spot": (0.6, 0.5, 0.7)}))
    assert text == (
        "No method is faster than draft-free decoding beyond its interval: highest is 0.78 times the throughput of "
        "draft-free decoding (0.50 – 1.23; 4 prompts), of ssd at D = 8 (tiny-sdar, T = 0, tiny-arith)."
    )
    (text,) = speeds(timed({"ssd": (1.5, None, None), "spot": (0.6, 0.5, 0.7)}))
    assert text.startswith("No method is faster")


def test_a_method_that_is_faster_beyond_its_interval_is_named_although_a_doubtful_ratio_is_higher():
    (text,) = speeds(timed({"ssd": (2.0, 0.9, 4.4), "spot": (1.5, 1.2, 1.9)}))
    assert text == (
        "tiny-sdar, T = 0, tiny-arith: spot at D = 8 has 1.50 times the throughput of draft-free decoding "
        "(1.20 – 1.90; 4 prompts), beyond its interval."
    )


def test_timings_that_failed_their_gates_say_nothing():
    assert speeds(timed({}, faults=Faults(noisy=True))) == [
        "No timing passed its gates: nothing is said of throughput."
    ]
    assert speeds(framed(sweep(grid(**ONE), timed=0))) == []
    frames = timed({"ssd": (0.78, 0.5, 1.23), "spot": (3.0, 2.0, 4.0)})
    doubted = replace(frames.results[2], throughput=replace(frames.results[2].throughput, doubts=("noise",)))
    (text,) = speeds(replace(frames, results=(*frames.results[:2], doubted)))
    assert text.startswith("No method is faster")
    assert text.endswith("1 of 2 timings failed a gate and are left out.")
