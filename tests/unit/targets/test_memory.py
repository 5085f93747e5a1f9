"""What a target takes, part by part, against numbers worked out by hand; and a head that is widened in parts."""

import json
import os
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sweeps.spec import Acceptance, DecodeSpec, DrafterSpec
from tests.spying import SpyTarget
from tests.tiny_checkpoints import write_checkpoint
from tests.toys import KnowingStepsDrafter, RandomStepsDrafter, ToyTarget
from workers.catalog import FAMILIES, TARGETS, ZOO
from workers.decoding.loop import decode
from workers.decoding.rule import Verdict, judge
from workers.decoding.seen import Seen
from workers.decoding.state import BlockState, Commit
from workers.decoding.verification import Verification
from workers.drafters.none import NoDrafter
from workers.drafters.ssd import SsdDrafter
from workers.models.memory import ModelSize
from workers.room import size_of
from workers.targets import published
from workers.targets.load import load_target
from workers.targets.memory import MemoryNeed, SequenceSize, gigabytes, memory_need

ROOT = Path(__file__).parents[3]
SIZE = SequenceSize(block_length=32, max_new_tokens=256, states=21, prompt_tokens=512)


@pytest.mark.parametrize(
    ("target", "parameters", "weights"),
    [  # embedding and head; per layer: attention, MLP, norms; the last norm
        (published.SDAR_1_7B, 2 * 151936 * 2048 + 28 * (12_582_912 + 37_748_736 + 4_352) + 2048, "4.1"),
        (published.SDAR_8B, 2 * 151936 * 4096 + 36 * (41_943_040 + 150_994_944 + 8_448) + 4096, "16.4"),
        (published.LLADA_8B, 2 * 126464 * 4096 + 32 * (67_108_864 + 150_994_944 + 8_192) + 4096, "16.0"),
        (published.DREAM_7B, 2 * 152064 * 3584 + 28 * (29_364_736 + 203_685_888 + 7_168) + 3584, "15.2"),
        (
            published.LLADA2_MINI,  # one dense layer of 5120, 19 of 256 experts and a shared one of 512, and a router
            2 * 157184 * 2048
            + 20 * (2048 * 3072 + 2048 * 2048 + 2 * 128 + 2 * 2048)
            + 3 * 2048 * 5120
            + 19 * (257 * 3 * 2048 * 512 + 256 * 2048 + 256)
            + 2048,
            "32.5",
        ),
    ],
)
def test_parameters_and_weights_of_the_published_bodies(
    target: published.Published, parameters: int, weights: str
) -> None:
    assert target.shape.parameters == parameters
    need = memory_need(target.shape, "bfloat16", SIZE, gpu=True)
    assert need.weights == 2 * parameters
    assert gigabytes(need.weights) == weights


def test_every_entry_of_the_table_has_a_block_length_and_published_ones_a_body_with_ids_inside_it() -> None:
    for name, entry in TARGETS.items():
        assert entry.block_length == (16 if name.endswith("b16") else 32), name
        assert (entry.published is None) == Path(entry.path).is_absolute(), name
        assert entry.dtype == ("float32" if entry.published is None else "bfloat16"), name
        if entry.published is not None:
            ids = {entry.published.mask_id, *entry.published.stop_ids}
            assert len(ids) == 1 + len(entry.published.stop_ids)
            assert max(ids) < entry.published.shape.vocab_size
            assert entry.family in FAMILIES


def test_the_cache_holds_keys_and_values_of_every_position_in_every_layer() -> None:
    shape = published.SDAR_8B.shape
    need = memory_need(shape, "bfloat16", SIZE, gpu=True)
    assert need.cache == 768 * 36 * 2 * 8 * 128 * 2  # 512 + 256 positions, 147,456 bytes each
    assert memory_need(shape, "bfloat16", replace(SIZE, cache="none"), gpu=True).cache == 0
    odd = replace(SIZE, prompt_tokens=500, max_new_tokens=1)  # in whole blocks: 512 positions
    assert memory_need(shape, "float32", odd, gpu=True).cache == 512 * 36 * 2 * 8 * 128 * 4


