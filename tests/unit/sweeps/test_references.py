"""Uncached references: one for all caches and drafters of a target and rule, never asked twice, never timed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.claims import Claim, claim_of
from sweeps.effort import MeasureSpec
from sweeps.expand import Expansion, expand
from sweeps.facts import Facts
from sweeps.spec import SweepSpec
from sweeps.todo import Job, jobs_of, missing_items
from tests.sweep_files import BASE, TABLES, load


def spec_of(folder: Path, text: str, *caches: str, **measure: Any) -> SweepSpec:
    """The sweep on targets of one checkpoint, named after their caches."""
    spec = load(folder, BASE + text)
    (target,) = spec.targets
    targets = tuple(
        replace(
            target, name=f"x-{cache}", digest="w", family="Whole", cache=cache, exact_cache=cache in ("none", "exact")
        )
        for cache in caches
    )
    return replace(spec, targets=targets, measure=replace(spec.measure, **measure))


def expanded(spec: SweepSpec) -> Expansion:
    return expand(spec, Facts(kinds=TABLES.drafters, max_positions={}, artifacts={}))


def shown(expansion: Expansion) -> list[tuple[str, str, bool, bool]]:
    return [(c.cell.target.cache, c.labels[0], c.added, c.reference) for c in expansion.cells]


def test_a_reference_is_added_behind_all_cells_once_for_all_drafters(tmp_path: Path) -> None:
    assert shown(expanded(spec_of(tmp_path, "  drafter: ssd\n  budget: [4, 8]\n", "dual"))) == [
        ("dual", "none", True, False),
        ("dual", "ssd", False, False),
        ("dual", "ssd", False, False),
        ("none", "none", True, True),
    ]


def test_two_caches_share_one_reference(tmp_path: Path) -> None:
    expansion = expanded(spec_of(tmp_path, "  drafter: none\n", "dual", "prefix"))
    assert [row[::3] for row in shown(expansion)] == [("dual", False), ("prefix", False), ("none", True)]
    dual, prefix, reference = (labelled.cell for labelled in expansion.cells)
    assert dual.uncached().cell_id == prefix.uncached().cell_id == reference.cell_id
    assert dual.cell_id != prefix.cell_id
    assert {cell.baseline().target.cache for cell in (dual, prefix)} == {"dual", "prefix"}


@pytest.mark.parametrize("order", [("none", "dual"), ("dual", "none")])
def test_a_target_without_cache_is_a_cell_of_its_own_and_the_reference(tmp_path: Path, order: tuple[str, ...]) -> None:
    expansion = expanded(spec_of(tmp_path, "  drafter: ssd\n", *order))
    assert not any(labelled.reference for labelled in expansion.cells)
    by_cache = {c.cell.target.cache: c.cell for c in expansion.cells if c.cell.is_baseline}
    assert by_cache["dual"].uncached().cell_id == by_cache["none"].cell_id


def test_exact_caches_and_independent_noise_have_none(tmp_path: Path) -> None:
    assert not any(row[3] for row in shown(expanded(spec_of(tmp_path, "  drafter: ssd\n", "exact", "none"))))
    text = "  drafter: none\n  temperature: [0, 1]\n  noise: [coupled, independent]\n"
    expansion = expanded(spec_of(tmp_path, text, "dual"))
    rules = [(c.cell.decode.temperature, c.cell.decode.noise) for c in expansion.cells if c.reference]
    assert rules == [(0.0, "coupled"), (1.0, "coupled")]


def test_the_reference_keeps_everything_but_cache_and_drafter(tmp_path: Path) -> None:
    text = "  drafter: ssd\n  temperature: 0.7\n  seed: [3, 4]\n  confidence: sampled\n"
    for labelled in expanded(spec_of(tmp_path, text, "dual")).cells:
        cell = labelled.cell
        reference = cell.uncached()
        assert (reference.decode, reference.task, reference.seed) == (cell.decode, cell.task, cell.seed)
        assert reference.drafter == NO_DRAFTER
        assert claim_of(reference) == Claim.LOSSLESS
        known, own = cell.baseline().identity(), reference.identity()
        assert {key for key in known if known[key] != own[key]} <= {"target"}
        differs = {key for key in own["target"] if own["target"][key] != known["target"][key]}
        assert differs == (set() if labelled.reference else {"cache"})


def test_each_commit_rule_and_tau_has_a_reference_of_its_own(tmp_path: Path) -> None:
    text = "  drafter: none\n  commit: [standard, threshold]\n  tau: [0.7, 0.9]\n"
    kinds = {**TABLES.drafters, "none": replace(TABLES.drafters["none"], commits=("standard", "threshold"))}
    spec = spec_of(tmp_path, text, "dual", "prefix")
    cells = expand(spec, Facts(kinds=kinds, max_positions={}, artifacts={})).cells
    rules = ["standard", "threshold 0.7", "threshold 0.9"]
    assert [c.cell.decode.rule for c in cells if c.reference] == rules
    assert [(c.cell.target.cache, c.cell.decode.rule) for c in cells if not c.reference] == [
        (cache, rule) for cache in ("dual", "prefix") for rule in rules
    ]


def test_no_reference_where_none_is_asked_for(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "  drafter: none\n", "dual", uncached_prompts=0)
    assert [row[3] for row in shown(expanded(spec))] == [False]
    with pytest.raises(ValueError, match=r"measure.uncached_prompts is -1: allowed is a whole number from 0"):
        MeasureSpec(uncached_prompts=-1)


@pytest.mark.parametrize(("asked", "prompts"), [(None, 5), (2, 2), (9, 5)])
def test_a_reference_is_decoded_only(tmp_path: Path, asked: int | None, prompts: int) -> None:
    given = {} if asked is None else {"uncached_prompts": asked}
    spec = spec_of(tmp_path, "  drafter: ssd\n", "dual", prompts=5, timed_prompts=3, studied_prompts=4, **given)
    cells = expanded(spec).cells
    own: list[Cell] = [c.cell for c in cells if not c.reference]
    jobs = jobs_of(own, spec.measure, ("ssd",), [c.cell for c in cells if c.reference])
    *others, job = jobs
    assert (job.reference, job.prompts, job.timed_prompts, job.studied_prompts) == (True, prompts, 0, 0)
    assert {item.kind for item in missing_items([job], {}, chunk=8)} == {"decode"}
    assert not any(other.reference for other in others)
    assert [other.studied_prompts for other in others] == [0, 0, 4]
    assert others[2].cell.target.cache == "dual"  # the study looks at what the drafter sees


def test_a_reference_is_the_same_work_for_whoever_asks(tmp_path: Path) -> None:
    """Rows that a reference left count for a sweep that asks for the target without a cache, and vice versa."""
    ours = expanded(spec_of(tmp_path, "  drafter: none\n", "dual")).cells[-1].cell
    theirs = expanded(spec_of(tmp_path, "  drafter: none\n", "none")).cells[0].cell
    one, other = Job(cell=ours, prompts=2, reference=True), Job(cell=theirs, prompts=2)
    assert missing_items([one], {}, chunk=8) == missing_items([other], {}, chunk=8)
