"""The decoder on a real architecture with a real prefix cache: float64, random weights, against the naive decoder."""

import pytest

from sweeps.spec import DecodeSpec
from tests.tiny_checkpoints import write_checkpoint
from tests.toys import RandomDrafter, WrongDrafter
from workers.decoding.loop import decode
from workers.decoding.reference import reference
from workers.drafters.none import NoDrafter
from workers.drafters.ssd import SsdDrafter
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
    naive = reference(target, ids, spec=spec, seed=3)
    assert len(naive.output_ids) == budget
    for drafter in (NoDrafter(), SsdDrafter(3), RandomDrafter(1, 8), WrongDrafter(3)):
        drafted = decode(target, drafter, ids, spec=spec, seed=3)
        assert (drafted.output_ids, drafted.order) == (naive.output_ids, naive.order)
        assert drafted.counters.nfe <= budget
    assert decode(target, SsdDrafter(3), ids, spec=spec, seed=3).counters.kv_passes == 0