@pytest.mark.parametrize(
    ("cache", "forwarded", "dense"),
    [("exact", 22 * 32, 512), ("dual", 21 * 33, 768), ("prefix", 21 * 257, 768), ("none", 21 * 768, 21 * 768)],
)
def test_positions_of_a_forward_by_kind_of_cache(cache: str, forwarded: int, dense: int) -> None:
    size = replace(SIZE, cache=cache)
    assert (size.canvas, size.forwarded, size.dense) == (768, forwarded, dense)


@pytest.mark.parametrize(
    ("target", "cache", "gpu", "activations"),
    [  # positions x (two streams + the worst moment of a layer): here the scores of 768 keys, ten bytes a head and key
        (published.SDAR_8B, "exact", True, 704 * (2 * 8192 + 8192 + 2 * (6144 + 4096) + 32 * 768 * 10)),
        (published.SDAR_8B, "exact", False, 704 * (2 * 8192 + 8192 + 2 * (6144 + 4096) + 32 * 768 * 12)),
        (published.LLADA_8B, "dual", True, 693 * (2 * 8192 + 8192 + 2 * (12288 + 4096) + 32 * 768 * 10)),
        (published.DREAM_7B, "dual", True, 693 * (2 * 7168 + 7168 + 2 * (4608 + 3584) + 28 * 768 * 10)),
        # every copy a canvas of its own: the MLP of 21 x 768 positions
        (published.LLADA_8B, "none", True, 16128 * (2 * 8192 + 8192 + 3 * 12288 * 2)),
        # gate, up and product of all 256 experts at 512 positions, the router in float32, streams of all positions
        (published.LLADA2_MINI, "exact", True, 512 * 3 * 256 * 512 * 2 + 256 * 2048 * 4 + 704 * (2 * 4096 + 2 * 4096)),
    ],
)
def test_activations_by_hand(target: published.Published, cache: str, gpu: bool, activations: int) -> None:
    assert memory_need(target.shape, "bfloat16", replace(SIZE, cache=cache), gpu=gpu).activations == activations


def test_the_widest_mlp_counts_be_it_dense_or_that_of_the_shared_experts() -> None:
    shape, long = published.LLADA2_MINI.shape, replace(SIZE, states=1, prompt_tokens=20_000)
    assert shape.experts is not None
    wide = replace(shape, mlp=512, experts=replace(shape.experts, shared=10))
    own, other = (memory_need(body, "bfloat16", long, gpu=True).activations for body in (shape, wide))
    assert own == other == 20_000 * (2 * 4096 + 4096 + 3 * 5120 * 2)  # of the prompt's positions


def test_a_walk_visits_no_more_states_than_a_block_has_positions() -> None:
    most, more = (memory_need(published.SDAR_8B.shape, "bfloat16", replace(SIZE, states=n), gpu=True) for n in (32, 90))
    assert most.logits == more.logits


def test_a_head_is_widened_on_a_cpu_only_and_draws_are_kept_beside_logits() -> None:
    shape = published.SDAR_8B.shape
    on_gpu, on_cpu = (memory_need(shape, "bfloat16", SIZE, gpu=gpu).logits for gpu in (True, False))
    assert on_cpu - on_gpu == 16384 * 4096 * 4
    assert memory_need(shape, "float32", SIZE, gpu=False).logits == on_gpu
    drawn = memory_need(shape, "bfloat16", replace(SIZE, sampled=True), gpu=True).logits
    assert drawn - on_gpu == shape.vocab_size * (
        (462 + 32) * 8 + 32 * 4 * 8
    )  # 462 open rows on a walk of 21 states, 32 before


def test_logits_are_of_one_state_and_of_the_verdicts_on_the_walk() -> None:
    shape, one = published.SDAR_8B.shape, replace(SIZE, states=1)
    row = shape.vocab_size * 8
    alone, walked = (memory_need(shape, "bfloat16", size, gpu=True).logits for size in (one, SIZE))
    assert walked - alone == row * sum(32 - accepted for accepted in range(1, 21))
    assert alone < 32 * shape.vocab_size * 48  # far below 21 states of logits in float32


