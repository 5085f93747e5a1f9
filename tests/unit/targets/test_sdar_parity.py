"""Logits against an independent implementation: transformers' Qwen3 under a 4-D block-causal mask, random weights.

That implementation rounds norms and rotary angles to float32; for the float64 comparison both are replaced by wide ones
here, so that the two sides differ by rounding only.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import Qwen3Config, Qwen3ForCausalLM
from transformers.models.qwen3 import modeling_qwen3

from workers.targets.block_causal import BlockCausalTarget
from workers.targets.caches import PrefixCache
from workers.targets.layers import Body, block_causal
from workers.targets.load import load_target
from workers.training.tiny_tokenizer import save_tokenizer, train_tokenizer

SHAPES = {
    "multi-head, tied": {"num_attention_heads": 4, "num_key_value_heads": 4, "tie_word_embeddings": True},
    "grouped, untied": {"num_attention_heads": 8, "num_key_value_heads": 2, "tie_word_embeddings": False},
    "heads of the 1.7B": {"num_attention_heads": 16, "num_key_value_heads": 8, "tie_word_embeddings": False},
}
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
L = 4


def _wide_norm(self: modeling_qwen3.Qwen3RMSNorm, x: Tensor) -> Tensor:
    return self.weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.variance_epsilon)


def _wide_rotary(self: modeling_qwen3.Qwen3RotaryEmbedding, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
    half = self.config.head_dim // 2
    theta = self.config.rope_parameters["rope_theta"]
    angles = torch.tensor(
        [[[p * theta ** (-j / half) for j in range(half)] for p in row] for row in position_ids.tolist()]
    )
    both = torch.cat((angles, angles), -1).double()
    return both.cos(), both.sin()


@pytest.fixture(scope="module", params=SHAPES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that transformers itself wrote, with norms and queries far from their initial ones."""
    path: Path = tmp_path_factory.mktemp("checkpoint")
    tokenizer = train_tokenizer(["some words to merge, 12 + 34"], limit=300)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer) + 5,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        head_dim=12,
        max_position_embeddings=256,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        **SHAPES[request.param],
    )
    model = Qwen3ForCausalLM(config).double()
    for name, weight in model.named_parameters():
        torch.nn.init.normal_(weight, mean=1.0 if "norm" in name else 0.0, std=0.3)
    model.save_pretrained(path)
    save_tokenizer(tokenizer, path)
    written = json.loads((path / "config.json").read_text())
    written |= {"architectures": ["SDARForCausalLM"], "model_type": "sdar", "mask_token_id": 2, "eos_token_id": 1}
    (path / "config.json").write_text(json.dumps(written))
    return path


@pytest.fixture(params=TOLERANCE)
def pair(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[BlockCausalTarget, Qwen3ForCausalLM, float]]:
    """Ours and theirs with the same weights, and how far logits may differ."""
    if request.param == "float64":
        monkeypatch.setattr(modeling_qwen3.Qwen3RMSNorm, "forward", _wide_norm)
        monkeypatch.setattr(modeling_qwen3.Qwen3RotaryEmbedding, "forward", _wide_rotary)
    dtype = getattr(torch, request.param)
    torch.set_default_dtype(dtype)
    theirs = Qwen3ForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa").eval()
    yield load_target(folder, dtype=request.param), theirs, TOLERANCE[request.param]
    torch.set_default_dtype(torch.float32)


def _theirs(model: Qwen3ForCausalLM, ids_S: list[int], blocks_S: list[int]) -> Tensor:
    """Logits `logits_SV` of one sequence; the additive mask is written out here, position by position."""
    size = len(ids_S)
    hidden = torch.finfo(model.dtype).min
    mask = torch.tensor([[0.0 if blocks_S[q] >= blocks_S[k] else hidden for k in range(size)] for q in range(size)])
    with torch.inference_mode():
        out = model(torch.tensor([ids_S]), attention_mask=mask.to(model.dtype)[None, None])
    return out.logits[0]


def _same(ours_XV: Tensor, theirs_XV: Tensor, tolerance: float) -> None:
    kept = ours_XV.isfinite()
    assert kept.any(dim=-1).all()
    scale = max(1.0, theirs_XV.abs().max().item())
    torch.testing.assert_close(ours_XV[kept], theirs_XV[kept], rtol=0, atol=tolerance * scale)


