"""The section on approximate caches, and what of it stands elsewhere: beside claims, in the summary, among gaps."""

import csv
import io
import json
from dataclasses import replace

import pytest

from reports import latex, marks
from reports.export import chosen, encoded
from reports.labels import labels_of
from reports.render import function
from reports.sections import SECTIONS, approximate, gaps, headline, identity, summary
from reports.uncached import METHOD, all_labels
from sweeps.merge import Alarm
from tests.synthetic import Faults, cached, draft_free, grid, sweep
from tests.unit.reports.conftest import framed

ONE = {"tasks": ("tiny-arith",), "budgets": (8,), "temperatures": (0.0,), "gammas": ()}
CELLS = cached(grid(**ONE), "dual", "prefix")


def tables(info):
    return [part for group in info.groups for part in group.parts if part.kind == "table"]


def texts(table):
    return [[value.text for value in row] for _, rows in table.groups for row in rows]


def lines(info):
    return [text for group in info.groups for part in group.parts if part.kind == "lines" for _, text in part.lines]


@pytest.fixture(scope="module")
def frames():
    return framed(sweep(CELLS, prompts=6, timed=0))


def test_a_row_a_cache_with_the_numbers_of_the_rows(frames):
    changes, saves = tables(approximate.info(frames))
    uncached = [draft_free(CELLS[0].uncached(), index) for index in range(6)]
    for kind, change, save in zip(("dual", "prefix"), texts(changes), texts(saves), strict=True):
        (free,) = [cell for cell in CELLS if cell.is_baseline and cell.target.cache == kind]
        own = [draft_free(free, index) for index in range(6)]
        equal = [
            [a == b for a, b in zip(x.output_ids, y.output_ids, strict=True)]
            for x, y in zip(own, uncached, strict=True)
        ]
        shares = [sum(row[: x.tokens_kept]) / x.tokens_kept for row, x in zip(equal, own, strict=True)]
        places = sorted(row.index(False) for row in equal if not all(row))
        assert [row[0].count(kind) for row in (change, save)] == [2, 2]  # in the target's name, and as its cache
        assert change[2:5] == ["exact given the cache", "12/12 ✓", "6"]
        assert change[5] == f"{100 * sum(map(all, equal)) / 6:.1f}" == "66.7"
        assert change[6] == f"{100 * sum(shares) / 6:.1f}"
        assert change[7] == f"{sum(places) / 2:g}"
        assert save[2] == save[3] == f"{sum(x.counters.nfe for x in own) / 6:.1f}"
        assert save[4] == f"{sum(x.counters.positions for x in own) / 6:,.0f}"
        assert save[5] == f"{sum(x.counters.positions for x in uncached) / 6:,.0f}"
        right, plain = (sum(x.correct for x in side) for side in (own, uncached))
        assert save[7:] == [f"{100 * right / 6:.1f}", f"{100 * plain / 6:.1f}", f"{100 * (right - plain) / 6:+.1f}"]


def test_references_are_no_methods_anywhere(frames):
    assert len(frames.references) == 1
    reference = frames.references[0].cell_id
    assert reference not in {result.cell_id for result in frames.results}
    assert reference not in labels_of(frames.results).setting
    for table in tables(headline.info(frames)):
        assert not any("none" in row[0] or METHOD in row[0] for row in texts(table))
    facts = dict(summary.facts(frames))
    assert facts["Cells"] == "4 with drafts, 2 draft-free"
    assert facts["Prompts"].startswith("36 decoded")
    assert "All 6 cells and 1 uncached reference are complete." in lines(summary.info(frames))


def test_the_rate_stands_beside_every_claim_in_words(frames):
    for table in tables(headline.info(frames)):
        kind = "dual" if "dual" in table.caption else "prefix"
        claims = [row[8] for row in texts(table)]
        assert claims == [f"exact given the cache ({kind}; 4/6 equal uncached)"] * 3
    assert "Given the cache: the claim is about decoding with the same approximate cache" in headline.info(frames).lead
    said = [text for text in lines(summary.info(frames)) if "not lossless" in text]
    assert said == [
        f"{kind}-tiny-sdar, {kind} cache: claims are exact given this cache, not lossless; "
        "4 of 6 draft-free outputs equal decoding without a cache."
        for kind in ("dual", "prefix")
    ]


def test_exact_caches_say_nothing_of_it():
    frames = framed(sweep(grid(**ONE), prompts=2, timed=0))
    assert approximate.info(frames) is None
    assert {row[8] for table in tables(headline.info(frames)) for row in texts(table)} == {"lossless"}
    assert "Given the cache" not in headline.info(frames).lead
    assert not any("cache" in text for text in lines(summary.info(frames)))


def test_what_was_not_measured_is_said():
    frames = framed(sweep(CELLS, prompts=2, timed=0, uncached=0))
    (changes,) = tables(approximate.info(frames))
    assert [row[4:] for row in texts(changes)] == [["not measured", "–", "–", "–"]] * 2
    assert all("was not measured" in text for text in lines(approximate.info(frames)))
    claims = {row[8] for table in tables(headline.info(frames)) for row in texts(table)}
    assert claims == {f"exact given the cache ({kind}; uncached: not measured)" for kind in ("dual", "prefix")}


