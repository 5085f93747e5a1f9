"""What every target promises: the contract of `workers.targets.base`, in float64 where it is about equality.

The targets are those of the table that are on this machine, and a random checkpoint of each family, each with every
kind of cache that its family can keep.
"""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
import torch
from torch import Tensor

from sweeps.spec import TargetSpec
from tests.tiny_checkpoints import LAYOUTS, write_checkpoint
from workers.catalog import FAMILIES, TARGETS, resolve
from workers.targets.base import Target
from workers.targets.inspect import inspect_checkpoint

L = 8
PROMPT = "Sam has 34 pens. First Sam buys 12, next Sam loses 20."
TOLERANCE = {"float64": 1e-10, "float32": 1e-3}


@cache
def _path(name: str) -> str:
    """A local checkpoint: of the table, or a random one of the family `random-FAMILY`."""
    if name in TARGETS:
        return TARGETS[name].path
    family = name.removeprefix("random-")
    positions = {"max_position_embeddings": 512} if family != "llada" else {"max_sequence_length": 512}
    return str(write_checkpoint(Path(mkdtemp()) / name, family=family, config=positions))


@cache
def _loaded(name: str, kind: str, dtype: str) -> Target:
    path = _path(name)
    family = FAMILIES[inspect_checkpoint(path).architecture]
    loaded: Target = resolve(family.loader)(TargetSpec(name=name, path=path, dtype=dtype, cache=kind), device="cpu")
    assert loaded.traits.cache == kind
    assert loaded.traits.exact_cache == (family.exact_cache or kind == "none")
    return loaded


def _target(name: str, dtype: str = "float64") -> Target:
    checkpoint, _, kind = name.partition(" ")
    return _loaded(checkpoint, kind, dtype)


def _names() -> list[str]:
    local = [name for name, entry in TARGETS.items() if Path(entry.path).is_absolute()]
    found = {name: inspect_checkpoint(TARGETS[name].path).architecture for name in local}
    found |= {f"random-{family}": layout.config["architectures"][0] for family, layout in LAYOUTS.items()}
    return [f"{name} {kind}" for name, architecture in found.items() for kind in FAMILIES[architecture].caches]


def _blocks(target: Target, count: int, seed: int) -> Tensor:
    """Blocks of ordinary tokens with about half of their positions masked."""
    rng = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 260, (count, L), generator=rng)
    return torch.where(torch.rand((count, L), generator=rng) < 0.5, target.traits.mask_id, ids)


@pytest.fixture(params=_names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_batch_of_copies_equals_one_by_one(name: str, dtype: str) -> None:
    target = _target(name, dtype)
    blocks_NL = _blocks(target, 5, seed=0)
    together = target.start(target.encode(PROMPT), block_length=L, max_new_tokens=32).forward(blocks_NL)
    for block_L, hidden_LH in zip(blocks_NL, together, strict=True):
        alone = target.start(target.encode(PROMPT), block_length=L, max_new_tokens=32).forward(block_L[None])
        torch.testing.assert_close(hidden_LH, alone[0], rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_rows_do_not_depend_on_other_rows(name: str, dtype: str) -> None:
    target = _target(name, dtype)
    session = target.start(target.encode(PROMPT), block_length=L, max_new_tokens=32)
    blocks_NL = _blocks(target, 4, seed=1)
    first = session.forward(blocks_NL)
    changed = blocks_NL.clone()
    changed[2] = 7
    second = session.forward(changed)
    assert torch.equal(first[[0, 1, 3]], second[[0, 1, 3]])
    assert torch.equal(first, session.forward(blocks_NL))


def test_a_session_depends_on_committed_blocks_and_the_state_alone(name: str) -> None:
    """Blocks committed one after another, or given as a prompt: the same hidden states, asked in any order."""
    target = _target(name)
    prompt = target.encode(PROMPT)
    total = len(prompt) + 48
    session = target.start(prompt, block_length=L, max_new_tokens=48)
    start = session.prefix_length
    assert start == len(prompt) // L * L
    given, sequence = prompt, prompt[:start]
    for seed in range(3):
        blocks_NL = _blocks(target, 2, seed=10 + seed)
        fresh = target.start(given, block_length=L, max_new_tokens=total - len(given))
        assert fresh.prefix_length == session.prefix_length == len(sequence)
        if seed:
            session.forward(torch.full((1, L), target.traits.mask_id))
        wanted = fresh.forward(blocks_NL)
        torch.testing.assert_close(session.forward(blocks_NL), wanted, rtol=0, atol=1e-10)
        torch.testing.assert_close(session.forward(blocks_NL.flip(0)), wanted.flip(0), rtol=0, atol=1e-10)
        filled = torch.arange(20 + L * seed, 20 + L * (seed + 1))
        session.commit(filled)
        given = sequence = sequence + filled.tolist()


def test_positions_grow_with_every_forward(name: str) -> None:
    target = _target(name)
    session = target.start(target.encode(PROMPT), block_length=L, max_new_tokens=32)
    before = session.positions
    session.forward(_blocks(target, 1, seed=0))
    first = session.positions
    assert first >= before + L
    session.forward(_blocks(target, 3, seed=1))
    assert session.positions >= first + 3 * L
    assert (session.positions - first) % 3 == 0


def test_logits_are_wide_and_never_name_the_mask(name: str) -> None:
    for dtype in ("float64", "float32", "bfloat16"):
        target = _target(name, dtype)
        hidden_1LH = target.start(target.encode(PROMPT), block_length=L, max_new_tokens=8).forward(
            _blocks(target, 1, seed=2)
        )
        logits_1LV = target.logits(hidden_1LH)
        assert logits_1LV.shape == (1, L, target.traits.vocab_size)
        assert logits_1LV.dtype in (torch.float32, torch.float64)
        assert logits_1LV[..., target.traits.mask_id].isneginf().all()
        assert logits_1LV.softmax(-1).isfinite().all()


def test_text_comes_back_without_special_tokens(name: str) -> None:
    target = _target(name)
    ids = target.encode(PROMPT)
    assert all(0 <= i < target.traits.vocab_size for i in ids)
    assert target.traits.mask_id not in ids
    ends = [*target.traits.stop_ids, target.traits.mask_id]
    assert target.decode([*ids, *ends]) == target.decode(ids)
    assert PROMPT in target.decode(ids)


def test_inspection_says_what_loading_finds(name: str) -> None:
    facts, traits = inspect_checkpoint(_path(name.split()[0])), _target(name).traits
    for field in ("weight_digest", "vocab_size", "mask_id", "stop_ids", "max_positions", "parameters"):
        assert getattr(facts, field) == getattr(traits, field)
    assert traits.mask_id not in traits.stop_ids
