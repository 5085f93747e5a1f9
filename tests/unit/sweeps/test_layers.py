"""Settings over a sweep: what merges, what replaces, and that a refusal names the file and line that is to blame."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeps.layers import laid_over
from sweeps.load import find_settings, find_sweep, load_sweep
from sweeps.source import SweepError
from sweeps.spec import SweepSpec
from tests.sweep_files import BASE, TABLES

FULL = BASE + "  drafter: [none, ssd]\n  budget: [4, 8]\nexclude:\n- {drafter: ssd}\ndrafters:\n  x: {kind: ssd}\n"


def laid(folder: Path, *layers: str, base: str = FULL, overrides: tuple[str, ...] = ()) -> SweepSpec:
    (folder / "s.yaml").write_text(base)
    files = [folder / f"l{number}.yaml" for number in range(len(layers))]
    for file, text in zip(files, layers, strict=True):
        file.write_text(text)
    return load_sweep(folder / "s.yaml", overrides, TABLES, settings=files)


def refused(folder: Path, *layers: str, base: str = FULL, overrides: tuple[str, ...] = ()) -> str:
    with pytest.raises(SweepError) as caught:
        laid(folder, *layers, base=base, overrides=overrides)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 400
    return line.replace(str(folder) + "/", "")


REFUSED = {
    "\ngrid: [1, 2]\n": "l0.yaml:2: grid is [1, 2]: allowed is a mapping",
    "drafters: [spot]\n": "l0.yaml:1: drafters is ['spot']: allowed is a mapping",
    "grid:\n  drafter: {a: 1}\n": "l0.yaml:2: grid.drafter is {'a': 1}: allowed is text",
    "\nexclude: {drafter: nobody}\n": "l0.yaml:2: exclude[0].drafter: unknown drafter 'nobody'",
    "grid:\n  budget: {a: 1}\n": "l0.yaml:2: grid.budget is {'a': 1}: allowed is a whole number",
    "\nmeasure:\n  prompts: [1, 2]\n": "l0.yaml:3: measure.prompts is [1, 2]: allowed is a whole number",
    "grid: {true: 2}\n": "l0.yaml:1: grid: the key true is read as a bool: quote it",
    "\n~: 2\n": "l0.yaml:2: the key ~ is read as a null: quote it",
    "grid:\n  null: 2\n": "l0.yaml:2: grid: the key null is read as a null: quote it",
    "title: a\ngrid: !!set {a, b}\n": "l0.yaml:2: not YAML for a sweep: grid has the tag !!set",
    "\ntitle: !!python/object/apply:os.system [x]\n": "l0.yaml:2: not YAML for a sweep: title has the tag !!python",
    "title: !!timestamp 2020-01-01\n": "l0.yaml:1: title: Value 'date' is not a supported primitive type",
    "title: !!int abc\n": "l0.yaml: not YAML: invalid literal",
    "exclude: null\n": "l0.yaml:1: exclude[0] is None",
    "\ntitle: ${\n": "l0.yaml:2: title: ${...} asks for another value",
    "title: ${nope}\n": "l0.yaml:1: title: ${...} asks for another value",
    "": "l0.yaml: the file is empty: settings are keys of a sweep",
    "# a remark\n": "l0.yaml: the file is empty: settings are keys of a sweep",
}


@pytest.mark.parametrize("layer", REFUSED)
def test_a_refusal_names_the_settings_and_their_line(tmp_path: Path, layer: str) -> None:
    assert refused(tmp_path, layer).startswith(REFUSED[layer])


def test_what_the_sweep_wrote_is_still_blamed_on_the_sweep(tmp_path: Path) -> None:
    base = FULL.replace("[none, ssd]", "[none, sdd]")
    assert refused(tmp_path, "grid:\n  budget: 2\n", base=base).startswith("s.yaml:4: unknown drafter 'sdd'")


def test_a_line_whose_value_was_replaced_is_never_blamed(tmp_path: Path) -> None:
    assert refused(tmp_path, "grid: {budget: 2}\n", overrides=("grid.budget=[4,0.5]",)).startswith("override grid.bud")
    assert refused(tmp_path, overrides=("grid.budget=[4,0.5]",)).startswith("override grid.budget=[4,0.5]: grid.budget")
    layers = ("grid:\n  budget: [a, 2]\n", "\n\ngrid:\n  budget: [2, b]\n")
    assert refused(tmp_path, *layers).startswith("l1.yaml:4: grid.budget[1] is 'b'")


def test_mappings_merge_and_anything_else_replaces(tmp_path: Path) -> None:
    spec = laid(
        tmp_path, "grid: {budget: 2}\nexclude: []\n", "grid: {drafter: [x, none]}\ndrafters: {x: {budget: 3}}\n"
    )
    assert spec.grid.budget == (2,)
    assert spec.grid.target == ("small",)
    assert spec.exclude == ()
    assert {drafter.name: (drafter.kind, drafter.budget) for drafter in spec.drafters} == {
        "x": ("ssd", 3),
        "none": ("none", 8),
    }


def test_interpolations_are_resolved_in_the_merged_sweep(tmp_path: Path) -> None:
    spec = laid(tmp_path, "title: T\n", base=FULL + 'name: "n-${title}"\ntitle: S\n')
    assert spec.name == "n-T-l0"


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


def at(value: object, path: tuple[str | int, ...]) -> object:
    for part in path:
        value = value[part]  # type: ignore[index]
    return value


@given(VALUES, VALUES)
def test_what_is_laid_over_wins_at_every_place_it_names(under: object, over: object) -> None:
    merged, replaced = laid_over(under, over)
    assert laid_over(merged, over)[0] == merged
    assert laid_over(under, under)[0] == under
    for path in replaced:
        assert at(merged, path) == at(over, path)
    if not isinstance(under, dict) or not isinstance(over, dict):
        assert (merged, replaced) == (over, ((),))
    else:
        assert set(merged) == set(under) | set(over)


def test_a_joined_name_that_is_too_long_says_what_was_joined(tmp_path: Path) -> None:
    line = refused(tmp_path, "title: a\n", base=FULL + f"name: {'y' * 79}\n")
    assert "joined, 82 letters: allowed are 80: give name=" in line
    assert "'l0'" in line
    assert laid(tmp_path, "title: a\n", base=FULL + f"name: {'y' * 79}\n", overrides=("name=short",)).name == "short"


def test_settings_given_twice(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(FULL)
    layer = tmp_path / "l.yaml"
    layer.write_text("title: a\n")
    with pytest.raises(SweepError, match="--with l is given twice"):
        load_sweep(tmp_path / "s.yaml", (), TABLES, settings=[layer, tmp_path / "." / "l.yaml"])


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level + 1}: &a{level + 1} [{', '.join([f'*a{level}'] * 9)}]\n" for level in range(9)
)
MERGES = "b0: &b0 {x: 1}\n" + "".join(
    f"b{level + 1}: &b{level + 1} {{<<: [{', '.join([f'*b{level}'] * 9)}]}}\n" for level in range(9)
)
CHAIN = "c0: &c0 [[[[x]]]]\n" + "".join(f"c{level + 1}: &c{level + 1} [[[[*c{level}]]]]\n" for level in range(9))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("grid: " + "[" * 150 + "]" * 150 + "\n", "nested too deeply"),
        ("grid: " + "[" * 5000 + "]" * 5000 + "\n", "nested too deeply"),
        ("grid: " + "{a: " * 150 + "1" + "}" * 150 + "\n", "nested too deeply"),
        (CHAIN, "nested too deeply"),
        (LAUGHS, "values: allowed are 100000"),
        (MERGES, "values: allowed are 100000"),
    ],
)
def test_more_than_anybody_writes_is_refused_at_once(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refused(tmp_path, text)
    assert expected in refused(tmp_path, base=text)


@pytest.mark.parametrize("value", ["[" * 150 + "]" * 150, "{a: " * 30 + "1" + "}" * 30])
def test_a_nested_override(tmp_path: Path, value: str) -> None:
    assert "nested too deeply" in refused(tmp_path, overrides=(f"grid.budget={value}",))


def test_an_override_with_a_long_path(tmp_path: Path) -> None:
    assert "nested too deeply" in refused(tmp_path, overrides=(".".join("a" * 400) + "=1",))


@pytest.mark.parametrize("find", [find_sweep, find_settings])
@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "~nobody99/x.yaml", "/" + "x/" * 3000])
def test_a_name_that_no_file_can_have(find: object, name: str) -> None:
    with pytest.raises(ValueError, match="is ") as caught:
        find(name)  # type: ignore[operator]
    assert len(str(caught.value)) < 250