@given(
    st.sampled_from([published.SDAR_1_7B, published.LLADA2_MINI, published.LLADA_8B, published.DREAM_7B]),
    st.integers(1, 64),
    st.integers(1, 2048),
    st.integers(1, 1024),
    st.sampled_from(["bfloat16", "float32"]),
    st.booleans(),
)
def test_more_of_anything_takes_no_less(
    target: published.Published, states: int, prompt: int, new: int, dtype: str, gpu: bool
) -> None:
    caches = ("exact",) if target.shape.experts or target.shape.qk_norm else ("dual", "prefix", "none")
    for cache in caches:
        size = SequenceSize(block_length=32, max_new_tokens=new, states=states, prompt_tokens=prompt, cache=cache)
        need = memory_need(target.shape, dtype, size, gpu=gpu)
        assert need.total == need.weights + need.cache + need.activations + need.logits
        for more in ({"states": states + 1}, {"max_new_tokens": new + 32}, {"sampled": True}):
            assert memory_need(target.shape, dtype, replace(size, **more), gpu=gpu).total >= need.total


def test_a_need_says_its_parts() -> None:
    need = MemoryNeed(weights=16_381_470_720, cache=113_246_208, activations=240_000_000, logits=1_000_000)
    assert str(need) == "16.7 GB (weights 16.4, cache 0.11, activations 0.24, logits 0.001)"