def _ids(count: int, seed: int) -> list[int]:
    return torch.randint(5, 250, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def test_dense_forward_equals_transformers(pair: tuple[BlockCausalTarget, Qwen3ForCausalLM, float]) -> None:
    ours, theirs, tolerance = pair
    ids, blocks = _ids(22, seed=1), [i // L for i in range(22)]
    hidden = ours.dense(torch.tensor([ids]), block_causal(torch.tensor([blocks])))
    _same(ours.logits(hidden[0]), _theirs(theirs, ids, blocks), tolerance)


@pytest.mark.parametrize("prefix", [0, 1, 4, 12, 13, 15])
def test_copies_over_the_cache_equal_transformers(
    pair: tuple[BlockCausalTarget, Qwen3ForCausalLM, float], prefix: int
) -> None:
    ours, theirs, tolerance = pair
    head, blocks = _ids(prefix, seed=2), [i // L for i in range(prefix)]
    copies = [_ids(L, seed=seed) for seed in (3, 4, 5)]
    session = ours.open(head, blocks, block_length=L, capacity=64)
    logits_NLV = ours.logits(session.forward(torch.tensor(copies)))
    for copy, logits_LV in zip(copies, logits_NLV, strict=True):
        _same(logits_LV, _theirs(theirs, head + copy, [*blocks, *[99] * L])[prefix:], tolerance)


def test_a_pending_block_is_seen_as_prefix(pair: tuple[BlockCausalTarget, Qwen3ForCausalLM, float]) -> None:
    ours, theirs, tolerance = pair
    prompt = _ids(10, seed=6)
    session = ours.start(prompt, block_length=L, max_new_tokens=20)
    assert session.prefix_length == 8
    first = [*prompt[8:], 2, 2]
    session.forward(torch.tensor([first]))
    filled = [*prompt[8:], 40, 41]
    session.commit(torch.tensor(filled))
    assert session.prefix_length == 12
    sequence = prompt[:8] + filled
    for seed in (7, 8):  # the second forward finds the block in the cache
        copies = [_ids(L, seed=seed), [2] * L]
        logits_NLV = ours.logits(session.forward(torch.tensor(copies)))
        for copy, logits_LV in zip(copies, logits_NLV, strict=True):
            whole = sequence + copy
            _same(logits_LV, _theirs(theirs, whole, [i // L for i in range(16)])[12:], tolerance)


def test_changing_one_copy_leaves_the_other_rows_bit_equal(folder: Path) -> None:
    for dtype in ("float64", "float32", "bfloat16"):
        target = load_target(folder, dtype=dtype)
        rows = []
        for other in (9, 10):
            session = target.start(_ids(9, seed=11), block_length=L, max_new_tokens=16)
            session.commit(torch.tensor(_ids(L, seed=12)))
            copies = [_ids(L, seed=13), _ids(L, seed=other), _ids(L, seed=14)]
            rows.append(session.forward(torch.tensor(copies)))
        assert torch.equal(rows[0][0], rows[1][0])
        assert torch.equal(rows[0][2], rows[1][2])
        assert not torch.equal(rows[0][1], rows[1][1])


def test_bfloat16_logits_are_float32_and_near_the_wide_ones(folder: Path) -> None:
    ids, blocks = torch.tensor([_ids(12, seed=15)]), torch.tensor([[i // L for i in range(12)]])
    wide, narrow = (load_target(folder, dtype=dtype) for dtype in ("float64", "bfloat16"))
    exact = wide.logits(wide.dense(ids, block_causal(blocks)))
    rounded = narrow.logits(narrow.dense(ids, block_causal(blocks)))
    assert exact.dtype == torch.float64
    assert rounded.dtype == torch.float32
    kept = exact.isfinite()
    assert (exact[kept] - rounded[kept]).abs().mean() < 0.05 * exact[kept].std()


class _Sizes(TorchDispatchMode):
    """Collects the shape of every tensor that an operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[int, ...]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = func(*args, **(kwargs or {}))
        for value in out if isinstance(out, tuple | list) else (out,):
            if isinstance(value, Tensor):
                self.shapes.append(tuple(value.shape))
        return out


def test_the_prefix_is_not_copied_for_each_copy(folder: Path) -> None:
    """Whatever has the prefix as one axis and the head width as another is no larger than one copy of the prefix."""
    target = load_target(folder)
    prefix, copies, width = 121, 7, 12
    session = target.open(_ids(prefix, seed=16), [i // L for i in range(prefix)], block_length=L, capacity=160)
    with _Sizes() as seen:
        session.forward(torch.tensor([_ids(L, seed=s) for s in range(copies)]))
    kv_heads = max(s[0] for s in seen.shapes if len(s) == 3 and s[1:] == (prefix, width))
    holding = [s for s in seen.shapes if prefix in s and width in s]
    assert holding
    assert max(torch.Size(s).numel() for s in holding) <= kv_heads * prefix * width


def test_the_cache_is_allocated_once() -> None:
    cache = PrefixCache(layers=2, kv_heads=3, head_dim=4, capacity=12, dtype=torch.float32, device=torch.device("cpu"))
    before = cache.read(1, 12)[0].data_ptr()
    cache.write(1, 4, torch.ones(4, 3, 4), torch.full((4, 3, 4), 2.0))
    keys, values = cache.read(1, 8)
    assert keys.data_ptr() == before
    assert keys[:, 4:].eq(1).all()
    assert values[:, 4:].eq(2).all()


def test_parameter_names_are_the_published_ones(folder: Path) -> None:
    target = load_target(folder)
    theirs = Qwen3ForCausalLM.from_pretrained(folder).model.state_dict()
    assert isinstance(target.body, Body)
    assert target.body.state_dict().keys() == theirs.keys()
