"""The decoder on a real architecture with a real prefix cache: float64, random weights, against the naive decoder."""

import pytest

from sweeps.spec import DecodeSpec
from tests.naive import assert_drafts_change_nothing
from tests.tiny_checkpoints import write_checkpoint
from workers.targets.block_causal import BlockCausalTarget
from workers.targets.load import load_target


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> BlockCausalTarget:
    return load_target(write_checkpoint(tmp_path_factory.mktemp("checkpoint")), dtype="float64")


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.5])
@pytest.mark.parametrize(("prompt", "budget", "length"), [(0, 9, 4), (3, 13, 4), (8, 8, 4), (17, 20, 8), (5, 3, 8)])
def test_output_equals_the_naive_decoder_with_cache_and_drafts(
    target: BlockCausalTarget, temperature: float, prompt: int, budget: int, length: int
) -> None:
    spec = DecodeSpec(max_new_tokens=budget, block_length=length, temperature=temperature, ignore_eos=True)
    ids = [10 + 7 * i % 200 for i in range(prompt)]
    assert_drafts_change_nothing(target, ids, spec)
