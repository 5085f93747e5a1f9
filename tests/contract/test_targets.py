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
from workers.targets.base import Session, Target
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


@pytest.fixture(params=[name for name in _names() if name.endswith(" exact")])
def crosser(request: pytest.FixtureRequest) -> str:
    return str(request.param)


PROMPTS = {"empty": 0, "part of a block": 3, "one block": L, "blocks and a part": 5 * L // 2}


def _sequence(target: Target, prompt: int, filled: int, *, new: int = 5 * L) -> tuple[Session, list[int]]:
    """A session behind a prompt of so many tokens and so many filled blocks that no forward has seen yet, and the
    tokens that it holds.
    """
    ids = target.encode(PROMPT)[:prompt]
    session, sequence = target.start(ids, block_length=L, max_new_tokens=new), ids[: prompt // L * L]
    for block in range(filled):
        tokens = [(31 * block + 7 * i) % 200 + 20 for i in range(L)]
        session.commit(torch.tensor(tokens))
        sequence += tokens
    return session, sequence


def _fronts(count: int) -> Tensor:
    """Filled blocks."""
    return torch.randint(5, 260, (count, L), generator=torch.Generator().manual_seed(77))


@pytest.mark.parametrize("pending", [0, 1, 2])
@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
def test_a_copy_of_the_next_block_is_as_it_would_be_had_its_filled_block_been_committed(
    crosser: str, prompt: int, pending: int
) -> None:
    for dtype, tolerance in TOLERANCE.items():
        target = _target(crosser, dtype)
        session, sequence = _sequence(target, prompt, pending)
        blocks_NL, behind_CL = _blocks(target, 5, seed=3), _fronts(3)
        blocks_NL[3] = target.traits.mask_id  # as a block is when a draft crosses into it
        hidden_NLH = session.forward(blocks_NL, behind_CL)
        assert session.prefix_length == len(sequence)
        wanted_NLH = []
        for block_L, front in zip(blocks_NL, [None, None, *behind_CL], strict=True):
            before = sequence if front is None else sequence + front.tolist()
            fresh = target.start(before, block_length=L, max_new_tokens=5 * L)
            wanted_NLH.append(fresh.forward(block_L[None])[0])
        torch.testing.assert_close(hidden_NLH, torch.stack(wanted_NLH), rtol=0, atol=tolerance)
        chosen_NL, wanted_NL = (target.logits(rows).argmax(-1) for rows in (hidden_NLH, torch.stack(wanted_NLH)))
        assert torch.equal(chosen_NL, wanted_NL)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_a_copy_of_the_next_block_depends_on_no_other_copy(crosser: str, dtype: str) -> None:
    target = _target(crosser, dtype)
    blocks_NL, behind_CL = _blocks(target, 5, seed=4), _fronts(3)
    for pending in (0, 1, 2):
        session, sequence = _sequence(target, 5 * L // 2, pending)
        session.forward(_blocks(target, 2, seed=5))
        first = session.forward(blocks_NL, behind_CL)
        for changed in range(5):
            others = [row for row in range(5) if row != changed]
            blocks, behind = blocks_NL.clone(), behind_CL.clone()
            blocks[changed] = 7
            assert torch.equal(session.forward(blocks, behind)[others], first[others])
            if changed >= 2:
                behind[changed - 2] = 9
                again = session.forward(blocks_NL, behind)
                assert torch.equal(again[others], first[others])
                assert not torch.equal(again[changed], first[changed])
        assert torch.equal(session.forward(blocks_NL, behind_CL), first)
        assert session.prefix_length == len(sequence)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_forward_without_crossing_copies_is_the_same_whatever_crossed_before(crosser: str, dtype: str) -> None:
    """Crossing copies leave no trace in the cache: the later forwards are bit-equal to those of a session without."""
    target = _target(crosser, dtype)
    blocks_NL = _blocks(target, 3, seed=6)
    (plain, _), (crossed, _) = (_sequence(target, 5 * L // 2, 0) for _ in range(2))
    crossed.forward(blocks_NL, _fronts(2))
    for session in (plain, crossed):
        session.forward(blocks_NL)
        session.commit(_fronts(1)[0])
    assert torch.equal(plain.forward(blocks_NL), crossed.forward(blocks_NL))
    assert torch.equal(plain.forward(blocks_NL[:1]), crossed.forward(blocks_NL[:1]))


@pytest.mark.parametrize("filled", [1, 2, 3])
def test_blocks_committed_together_are_as_if_forwarded_one_by_one(crosser: str, filled: int) -> None:
    target = _target(crosser)
    blocks_NL = _blocks(target, 3, seed=8)
    for prompt in PROMPTS.values():
        session, sequence = _sequence(target, prompt, filled)
        assert session.prefix_length == len(sequence)
        wanted = target.start(sequence, block_length=L, max_new_tokens=4 * L).forward(blocks_NL)
        for _ in range(2):  # with the filled blocks in the same forward, and from the cache
            torch.testing.assert_close(session.forward(blocks_NL), wanted, rtol=0, atol=1e-10)


def test_the_last_block_may_be_crossed_into_and_is_the_end(crosser: str) -> None:
    """Two blocks and a half are asked for: three can be committed, the third of them behind a crossing copy."""
    target = _target(crosser)
    session, sequence = _sequence(target, L, 1, new=5 * L // 2)
    last_1L, front_1L = torch.full((1, L), target.traits.mask_id), _fronts(1)
    hidden_1LH = session.forward(last_1L, front_1L)
    session.commit(front_1L[0])
    fresh = target.start(sequence + front_1L[0].tolist(), block_length=L, max_new_tokens=L // 2)
    for own in (session, fresh):
        torch.testing.assert_close(own.forward(last_1L), hidden_1LH, rtol=0, atol=1e-10)
    session.commit(_fronts(2)[1])
    with pytest.raises(ValueError, match=f"full: {4 * L} of {4 * L}"):
        session.commit(_fronts(1)[0])


def test_positions_of_crossing_copies_and_of_filled_blocks_are_counted_exactly(crosser: str) -> None:
    target = _target(crosser)
    for prompt in PROMPTS.values():
        session, _ = _sequence(target, prompt, 0)
        counted = prompt // L * L
        assert session.positions == counted
        for pending, copies, crossing in ((0, 5, 2), (1, 3, 3), (2, 1, 0), (0, 1, 1), (0, 4, 0)):
            for block_L in _fronts(pending):
                session.commit(block_L)
            behind = _fronts(crossing) if crossing else None
            hidden_NLH = session.forward(_blocks(target, copies, seed=9), behind)
            assert hidden_NLH.shape[:2] == (copies, L)
            counted += (pending + copies + crossing) * L
            assert session.positions == counted


def test_who_cannot_cross_says_so(name: str) -> None:
    target = _target(name)
    assert target.traits.crosses == FAMILIES[inspect_checkpoint(_path(name.split()[0])).architecture].exact_cache
    session = target.start(target.encode(PROMPT), block_length=L, max_new_tokens=3 * L)
    if target.traits.crosses:
        assert session.forward(_blocks(target, 2, seed=0), _fronts(1)).shape[:2] == (2, L)
        return
    before = session.positions
    with pytest.raises(ValueError, match="next block needs block-causal attention"):
        session.forward(_blocks(target, 2, seed=0), _fronts(1))
    assert session.positions == before


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
