"""The decoder on every family with every kind of cache: float64, random weights, against the naive decoder.

The naive decoder begins a new sequence for every forward, so that a cache which depended on what was forwarded before,
or was refreshed at another point, would give it another output.
"""

from functools import cache

import pytest

from sweeps.spec import DecodeSpec
from tests.naive import assert_drafts_change_nothing
from tests.tiny_checkpoints import LAYOUTS, write_checkpoint
from tests.toys import WrongDrafter
from workers.catalog import FAMILIES
from workers.decoding.loop import decode
from workers.drafters.none import NoDrafter
from workers.targets.load import NativeTarget, load_target

KINDS = [
    (family, kind)
    for family, layout in LAYOUTS.items()
    for kind in FAMILIES[layout.config["architectures"][0]].caches
    if family != "sdar"  # has a file of its own
]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    @cache
    def load(family: str, kind: str) -> NativeTarget:
        folder = write_checkpoint(tmp_path_factory.mktemp(family), family=family, tied=False)
        return load_target(folder, dtype="float64", cache=kind)

    return load


@pytest.mark.parametrize(
    ("temperature", "prompt", "budget", "length"), [(0.0, 3, 13, 4), (1.5, 5, 7, 8), (0.0, 8, 9, 4)]
)
@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_output_equals_the_naive_decoder_with_cache_and_drafts(  # type: ignore[no-untyped-def]
    loaded, family: str, kind: str, temperature: float, prompt: int, budget: int, length: int
) -> None:
    target = loaded(family, kind)
    spec = DecodeSpec(max_new_tokens=budget, block_length=length, temperature=temperature, ignore_eos=True)
    ids = [10 + 7 * i % 200 for i in range(prompt)]
    assert_drafts_change_nothing(target, ids, spec)


@pytest.mark.parametrize("family", ["llada", "dream"])
def test_positions_of_a_whole_sequence_target_are_counted_as_forwarded(loaded, family: str) -> None:  # type: ignore[no-untyped-def]
    """5 tokens given, 6 asked for, blocks of 4: a canvas of 12, blocks at 4 (3 open) and 8 (3 open)."""
    spec = DecodeSpec(max_new_tokens=6, block_length=4, ignore_eos=True)
    shift = 1 if family == "dream" else 0
    wanted = {
        "none": 6 * 12,
        "prefix": 12 + 2 * (8 + shift) + 12 + 2 * (4 + shift),
        "dual": 12 + 2 * (4 + shift) + 12 + 2 * (4 + shift),
    }
    for kind, positions in wanted.items():
        counters = decode(loaded(family, kind), NoDrafter(), [9, 8, 7, 6, 5], spec=spec, seed=0).counters
        assert (counters.nfe, counters.positions) == (6, positions)
        assert (counters.prefill_forwards, counters.prefill_positions) == (0, 0)
    drafted = decode(loaded(family, "dual"), WrongDrafter(3), [9, 8, 7, 6, 5], spec=spec, seed=0).counters
    assert drafted.drafted == (0, 2, 0, 0, 2, 0)  # refresh alone, two drafts, one open position left: alone again
    assert drafted.positions == 2 * (12 + (1 + 2) * (4 + shift) + (4 + shift))


def test_caches_are_different_decoders_and_the_exact_one_says_so(loaded) -> None:  # type: ignore[no-untyped-def]
    spec = DecodeSpec(max_new_tokens=24, block_length=8, ignore_eos=True)
    made = {kind: decode(loaded("llada", kind), NoDrafter(), [9, 8, 7], spec=spec, seed=0) for kind in ("none", "dual")}
    assert made["none"].output_ids != made["dual"].output_ids
    assert {kind: loaded("llada", kind).traits.exact_cache for kind in ("none", "prefix", "dual")} == {
        "none": True,
        "prefix": False,
        "dual": False,
    }


def test_a_shifted_target_needs_a_first_token(loaded) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="prompt is empty: dream"):
        loaded("dream", "dual").start([], block_length=4, max_new_tokens=4)
    assert loaded("llada", "dual").start([], block_length=4, max_new_tokens=4).prefix_length == 0