def test_a_half_precision_head_is_widened_in_parts_with_the_same_logits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = load_target(write_checkpoint(tmp_path, tied=False), dtype="bfloat16")
    hidden_NLH = torch.randn(3, 5, 32, generator=torch.Generator().manual_seed(1)).bfloat16()
    head_VH = target._head_VH.float()
    expected = hidden_NLH.float() @ head_VH.T
    never = torch.zeros(len(head_VH), dtype=torch.bool)
    never[target._never] = True
    for part in (7, 100, len(head_VH), 10_000):
        monkeypatch.setattr("workers.targets.loaded.HEAD_CHUNK", part)
        logits = target.logits(hidden_NLH)
        assert (logits.dtype, logits.shape) == (torch.float32, (3, 5, len(head_VH)))
        assert bool((logits[..., never] == -torch.inf).all())
        torch.testing.assert_close(logits[..., ~never], expected[..., ~never], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_are_asked_for_one_state_at_a_time(temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    target, asked = ToyTarget(seed=1, vocab_size=40, drift=0.1), []
    real = ToyTarget.logits
    monkeypatch.setattr(ToyTarget, "logits", lambda self, hidden: asked.append(hidden.shape[:-1]) or real(self, hidden))
    spec = DecodeSpec(max_new_tokens=24, block_length=8, temperature=temperature)
    made = decode(target, SsdDrafter(budget=6), [1, 2], spec=spec, seed=0)
    assert made.counters.nfe < 24  # several states a forward
    assert asked
    assert all(len(shape) == 1 and shape[0] <= 8 for shape in asked)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(0, 9),
    st.integers(1, 9),
    st.sampled_from([(2, 0.7), (5, 0.3), (8, 0.9)]),
    st.sampled_from([(False, False), (True, False), (True, True)]),
    st.sampled_from([("exact", False), ("product", False), ("product", True), ("subset", True)]),
    st.booleans(),
)
def test_no_round_forwards_or_keeps_more_than_is_reckoned_with(
    seed: int,
    prompt: int,
    budget: int,
    rule: tuple[int, float],
    crossing: tuple[bool, bool],
    accepted: tuple[Acceptance, bool],
    knows: bool,
) -> None:
    """Positions of every forward, and rows of logits alive whenever a state is judged."""
    spec = DecodeSpec(max_new_tokens=20, block_length=rule[0], commit="threshold", tau=rule[1])
    spy, target = SpyTarget(ToyTarget(seed=seed, drift=0.05, scale=3.0)), ToyTarget(seed=seed, drift=0.05, scale=3.0)
    drafter = DrafterSpec(
        name="any",
        kind="freedave",
        budget=budget,
        cross_block=crossing[0],
        refresh=crossing[1],
        acceptance=accepted[0],
        max_commit=accepted[1],
    )
    size = replace(size_of(spec, drafter, cache="exact"), prompt_tokens=prompt)
    future: dict[tuple[int, BlockState], tuple[Commit, ...]] = {}
    kept: list[weakref.ref[Tensor]] = []
    most = 0

    def watch(seen: Seen) -> None:
        future[seen.start, seen.state] = seen.step

    def counted(*args: Any) -> Verdict:
        nonlocal most
        verdict = judge(*args)
        kept.append(weakref.ref(verdict.logits_RV))
        most = max(most, sum(len(rows) for ref in kept if (rows := ref()) is not None))
        return verdict

    decode(target, NoDrafter(), [1] * prompt, spec=spec, seed=0, watch=watch)
    made = KnowingStepsDrafter(future, budget) if knows else RandomStepsDrafter(seed, budget)
    with patch("workers.decoding.active.judge", counted):
        decode(spy, made, [1] * prompt, spec=spec, seed=0, verification=Verification.of(drafter))  # type: ignore[arg-type]
    assert max(asked.blocks for asked in spy.asked) * spec.block_length <= size.forwarded
    assert 0 < most <= size.judged


def test_what_is_reckoned_with_comes_up() -> None:
    """Every draft crosses, with a filled block along; a walk to the end of a block and over it keeps that many rows."""
    assert SequenceSize(block_length=8, max_new_tokens=64, states=5, crosses=True).forwarded == (1 + 2 * 4 + 1) * 8
    assert SequenceSize(block_length=8, max_new_tokens=64, states=5, crosses=True).judged == 8 + (8 + 7 + 6 + 5 + 4) + 8
    assert SequenceSize(block_length=8, max_new_tokens=64, states=5).judged == 8 + (8 + 7 + 6 + 5 + 4)
    assert SequenceSize(block_length=8, max_new_tokens=64, states=5, judges_all=True).judged == 8 + 5 * 8


@pytest.mark.parametrize(("kind", "checkpoint"), [("spot-sets", "sets-tiny-sdar"), ("spot", "spot-tiny-sdar")])
def test_a_model_that_drafts_is_reckoned_with(kind: str, checkpoint: str) -> None:
    """Its weights in float32 (they are stored in half that) and, of a set model, the vocabulary as it reads it."""
    spec, shape = DecodeSpec(commit="threshold" if kind == "spot-sets" else "standard"), published.SDAR_1_7B.shape
    needs = []
    for drafter in (
        DrafterSpec(name="any", kind=kind, budget=16, checkpoint=checkpoint),
        DrafterSpec(name="any", kind=kind, budget=32, checkpoint=checkpoint),
        DrafterSpec(name="any", kind=kind, budget=16, checkpoint="not/there"),
    ):
        size = size_of(spec, drafter, cache="exact")
        needs.append(memory_need(shape, "bfloat16", size, gpu=True))
    some, more, without = needs
    stored = 2 * (ZOO / "drafters" / checkpoint / "model.safetensors").stat().st_size
    table = 4 * 151936 * 88 if kind == "spot-sets" else 0
    assert table + 0.95 * stored < some.drafter < table + stored + 60_000_000
    assert some.drafter < more.drafter
    assert without.drafter == 0
    assert replace(some, drafter=0) == without
    assert some.total == without.total + some.drafter
    assert f"drafter {gigabytes(some.drafter)}" in str(some)


def test_of_reading_the_vocabulary_only_what_decoding_does_not_take_counts() -> None:
    model = ModelSize(
        parameters=10, block_length=32, layers=1, width=32, heads=8, feedforward=64, hidden=2048, candidate_width=8
    )
    small = replace(SIZE, states=2, model=model, prompt_tokens=1, max_new_tokens=1)
    need = memory_need(published.SDAR_1_7B.shape, "bfloat16", small, gpu=True)
    kept, binding = 4 * (10 + 151936 * 8), 16384 * (2048 * (2 + 4 + 4) + 4 * 8)
    assert need.drafter == kept + binding - need.cache - need.activations - need.logits
    large = memory_need(published.SDAR_1_7B.shape, "bfloat16", replace(small, states=400), gpu=True)
    assert large.drafter == kept + model.drafting(399)


CHILD = """
import json, sys, torch
from workers.targets.caches import PrefixCache, copies_attention
from workers.targets.layers import Body
from workers.targets.memory import forward_bytes
from workers.targets.shape import BodyShape

torch.set_num_threads(1)
dtype, mlp, states, kept, crossing = json.loads(sys.argv[1])
shape = BodyShape(vocab_size=64, hidden=1024, layers=1, heads=16, kv_heads=4, head_dim=128, mlp=mlp, norm_eps=1e-6,
                  rope_theta=1e6, tied=True)
kind = getattr(torch, dtype)
with torch.device("meta"):
    body = Body(shape)
state = {name.removeprefix("model."): torch.full(size, 0.01, dtype=kind) for name, size in shape.weights()}
body.load_state_dict(state, assign=True)
body.requires_grad_(False)

def forward(copies, length, crossing):
    cache = PrefixCache(layers=1, kv_heads=4, head_dim=128, capacity=kept + 32, dtype=kind, device=torch.device("cpu"))
    cache.length = length
    places = torch.arange(length, length + 32).repeat(copies + crossing + 1)
    with torch.inference_mode():
        body(torch.zeros_like(places), places, copies_attention(cache, pending=32, copies=copies, crossing=crossing))

def peak():
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024

forward(1, 32, 0)
open("/proc/self/clear_refs", "w").write("5")
before = peak()
forward(states, kept, crossing)
cache_bytes = 2 * 4 * 128 * (kept + 32) * kind.itemsize
reckoned = forward_bytes(shape, dtype, (states + crossing + 1) * 32, keys=kept + 32, gpu=False)
print((peak() - before - cache_bytes) / reckoned)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from Linux's /proc")
@pytest.mark.parametrize(
    "case", [("float32", 1024, 20, 1024, 0), ("float32", 8192, 40, 32, 0), ("float32", 1024, 11, 1024, 10)]
)
def test_activations_are_near_what_a_forward_takes(case: tuple[str, int, int, int, int]) -> None:
    """Where scores of the cache are the most (many keys), where the MLP is (a wide one), and with crossing copies."""
    assert 0.7 < float(ended(CHILD, case)) < 1.3


DRAFTING = """
import json, sys, torch
from sweeps.spec import DecodeSpec
from tests.toys import ToyTarget
from workers.decoding.loop import decode
from workers.drafters.none import NoDrafter
from workers.drafters.set_scorer import ModelSetScorer
from workers.drafters.set_scores import SetNode
from workers.models.memory import ModelSize
from workers.models.set_facts import SetConfig
from workers.models.set_model import SetModel, bind

torch.set_num_threads(1)
width, vocabulary, states = json.loads(sys.argv[1])
config = SetConfig.sized(block_length=32, hidden=vocabulary, width=width, layers=2)
target, seen = ToyTarget(vocab_size=vocabulary), []  # which embeds a token as wide as its vocabulary
spec = DecodeSpec(max_new_tokens=32, commit="threshold", tau=0.9)
decode(target, NoDrafter(), [], spec=spec, seed=0, watch=lambda one: seen or seen.append(one.fresh()))
(stale,) = seen
node = SetNode(state=stale.state, known=(), path=())
model = SetModel(config).eval()
size = ModelSize.of(config, config.weight_shapes)
assert size.parameters == sum(weight.numel() for weight in model.parameters())

def peak_of(made):
    open("/proc/self/clear_refs", "w").write("5")
    before = peak()
    return made(), peak() - before

def peak():
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024

bound, binding = peak_of(lambda: bind(model, target))
ModelSetScorer(model, bound.table_VE, stale)([node])
_, drafting = peak_of(lambda: ModelSetScorer(model, bound.table_VE, stale)([node] * states))
table = size.kept(vocabulary) - 4 * size.parameters
item = target.embed(torch.zeros(1, dtype=torch.int64)).element_size()
print(json.dumps([binding / (table + size.binding(vocabulary, item)), drafting / size.drafting(states)]))
"""


def ended(child: str, case: Any) -> str:
    """What a process of its own prints, whose freed memory goes back to the system at once."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    command = [sys.executable, "-c", child, json.dumps(case)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from Linux's /proc")
@pytest.mark.parametrize("case", [(256, 3000, 256), (512, 1000, 128)])
def test_what_a_set_model_takes_is_bounded_and_not_by_far(case: tuple[int, int, int]) -> None:
    """Binding a target's vocabulary, and a batch of states."""
    binding, drafting = json.loads(ended(DRAFTING, case))
    assert 0.6 < binding < 1.05
    assert 0.5 < drafting < 1.05
