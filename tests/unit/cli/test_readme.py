"""The README's example of a sweep is one, and so are the packaged sweeps."""

import re
from pathlib import Path

import pytest

from orchestrator.tables import built_in_tables
from sweeps.load import load_sweep, packaged

README = Path(__file__).parents[3] / "README.md"


def test_example_in_the_readme_loads(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    path = tmp_path / "example.yaml"
    path.write_text(example, encoding="utf-8")
    spec = load_sweep(path, (), built_in_tables())
    assert [target.name for target in spec.targets] == list(spec.grid.target)


@pytest.mark.parametrize("name", packaged())
def test_packaged_sweeps_load_under_their_own_name(name: str) -> None:
    spec = load_sweep(packaged()[name], (), built_in_tables())
    assert spec.name == name
    assert spec.title


def test_the_quick_sweep_asks_what_it_promises() -> None:
    grid = load_sweep(packaged()["quick"], (), built_in_tables()).grid
    assert (grid.target, grid.task) == (("tiny-sdar",), ("tiny-arith", "tiny-code"))
    assert grid.drafter == ("none", "ssd", "spot", "spot-gamma")
    assert (grid.budget, grid.temperature) == ((4, 8, 20), (0.0, 1.0))


def test_the_size_study_takes_the_papers_sizes() -> None:
    overrides = ("grid.target=[sdar-1.7b-b32,sdar-8b-b32]",)
    spec = load_sweep(packaged()["sizes"], overrides, built_in_tables())
    assert [(target.name, target.dtype) for target in spec.targets] == [
        ("sdar-1.7b-b32", "bfloat16"),
        ("sdar-8b-b32", "bfloat16"),
    ]
    assert spec.measure.timed_prompts >= 3  # below that no timing passes its gates
    assert spec.measure.repeats >= 3
