"""Acceptance as an axis: what it multiplies, what is refused and why, identities, denominators, misspelt names."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.tables import built_in_tables
from sweeps.cell import ID_VERSION, NO_DRAFTER, VERIFICATION_IDENTITY, Cell, drafter_identity
from sweeps.expand import Expansion, expand
from sweeps.facts import Artifact, Facts
from sweeps.load import load_sweep
from sweeps.source import SweepError
from sweeps.spec import Acceptance, DecodeSpec, DrafterSpec, SweepSpec, TargetSpec, TaskSpec
from tests import sweep_files
from tests.sweep_files import BASE

BUILT_IN = built_in_tables().drafters
CROSSING = replace(BUILT_IN["freedave"], uses=(*BUILT_IN["freedave"].uses, "cross_block", "refresh"))
TABLES = replace(sweep_files.TABLES, drafters={**BUILT_IN, "crossing": CROSSING})
SETS = Artifact(path="/graphs/sets", digest="a" * 64, block_length=32, commit="threshold", tau=0.9)
RULES = get_args(Acceptance)
THRESHOLD = BASE + "  commit: threshold\n"


def load(folder: Path, text: str) -> SweepSpec:
    (folder / "s.yaml").write_text(text)
    return load_sweep(folder / "s.yaml", (), TABLES)


def expanded(folder: Path, text: str, cache: str = "exact") -> Expansion:
    """The cells of a sweep whose targets have this kind of cache."""
    spec = load(folder, text)
    exact = cache in ("exact", "none")
    spec = replace(spec, targets=tuple(replace(t, cache=cache, exact_cache=exact) for t in spec.targets))
    facts = Facts(kinds=TABLES.drafters, max_positions={"small": 512}, artifacts={("small", "spiffy"): SETS})
    return expand(spec, facts)


def rows(expansion: Expansion) -> list[tuple[str, str, bool]]:
    cells = [labelled.cell for labelled in expansion.cells if not labelled.cell.is_baseline]
    return [(cell.drafter.name, cell.drafter.acceptance, cell.drafter.max_commit) for cell in cells]


def test_it_multiplies_only_drafters_that_use_it(tmp_path: Path) -> None:
    text = BASE + "  drafter: [none, ssd, freedave, spiffy]\n  commit: [standard, threshold]\n"
    found = expanded(tmp_path, text + "  acceptance: [exact, product]\n")
    assert [(c.cell.drafter.name, c.cell.decode.commit, c.cell.drafter.acceptance) for c in found.cells] == [
        ("none", "standard", "exact"),
        ("ssd", "standard", "exact"),
        ("freedave", "standard", "exact"),
        ("none", "threshold", "exact"),
        ("freedave", "threshold", "exact"),
        ("freedave", "threshold", "product"),
        ("spiffy", "threshold", "exact"),
        ("spiffy", "threshold", "product"),
    ]


def test_under_the_standard_rule_it_is_refused_with_a_reason(tmp_path: Path) -> None:
    found = expanded(tmp_path, BASE + "  drafter: freedave\n  acceptance: [exact, subset, cut, product]\n")
    assert rows(found) == [("freedave", "exact", False)]
    assert [(d.axes, d.reason) for d in found.dropped] == [
        (
            {"drafter": "freedave", "commit": "standard", "acceptance": rule},
            f"the rule {rule} accepts steps of threshold decoding, and the standard rule has none",
        )
        for rule in RULES[1:]
    ]


def test_a_drafters_own_entry_stays_as_it_is_and_an_absent_axis_leaves_each_its_own(tmp_path: Path) -> None:
    entries = "drafters: {sure: {kind: freedave, acceptance: product, max_commit: true}}\n"
    text = THRESHOLD + "  drafter: [sure, freedave]\n"
    assert rows(expanded(tmp_path, text + entries)) == [("sure", "product", True), ("freedave", "exact", False)]
    found = rows(expanded(tmp_path, text + "  acceptance: [exact, cut]\n" + entries))
    assert found == [("sure", "product", True), ("freedave", "exact", False), ("freedave", "cut", False)]


def test_max_commit_under_exact_is_the_same_work_as_without(tmp_path: Path) -> None:
    entries = "drafters: {most: {kind: freedave, max_commit: true}}\n"
    found = expanded(tmp_path, THRESHOLD + "  drafter: [freedave, most]\n  acceptance: [exact, product]\n" + entries)
    assert rows(found) == [
        ("freedave", "exact", False),
        ("freedave", "product", False),
        ("most", "product", True),
    ]
    assert "most: the same work as freedave (listed once, under that name)" in found.notes


def test_with_a_verify_margin_it_is_refused(tmp_path: Path) -> None:
    entries = "drafters: {safe: {kind: freedave, verify_margin: 0.1}}\n"
    found = expanded(tmp_path, THRESHOLD + "  drafter: safe\n  acceptance: [exact, product]\n" + entries)
    assert rows(found) == [("safe", "exact", False)]
    reason = "a verify_margin gives the draft-free output, which the rule product does not keep"
    assert [(d.axes, d.reason) for d in found.dropped] == [({"drafter": "safe", "acceptance": "product"}, reason)]
    for option, message in (("acceptance: cut", "acceptance is 'cut'"), ("cross_block: true", "cross_block is True")):
        kind = "freedave" if "acceptance" in option else "crossing"
        text = f"drafters: {{odd: {{kind: {kind}, verify_margin: 0.1, {option}}}}}\n"
        with pytest.raises(ValueError, match=f"{message}: allowed is .* with a verify_margin"):
            load(tmp_path, THRESHOLD + "  drafter: odd\n" + text)


@pytest.mark.parametrize("cache", ["exact", "dual", "prefix", "none"])
def test_cross_block_needs_an_exact_cache(tmp_path: Path, cache: str) -> None:
    """A whole-sequence target without a cache is exact, and has no block-causal attention to cross by."""
    entries = "drafters: {crossing: {cross_block: true, refresh: true}}\n"
    found = expanded(tmp_path, THRESHOLD + "  drafter: [freedave, crossing]\n" + entries, cache)
    names = [name for name, _, _ in rows(found)]
    if cache == "exact":
        assert (names, found.dropped) == (["freedave", "crossing"], ())
    else:
        assert names == ["freedave"]
        reason = "cross_block needs block-causal attention with an exact cache, and small has no such cache"
        assert [(d.axes, d.reason) for d in found.dropped] == [({"target": "small", "drafter": "crossing"}, reason)]


def test_refresh_without_cross_block_is_refused(tmp_path: Path) -> None:
    text = THRESHOLD + "  drafter: crossing\ndrafters: {crossing: {refresh: true}}\n"
    with pytest.raises(ValueError, match="refresh is True: allowed is false without cross_block"):
        load(tmp_path, text)


def test_rules_may_be_excluded(tmp_path: Path) -> None:
    text = THRESHOLD + "  drafter: [freedave, spiffy]\n  acceptance: [exact, subset, product]\n"
    text += "exclude:\n  - {acceptance: subset}\n  - {drafter: spiffy, acceptance: [product, cut]}\n"
    found = expanded(tmp_path, text)
    assert [row[:2] for row in rows(found)] == [("freedave", "exact"), ("freedave", "product"), ("spiffy", "exact")]
    assert [(d.reason, d.count) for d in found.dropped] == [("exclude[0]", 2), ("exclude[1]", 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  acceptance: produkt\n", r"grid\.acceptance is 'produkt'.*did you mean product\?"),
        ("  acceptence: product\n", r"unknown key grid\.acceptence.*did you mean.*acceptance"),
        ("  acceptance: []\n", r"grid\.acceptance is an empty list: give at least one value"),
        ("exclude: {acceptance: prodct}\n", r"prodct.*product"),
        ("exclude: {acceptence: product}\n", r"acceptence.*acceptance"),
        ("drafters: {freedave: {acceptance: exakt}}\n", r"acceptance is 'exakt'.*exact"),
        ("drafters: {freedave: {max_commits: true}}\n", r"max_commits.*max_commit"),
        ("drafters: {ssd: {acceptance: product}}\n", r"drafters\.ssd\.acceptance: ssd does not use it"),
        ("drafters: {freedave: {cross_block: true}}\n", r"freedave\.cross_block: freedave does not use it"),
    ],
)
def test_a_misspelt_name_or_value_is_refused_with_the_nearest(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SweepError, match=message):
        load(tmp_path, THRESHOLD + "  drafter: freedave\n" + text)


def cell(drafter: DrafterSpec, **decode: Any) -> Cell:
    target, task = TargetSpec(name="t", digest="d"), TaskSpec(name="k", kind="k")
    return Cell(target=target, task=task, decode=DecodeSpec(**decode), drafter=drafter)


def drafter(**options: Any) -> DrafterSpec:
    return DrafterSpec(name="d", kind="freedave", **options)


def test_ids_of_before_there_was_a_choice_are_what_they_were() -> None:
    """The ids were written down by the version before acceptance came."""
    assert ID_VERSION == 3
    assert cell(NO_DRAFTER).cell_id == "6833be9ef6c3bac56bed"
    assert cell(NO_DRAFTER, commit="threshold", tau=0.9).cell_id == "0aa4d7c37152c94063a6"
    assert cell(drafter()).cell_id == "f0f9c528dabe6f67c1c3"
    assert cell(drafter(), commit="threshold", tau=0.9).cell_id == "c9eb8e86a1c2971ee4f9"
    assert not set(VERIFICATION_IDENTITY) & set(drafter_identity(drafter()))


def test_every_way_to_verify_has_an_id_of_its_own() -> None:
    ways = [
        drafter(acceptance=rule, max_commit=most, cross_block=crossing, refresh=refresh)
        for rule in RULES
        for most in (False, True)
        for crossing, refresh in ((False, False), (True, False), (True, True))
    ]
    ids = {cell(one, commit="threshold", tau=0.9).cell_id for one in ways}
    assert len(ids) == len(ways) == 24


@given(st.sampled_from(RULES), st.booleans(), st.booleans(), st.floats(0.01, 0.99), st.sampled_from([0.0, 1.0]))
def test_the_denominator_is_threshold_decoding_at_the_same_tau(
    rule: Acceptance, most: bool, crossing: bool, tau: float, temperature: float
) -> None:
    one = drafter(acceptance=rule, max_commit=most, cross_block=crossing)
    lossy = cell(one, commit="threshold", tau=tau, temperature=temperature)
    base = lossy.baseline()
    assert (base.decode, base.target, base.task, base.seed) == (lossy.decode, lossy.target, lossy.task, lossy.seed)
    assert base.drafter == NO_DRAFTER
    assert base.cell_id == cell(drafter(), commit="threshold", tau=tau, temperature=temperature).baseline().cell_id


def test_a_variant_has_its_denominator_in_the_plan(tmp_path: Path) -> None:
    text = THRESHOLD + "  drafter: freedave\n  acceptance: [exact, product]\n  tau: [0.7, 0.9]\n"
    found = expanded(tmp_path, text)
    assert [(c.cell.drafter.kind, c.cell.decode.tau, c.added) for c in found.cells] == [
        *(("none" if first else "freedave", tau, first) for tau in (0.7, 0.9) for first in (True, False, False)),
    ]
    ids = {c.cell.cell_id for c in found.cells if c.added}
    assert {c.cell.baseline().cell_id for c in found.cells} == ids
