"""Settings that change what layers compute: stated twice they must agree, and what no layer of ours does is refused."""

from pathlib import Path
from typing import Any

import pytest

from tests.tiny_checkpoints import LAYOUTS, write_checkpoint
from workers.targets.inspect import config_of, inspect_checkpoint

ROPE = {"rope_type": "default"}
ALL = tuple(LAYOUTS)
WINDOWED = ["full_attention", "sliding_attention"]
TWICE = "rope_theta is 10000.0 but"
REFUSED: list[tuple[tuple[str, ...], dict[str, Any], tuple[str, ...]]] = [
    (ALL, {"rope_parameters": {**ROPE, "rope_theta": 5.0}}, (f"{TWICE} rope_parameters.rope_theta is 5.0",)),
    (ALL, {"rope_scaling": {**ROPE, "rope_theta": 5}}, (f"{TWICE} rope_scaling.rope_theta is 5.0",)),
    (
        ALL,
        {"rope_theta": ..., "rope_parameters": {"rope_theta": 7.0}, "rope_scaling": {"rope_theta": 8.0}},
        ("rope_parameters.rope_theta is 7.0 but rope_scaling.rope_theta is 8.0; they must agree",),
    ),
    (
        ALL,
        {"rope_parameters": {**ROPE, "rope_theta": 1e4}, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
        ("rope_scaling.rope_type is 'yarn'", "allowed rope type is 'default'"),
    ),
    (ALL, {"rope_scaling": {**ROPE, "type": "linear"}}, ("rope_scaling.type is 'linear'",)),
    (ALL, {"rope_scaling": {**ROPE, "mrope_section": [1, 2, 1]}}, ("rope_scaling.mrope_section is [1, 2, 1]",)),
    (ALL, {"rope_parameters": {"full_attention": dict(ROPE)}}, ("rope_parameters.full_attention is",)),
    (ALL, {"rope_parameters": {**ROPE, "partial_rotary_factor": 0.25}}, ("partial_rotary_factor",)),
    (("sdar", "llada", "dream"), {"partial_rotary_factor": 0.5}, ("partial_rotary_factor is 0.5; allowed is 1.0",)),
    (("llada2",), {"partial_rotary_factor": 1e308}, ("partial_rotary_factor is 1e+308; allowed is a number above 0",)),
    (("llada2",), {"partial_rotary_factor": float("nan")}, ("partial_rotary_factor is nan; allowed is a positive",)),
    (("llada2",), {"partial_rotary_factor": -0.5}, ("partial_rotary_factor is -0.5; allowed is a positive",)),
    (("llada2",), {"partial_rotary_factor": 1.01}, ("partial_rotary_factor is 1.01; allowed is a number above 0, up",)),
    (("llada2",), {"partial_rotary_factor": 1e-9}, ("head_dim x partial_rotary_factor is 0; allowed is an even",)),
    (("llada2",), {"moe_router_enable_expert_bias": False}, ("moe_router_enable_expert_bias is False",)),
    (ALL, {"layer_types": WINDOWED}, ("layer_types is ['full_attention', 'sliding_attention']; allowed is",)),
    (ALL, {"layer_types": "sliding_attention"}, ("layer_types is 'sliding_attention'",)),
    (ALL, {"use_sliding_window": True, "sliding_window": 4}, ("use_sliding_window is True",)),
    (("llada",), {"clip_qkv": 8.0}, ("clip_qkv is 8.0; allowed is None",)),
    (("llada",), {"sliding_window": 4}, ("sliding_window is 4",)),
]  # fmt: skip
CASES = [(family, changes, words) for families, changes, words in REFUSED for family in families]


@pytest.mark.parametrize(("family", "changes", "words"), CASES)
def test_what_the_layers_do_not_compute_is_refused(
    tmp_path: Path, family: str, changes: dict[str, Any], words: tuple[str, ...]
) -> None:
    folder = write_checkpoint(tmp_path, family=family, config=changes)
    with pytest.raises(ValueError) as error:  # noqa: PT011  (the words are checked below)
        inspect_checkpoint(folder)
    for word in ("config.json", *words):
        assert word in str(error.value)


@pytest.mark.parametrize("family", ALL)
@pytest.mark.parametrize(
    "changes",
    [
        {"rope_parameters": {**ROPE, "rope_theta": 10000}},
        {"rope_theta": None, "rope_scaling": {"type": "default", "rope_theta": 1e4}},
        {"rope_parameters": {**ROPE, "rope_theta": 1e4}, "rope_scaling": {**ROPE, "rope_theta": 1e4, "type": None}},
        {"rope_parameters": None, "rope_scaling": {}},
        {"layer_types": ["full_attention"] * 2},
    ],
)
def test_what_says_the_same_twice_is_read(tmp_path: Path, family: str, changes: dict[str, Any]) -> None:
    assert config_of(write_checkpoint(tmp_path, family=family, config=changes)).shape.rope_theta == 1e4


@pytest.mark.parametrize("family", ["sdar", "llada2", "dream"])
def test_a_window_that_is_not_in_use_is_no_matter(tmp_path: Path, family: str) -> None:
    """As the published configs have it: a width is stated, and that it is not used."""
    stated = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 20}
    inspect_checkpoint(write_checkpoint(tmp_path, family=family, config=stated))


def test_the_share_that_turns_may_stand_with_the_other_settings_of_the_rotation(tmp_path: Path) -> None:
    newer = {"partial_rotary_factor": ..., "rope_parameters": {**ROPE, "partial_rotary_factor": 0.25}}
    shape = config_of(write_checkpoint(tmp_path, family="llada2", config=newer)).shape
    assert shape.rotary_dim == 2  # a quarter of 8
