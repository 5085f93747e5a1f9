"""Sealed files that are anything but: one line that begins with what was read, cut to what a person can read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from workers.models.cost_curve import read_cost_curve
from workers.models.draft_graph import read_draft_graph
from workers.models.facts import find_order_model, inspect_order_model

HEADS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "spot-cost-curve": ("c.json", lambda folder: read_cost_curve(folder / "c.json"), "cost curve "),
    "spot-draft-graph": ("graph.json", read_draft_graph, "draft graph "),
    "spot-order-model": ("config.json", inspect_order_model, "order model "),
}


@pytest.mark.parametrize("format", HEADS)
@pytest.mark.parametrize("levels", [100, 300, 900, 990, 1100, 20_000])
@pytest.mark.parametrize("opens", ["[", '{"a":'])
def test_nesting_never_ends_as_a_defect(tmp_path: Path, format: str, levels: int, opens: str) -> None:
    name, read, what = HEADS[format]
    (tmp_path / "model.safetensors").write_bytes(b"")
    deep = opens * levels + "1" + ("]" if opens == "[" else "}") * levels
    (tmp_path / name).write_text(
        f'{{"format": "{format}", "version": 1, "block_length": 8, "digest": "x", "a": {deep}}}'
    )
    with pytest.raises(ValueError, match=f"^{what}") as caught:
        read(tmp_path)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("format", HEADS)
@pytest.mark.parametrize("field", ["format", "version"])
def test_a_long_foreign_value_is_cut(tmp_path: Path, format: str, field: str) -> None:
    name, read, what = HEADS[format]
    (tmp_path / "model.safetensors").write_bytes(b"")
    fields = {"format": f'"{format}"', "version": "1"} | {field: '"' + "y" * 5000 + '"'}
    (tmp_path / name).write_text("{" + ", ".join(f'"{key}": {value}' for key, value in fields.items()) + "}")
    with pytest.raises(ValueError, match=rf"^{what}.*: {field} is 'y+\.\. \(5002 characters\)"):
        read(tmp_path)


def test_a_directory_whose_configuration_cannot_be_read_is_still_found(tmp_path: Path) -> None:
    for content in ("[" * 20_000, '{"a": ' * 20_000, "\xff", "{"):
        (tmp_path / "config.json").write_bytes(content.encode("latin-1"))
        assert find_order_model(str(tmp_path)) == tmp_path
        with pytest.raises(ValueError, match=r"model\.safetensors is missing"):
            inspect_order_model(tmp_path)
