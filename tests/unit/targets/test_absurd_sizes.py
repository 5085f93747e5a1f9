"""Sizes that no checkpoint has: refused at once by name, before a list of them is made."""

import time
from pathlib import Path

import pytest

from tests.tiny_checkpoints import LAYOUTS, write_checkpoint
from workers.targets import published
from workers.targets.config import MOST, MOST_EXPERTS, MOST_LAYERS, MOST_POSITIONS
from workers.targets.inspect import config_of

USUAL = ("vocab_size", "num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size")
SIZES = {
    "sdar": (*USUAL, "head_dim", "num_key_value_heads"),
    "llada2": (*USUAL, "head_dim", "num_experts", "moe_intermediate_size", "num_shared_experts", "n_group"),
    "llada": ("embedding_size", "n_layers", "n_heads", "d_model", "mlp_hidden_size", "n_kv_heads"),
    "dream": USUAL,
}
CASES = [(family, field) for family, fields in SIZES.items() for field in fields]
LONG = {"llada": "max_sequence_length"}
SECONDS = 2.0  # a refusal takes milliseconds; lists of 10**9 entries take minutes, or all memory


@pytest.mark.parametrize(("family", "field"), CASES)
def test_an_absurd_size_is_refused_at_once(tmp_path: Path, family: str, field: str) -> None:
    for value in (2 * 10**6, 10**9, 10**30, 10**4000):
        folder = write_checkpoint(tmp_path, family=family, config={field: value})
        begin = time.monotonic()
        with pytest.raises(ValueError, match=rf"config\.json: {field} is 1?2?0+.*; allowed") as error:
            config_of(folder)
        assert time.monotonic() - begin < SECONDS
        assert len(str(error.value)) < 500


@pytest.mark.parametrize("family", LAYOUTS)
def test_positions_have_a_limit_of_their_own(tmp_path: Path, family: str) -> None:
    field = LONG.get(family, "max_position_embeddings")
    assert config_of(write_checkpoint(tmp_path, family=family, config={field: 10**7})).max_positions == 10**7
    with pytest.raises(
        ValueError, match=f"{field} is 10000000000; allowed is a whole number from 1 to {MOST_POSITIONS}"
    ):
        config_of(write_checkpoint(tmp_path, family=family, config={field: 10**10}))


def test_layers_times_experts_are_bounded(tmp_path: Path) -> None:
    many = {"num_hidden_layers": 1000, "num_experts": 1000}
    with pytest.raises(ValueError, match="num_experts is 1000; allowed is a whole number from 1 to 65"):
        config_of(write_checkpoint(tmp_path, family="llada2", config=many))


@pytest.mark.parametrize("name", ["SDAR_1_7B", "SDAR_8B", "LLADA2_MINI", "LLADA_8B", "DREAM_7B"])
def test_published_bodies_are_well_within(name: str) -> None:
    one = getattr(published, name)
    assert 4 * max(one.shape.vocab_size, one.shape.hidden, one.shape.mlp) < MOST
    assert 4 * one.shape.layers < MOST_LAYERS
    assert one.shape.layers * (one.shape.experts.count if one.shape.experts else 0) < MOST_EXPERTS / 4