def test_a_broken_promise_under_the_same_cache_is_crossed_here_too():
    frames = framed(sweep(CELLS, prompts=4, timed=0, faults=Faults(bugs=1)))
    changes, _ = tables(approximate.info(frames))
    assert [row[3] for row in texts(changes)] == ["6/8 ✗"] * 2
    broken = [result for result in frames.results if not result.cell.is_baseline]
    assert all(marks.claim(result).text.startswith("exact given the cache ✗ (") for result in broken)


def test_a_reference_that_is_incomplete_or_contradicts_itself_is_named():
    frames = framed(sweep(CELLS, prompts=4, timed=0, faults=Faults(missing=1)))
    (row,) = [row for row in texts(tables(gaps.info(frames))[0]) if row[2].startswith(METHOD)]
    assert row[1:8] == ["tiny-arith", METHOD, "–", "4", "3", "0", "1"]
    assert any("7 prompts of 7 cells not run yet" in text for text in lines(summary.info(frames)))
    alarm = Alarm(kind="counts do not add up", message="prompt 0", prompt_id="p")
    bad = replace(frames, references=(replace(frames.references[0], alarms=(alarm,)),))
    contradicting = tables(identity.info(bad))[-1]
    assert texts(contradicting)[0][1:4] == ["tiny-arith", f"{METHOD} ✗ (3 of 4)", "counts do not add up"]
    assert "counts do not add up: 1 time." in lines(summary.info(bad))
    assert all_labels(frames).setting[frames.references[0].cell_id] == "dual-tiny-sdar, T = 0, approximate cache dual"


def test_latex_captions_name_the_cache(frames):
    labels = labels_of(frames.results)
    for setting, results in labels.by_setting(frames.results):
        kind = results[0].cell.target.cache
        made = latex.table(setting, results, labels)
        assert (
            f"Decoded with an approximate cache ({kind}): exact given that cache. "
            "4 of 6 draft-free outputs equal decoding without a cache.}" in made
        )
    exact = framed(sweep(grid(**ONE), prompts=2, timed=0))
    assert "cache" not in latex.table("s", list(exact.results), labels_of(exact.results))


@pytest.mark.parametrize("reference", [name for name in SECTIONS if ".approximate:" not in name])
def test_no_section_shows_such_a_claim_without_the_rate(reference):
    cells = cached(grid(**{**ONE, "temperatures": (0.0, 0.5, 2.0), "noises": ("coupled", "independent")}), "dual")
    info = function(reference)(framed(sweep(cells, prompts=3, timed=0)))
    for row in (row for table in tables(info) for row in texts(table)) if info else ():
        for text in row:
            measured = ("(dual; 2/3 equal uncached)", "(dual; uncached: not comparable)")
            assert not text.startswith("exact given the cache") or text.endswith(measured)
            assert not text.startswith("distribution-exact") or text.endswith("(given the dual cache)")


def test_the_section_and_every_export_row_say_what_a_claim_of_the_distribution_is_given():
    cells = cached(grid(**{**ONE, "temperatures": (1.0,), "noises": ("independent",)}), "dual", "prefix")
    frames = framed(sweep(cells, prompts=3, timed=0))
    claims = [row[2] for row in texts(tables(approximate.info(frames))[0])]
    assert claims == [f"distribution-exact (given the {kind} cache)" for kind in ("dual", "prefix")]
    for format in ("csv", "json"):
        text = encoded(chosen(frames, "cells"), format).decode()
        exported = json.loads(text) if format == "json" else list(csv.DictReader(io.StringIO(text)))
        drafted = [row for row in exported if row["claim"] == "distribution-exact"]
        assert [row["cache"] for row in drafted] == ["dual"] * 2 + ["prefix"] * 2
        assert all(str(row["exact_cache"]).lower() == "false" for row in drafted)


def test_a_caption_promises_nothing_that_independent_noise_does_not():
    cells = cached(grid(**{**ONE, "temperatures": (1.0,), "noises": ("independent",)}), "dual")
    frames = framed(sweep(cells, prompts=2, timed=0))
    made = latex.table("s", list(frames.results), labels_of(frames.results))
    assert made.splitlines()[1].endswith("Decoded with an approximate cache (dual).}")


def test_a_setting_names_its_approximate_cache_even_where_all_cells_have_the_same():
    dual = cached(grid(**ONE), "dual")
    labels = labels_of(framed(sweep(dual, prompts=1, timed=0)).results)
    assert set(labels.setting.values()) == {"dual-tiny-sdar, T = 0, approximate cache dual"}
    plain = tuple(replace(cell, target=replace(cell.target, cache="none", exact_cache=True)) for cell in dual)
    labels = labels_of(framed(sweep(dual + plain, prompts=1, timed=0)).results)
    assert set(labels.setting.values()) == {
        "dual-tiny-sdar, T = 0, approximate cache dual",
        "dual-tiny-sdar, T = 0",
    }
