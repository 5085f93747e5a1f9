"""From a sweep to its cells: one identity for equal work, baselines, exclusions, impossible pairs with reasons."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweeps.cell import NO_DRAFTER
from sweeps.expand import Expansion, LabelledCell, expand
from sweeps.facts import Artifact, Facts
from sweeps.spec import SweepSpec
from tests.sweep_files import BASE, TABLES, load

MODEL = Artifact(path="/models/order", digest="d" * 64, block_length=32)


def facts(**artifacts: Artifact) -> Facts:
    """Facts with an order model of the small target for each named drafter."""
    models = {("small", name.replace("_", "-")): model for name, model in artifacts.items()}
    return Facts(kinds=TABLES.drafters, max_positions={"small": 512, "large": 64}, artifacts=models)


def rows(expansion: Expansion) -> list[tuple[str, int, float, float]]:
    """(label, budget, gamma, temperature) of each cell."""
    return [
        (c.labels[0], c.cell.drafter.budget, c.cell.drafter.gamma, c.cell.decode.temperature) for c in expansion.cells
    ]


def test_product_with_neutral_options_and_draft_free_first(tmp_path: Path) -> None:
    text = BASE + "  drafter: [ssd, spot, none]\n  budget: [4, 8]\n  temperature: [0, 1]\n"
    expansion = expand(load(tmp_path, text), facts(spot=MODEL))
    assert rows(expansion) == [
        (name, budget, 0.0, temperature)
        for temperature in (0.0, 1.0)
        for name, budget in (("none", 0), ("ssd", 4), ("ssd", 8), ("spot", 4), ("spot", 8))
    ]
    assert not any(cell.added for cell in expansion.cells)
    ssd, spot = expansion.cells[1].cell.drafter, expansion.cells[3].cell.drafter
    assert (ssd.hedge, ssd.merge_states, ssd.checkpoint, ssd.digest) == (0.0, False, "", "")
    assert (spot.hedge, spot.merge_states, spot.checkpoint, spot.digest) == (0.6, True, MODEL.path, MODEL.digest)
    assert expansion.cells[0].cell.drafter == replace(NO_DRAFTER, name="none")


def test_baselines_are_added_once_and_marked(tmp_path: Path) -> None:
    text = BASE + "  drafter: ssd\n  budget: [4, 8]\n  temperature: [0, 1]\n"
    expansion = expand(load(tmp_path, text), facts())
    assert [(c.labels[0], c.added) for c in expansion.cells] == [("none", True), ("ssd", False), ("ssd", False)] * 2


def test_gamma_axis_multiplies_only_what_uses_it(tmp_path: Path) -> None:
    text = (
        BASE + "  drafter: [none, ssd, spot, floor]\n  gamma: [0, 0.1]\ndrafters: {floor: {kind: spot, gamma: 0.05}}\n"
    )
    expansion = expand(load(tmp_path, text), facts(spot=MODEL, floor=MODEL))
    assert [row[:3] for row in rows(expansion)] == [
        ("none", 0, 0.0),
        ("ssd", 8, 0.0),
        ("spot", 8, 0.0),
        ("spot", 8, 0.1),
        ("floor", 8, 0.05),
    ]
    assert [(d.axes, d.reason.split(":")[0]) for d in expansion.dropped] == [
        ({"drafter": "ssd", "gamma": 0.1}, "ssd has no masses to hold against a floor")
    ]


def test_an_option_of_a_drafters_own_entry_is_not_multiplied(tmp_path: Path) -> None:
    text = BASE + "  drafter: [wide, spot]\n  budget: [4, 8]\ndrafters: {wide: {kind: spot, budget: 64}}\n"
    expansion = expand(load(tmp_path, text), facts(spot=MODEL, wide=MODEL))
    assert [row[:2] for row in rows(expansion)] == [("none", 0), ("wide", 64), ("spot", 4), ("spot", 8)]
    assert all(cell.cell.drafter.fixed == () for cell in expansion.cells)


def test_equal_work_under_two_labels_is_one_cell_with_a_note(tmp_path: Path) -> None:
    text = BASE + "  drafter: [spot, twin, none, zero]\ndrafters: {twin: {kind: spot, gamma: 0}, zero: {kind: none}}\n"
    expansion = expand(load(tmp_path, text), facts(spot=MODEL, twin=MODEL))
    assert [cell.labels for cell in expansion.cells] == [("none", "zero"), ("spot", "twin")]
    assert expansion.notes == (
        "zero: the same work as none (listed once, under that name)",
        "twin: the same work as spot (listed once, under that name)",
    )


def test_two_checkpoints_are_two_cells_whatever_their_paths(tmp_path: Path) -> None:
    text = BASE + "  drafter: [a, b, c]\n"
    text += "drafters: {a: {kind: spot}, b: {kind: spot, checkpoint: x}, c: {kind: spot, checkpoint: y}}\n"
    moved = replace(MODEL, path="/elsewhere")
    other = replace(MODEL, digest="e" * 64)
    expansion = expand(load(tmp_path, text), facts(a=MODEL, b=moved, c=other))
    assert [cell.labels for cell in expansion.cells] == [("none",), ("b", "a"), ("c",)]
    assert [cell.cell.drafter.name for cell in expansion.cells] == ["none", "b", "c"]  # b says which artifact it is


def test_noise_is_no_axis_at_temperature_zero(tmp_path: Path) -> None:
    text = BASE + "  drafter: ssd\n  temperature: [0, 1]\n  noise: [coupled, independent]\n"
    expansion = expand(load(tmp_path, text), facts())
    assert [(c.cell.decode.temperature, c.cell.decode.noise) for c in expansion.cells if not c.added] == [
        (0.0, "coupled"),
        (1.0, "coupled"),
        (1.0, "independent"),
    ]
    assert expansion.notes == (
        "1 grid point repeats another (an axis value twice, or one that changes nothing at temperature 0)",
    )


def test_exclude_takes_what_matches_every_axis_of_a_rule(tmp_path: Path) -> None:
    text = BASE + "  drafter: [none, ssd, spot]\n  budget: [4, 8]\n"
    text += "exclude: [{drafter: ssd, budget: 8}, {drafter: [none, spot], budget: [4]}, {budget: 20}]\n"
    expansion = expand(load(tmp_path, text), facts(spot=MODEL))
    assert [row[:2] for row in rows(expansion)] == [("none", 0), ("ssd", 4), ("spot", 8)]
    assert [(d.reason, d.count) for d in expansion.dropped] == [("exclude[0]", 1), ("exclude[1]", 1)]
    assert expansion.dropped[1].axes == {"drafter": ("none", "spot"), "budget": (4,)}
    assert expansion.notes == ("exclude[2] matches no cell",)


def test_an_excluded_baseline_comes_back_as_the_denominator(tmp_path: Path) -> None:
    text = BASE + "  drafter: [none, ssd]\nexclude: {drafter: none}\n"
    expansion = expand(load(tmp_path, text), facts())
    assert [(c.labels[0], c.added) for c in expansion.cells] == [("none", True), ("ssd", False)]


def test_impossible_pairs_are_dropped_with_a_reason(tmp_path: Path) -> None:
    text = "grid:\n  target: [small, large]\n  task: [sums, code]\n  drafter: [ssd, spot]\n  block_length: [16, 32]\n"
    text += "  max_new_tokens: [32, 64]\n"
    expansion = expand(load(tmp_path, text), facts(spot=MODEL))
    assert [(d.axes, d.count) for d in expansion.dropped] == [
        ({"target": "small", "drafter": "spot", "block_length": 16}, 4),
        ({"target": "large", "drafter": "spot"}, 4),
        ({"target": "large", "max_new_tokens": 64}, 8),
    ]
    assert "blocks of 32" in expansion.dropped[0].reason
    assert "no order model is known for large" in expansion.dropped[1].reason
    assert "large has 64 positions" in expansion.dropped[2].reason
    kept = {(c.cell.target.name, c.cell.decode.block_length) for c in expansion.cells if c.labels[0] == "spot"}
    assert kept == {("small", 32)}


def test_seeds_are_one_cell_at_temperature_zero(tmp_path: Path) -> None:
    expansion = expand(load(tmp_path, BASE + "  drafter: none\n  temperature: [0, 1]\n  seed: [5, 6]\n"), facts())
    assert [(c.cell.decode.temperature, c.cell.seed) for c in expansion.cells] == [(0.0, 0), (1.0, 5), (1.0, 6)]


NUMBERS = ["0.30000000000000004", "0.3", "3e-1", "1e22", "-0.0", "0", "0.0", "+0", "1", "1.0", "1e0"]


def test_equal_numbers_give_equal_ids_and_different_ones_different_ids(tmp_path: Path) -> None:
    ids = {
        text: expand(load(tmp_path, BASE + "  drafter: none\n", f"grid.temperature={text}"), facts())
        .cells[0]
        .cell.cell_id
        for text in NUMBERS
    }
    for one, other in combinations(NUMBERS, 2):
        assert (ids[one] == ids[other]) == (float(one) == float(other)), (one, other)
    assert all(len(cell_id) == 20 and set(cell_id) <= set("0123456789abcdef") for cell_id in ids.values())


@pytest.mark.parametrize("label", ["x" * 300, "a/../../b", "50% #1 'q'", "Spot", "spot"])
def test_no_label_changes_an_identity(tmp_path: Path, label: str) -> None:
    spec = load(tmp_path, BASE + "  drafter: spot\n")
    spec = replace(spec, drafters=(replace(spec.drafters[0], name=label),))
    known = Facts(kinds=TABLES.drafters, max_positions={"small": 512}, artifacts={("small", label): MODEL})
    plain = expand(load(tmp_path, BASE + "  drafter: spot\n"), facts(spot=MODEL))
    assert expand(spec, known).cells[1].cell.cell_id == plain.cells[1].cell.cell_id


AXES: dict[str, st.SearchStrategy[list[Any]]] = {
    "drafter": st.lists(st.sampled_from(["none", "ssd", "spot"]), min_size=1, max_size=3),
    "budget": st.lists(st.integers(1, 40), min_size=1, max_size=3),
    "gamma": st.lists(st.sampled_from([0.0, 0.05, 0.5]), min_size=1, max_size=3),
    "temperature": st.lists(st.sampled_from([0.0, 0.7, 1.5]), min_size=1, max_size=3),
    "seed": st.lists(st.integers(0, 3), min_size=1, max_size=2),
}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.fixed_dictionaries(AXES))
def test_every_variant_has_its_baseline_before_it_and_no_cell_comes_twice(tmp_path: Path, axes: dict[str, Any]) -> None:
    spec: SweepSpec = load(tmp_path, BASE, *(f"grid.{axis}={values}" for axis, values in axes.items()))
    cells: tuple[LabelledCell, ...] = expand(spec, facts(spot=MODEL)).cells
    ids = [cell.cell.cell_id for cell in cells]
    assert len(ids) == len(set(ids))
    for index, labelled in enumerate(cells):
        assert labelled.cell.baseline().cell_id in ids[: index + 1]
    asked = {name: set(values) for name, values in axes.items()}
    expected = len(asked["temperature"] - {0.0}) * len(asked["seed"]) + (0.0 in asked["temperature"])
    each = ("ssd" in asked["drafter"]) * len(asked["budget"])
    each += ("spot" in asked["drafter"]) * len(asked["budget"]) * len(asked["gamma"])
    assert len(cells) == expected * (1 + each)  # one draft-free cell for each temperature and seed, asked for or not


def test_a_second_name_for_the_same_weights_is_noted_by_both_names(tmp_path: Path) -> None:
    spec = load(tmp_path, BASE + "  drafter: [none, ssd]\n  budget: [4, 8]\n")
    (small,) = spec.targets
    twin = replace(small, name="twin")
    spec = replace(spec, targets=(small, twin), grid=replace(spec.grid, target=(small.name, "twin")))
    known = facts()
    expansion = expand(spec, replace(known, max_positions={**known.max_positions, "twin": 512}))
    assert {cell.cell.target.name for cell in expansion.cells} == {small.name}
    assert expansion.notes == (
        f"target twin: the same content and settings as target {small.name} (listed once, under that name)",
    )
