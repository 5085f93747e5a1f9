"""LLaDA and Dream against transformers' Llama and Qwen2, random weights, every position visible to every other.

Those implementations round norms and rotary angles to float32; for the float64 comparison both are replaced by wide
ones here. The caches are approximate: what they compute is written out here as a dense computation in which some keys
and values come from another state of the canvas.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM
from transformers.models.llama import modeling_llama
from transformers.models.qwen2 import modeling_qwen2

from tests.tiny_checkpoints import LAYOUTS
from workers.targets.load import load_target
from workers.training.tiny_tokenizer import save_tokenizer, train_tokenizer

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
FAMILIES = ("llada", "dream")
L, MASK, HIDDEN, LAYERS, HEADS = 4, 2, 32, 3, 4
THEIR_LLADA_NAMES = {
    "model.embed_tokens": "model.transformer.wte",
    "model.norm": "model.transformer.ln_f",
    "lm_head": "model.transformer.ff_out",
    "self_attn.q_proj": "q_proj",
    "self_attn.k_proj": "k_proj",
    "self_attn.v_proj": "v_proj",
    "self_attn.o_proj": "attn_out",
    "mlp.gate_proj": "ff_proj",
    "mlp.up_proj": "up_proj",
    "mlp.down_proj": "ff_out",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ff_norm",
    "model.layers": "model.transformer.blocks",
}


@dataclass(frozen=True)
class Pair:
    """Their model, our checkpoint of the same weights, and how far logits may differ."""

    family: str
    theirs: nn.Module
    folder: Path
    dtype: str

    def ours(self, cache: str = "none"):  # type: ignore[no-untyped-def]
        return load_target(self.folder, dtype=self.dtype, cache=cache)

    def logits(self, canvas: list[int]) -> Tensor:
        """Their logits `logits_CV` under an all-visible mask; row i predicts position i."""
        seen = torch.zeros(1, 1, len(canvas), len(canvas), dtype=getattr(torch, self.dtype))
        with torch.inference_mode():
            logits_CV = self.theirs(torch.tensor([canvas]), attention_mask=seen).logits[0]
        if self.family == "dream":  # the published shift: row 0 stands for itself and for what nothing predicts
            logits_CV = torch.cat((logits_CV[:1], logits_CV[:-1]))
        return logits_CV


def _wide_norm(self: nn.Module, x: Tensor) -> Tensor:
    return self.weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.variance_epsilon)


def _wide_rotary(self: nn.Module, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
    half, theta = HIDDEN // HEADS // 2, self.config.rope_parameters["rope_theta"]
    angles = [[[p * theta ** (-j / half) for j in range(half)] for p in row] for row in position_ids.tolist()]
    both = torch.cat((torch.tensor(angles), torch.tensor(angles)), -1).double()
    return both.cos(), both.sin()


@pytest.fixture(scope="module", params=FAMILIES)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, nn.Module, Path]:
    """A model of theirs with random weights, and its checkpoint in the family's published layout."""
    family: str = request.param
    folder: Path = tmp_path_factory.mktemp("checkpoint")
    tokenizer = train_tokenizer(["some words to merge, 12 + 34"], limit=300)
    save_tokenizer(tokenizer, folder)
    sizes = {
        "vocab_size": len(tokenizer) + 5,
        "hidden_size": HIDDEN,
        "intermediate_size": 48,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5e5},
        "tie_word_embeddings": False,
    }
    torch.manual_seed(0)
    if family == "llada":
        model = LlamaForCausalLM(LlamaConfig(**sizes, num_key_value_heads=HEADS, rms_norm_eps=1e-5)).double()
    else:
        model = Qwen2ForCausalLM(Qwen2Config(**sizes, num_key_value_heads=2, rms_norm_eps=1e-6)).double()
    for name, weight in model.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "norm" in name else 0.0, std=0.3)
    tensors = {}
    for name, weight in model.state_dict().items():
        if family == "llada":
            for old, new in THEIR_LLADA_NAMES.items():
                name = name.replace(old, new)
        tensors[name] = weight.clone()
    save_file(tensors, str(folder / "model.safetensors"))
    config = {**LAYOUTS[family].config, "vocab_size": sizes["vocab_size"], "rope_theta": 5e5}
    if family == "llada":
        config |= {"n_layers": LAYERS, "rms_norm_eps": 1e-5, "embedding_size": sizes["vocab_size"]}
        config |= {"weight_tying": False, "mlp_hidden_size": 48}
    else:
        config |= {"num_hidden_layers": LAYERS, "tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(config))
    return family, model, folder


@pytest.fixture(params=TOLERANCE)
def pair(
    request: pytest.FixtureRequest, written: tuple[str, nn.Module, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Pair]:
    family, model, folder = written
    if request.param == "float64":
        for module, name in ((modeling_llama, "Llama"), (modeling_qwen2, "Qwen2")):
            monkeypatch.setattr(getattr(module, f"{name}RMSNorm"), "forward", _wide_norm)
            monkeypatch.setattr(getattr(module, f"{name}RotaryEmbedding"), "forward", _wide_rotary)
    dtype = getattr(torch, request.param)
    torch.set_default_dtype(dtype)
    theirs = type(model)._from_config(model.config, dtype=dtype, attn_implementation="sdpa").eval()
    theirs.load_state_dict(model.state_dict())
    yield Pair(family, theirs.to(dtype), folder, request.param)
    torch.set_default_dtype(torch.float32)


def _same(ours_XV: Tensor, theirs_XV: Tensor, dtype: str) -> None:
    kept = ours_XV.isfinite()
    assert kept.any(dim=-1).all()
    scale = max(1.0, theirs_XV.abs().max().item())
    torch.testing.assert_close(ours_XV[kept], theirs_XV[kept], rtol=0, atol=TOLERANCE[dtype] * scale)


def _ids(count: int, seed: int) -> list[int]:
    return torch.randint(5, 250, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def test_dense_forward_equals_transformers(pair: Pair) -> None:
    ids, ours = _ids(17, seed=1), pair.ours()
    logits_CV = ours.logits(ours.dense(torch.tensor([ids]), None)[0])
    if pair.family == "dream":
        logits_CV = torch.cat((logits_CV[:1], logits_CV[:-1]))
    _same(logits_CV, pair.logits(ids), pair.dtype)


@pytest.mark.parametrize("prompt", [1, 3, 4, 6, 9])
def test_copies_without_a_cache_are_whole_canvases(pair: Pair, prompt: int) -> None:
    """Prompt, then a mask for each of 10 new tokens, in whole blocks; every copy is a canvas with another block."""
    ids, ours = _ids(prompt, seed=2), pair.ours("none")
    start, total = prompt // L * L, -(-(prompt + 10) // L) * L
    session = ours.start(ids, block_length=L, max_new_tokens=10)
    copies = [_ids(L, seed=3), [MASK] * L, _ids(L, seed=4)]
    logits_NLV = ours.logits(session.forward(torch.tensor(copies)))
    for copy, logits_LV in zip(copies, logits_NLV, strict=True):
        canvas = ids[:start] + copy + [MASK] * (total - start - L)
        rows = pair.logits(canvas)[start : start + L]
        first = 1 if pair.family == "dream" and start == 0 else 0  # nothing predicts position 0
        _same(logits_LV[first:], rows[first:], pair.dtype)
    assert session.positions == 3 * total


@pytest.mark.parametrize("cache", ["none", "prefix", "dual"])
@pytest.mark.parametrize("prompt", [1, 3, 6, 8])
def test_the_first_state_of_a_block_is_exact_with_every_cache(pair: Pair, cache: str, prompt: int) -> None:
    ids, ours = _ids(prompt, seed=5), pair.ours(cache)
    start, total = prompt // L * L, -(-(prompt + 10) // L) * L
    canvas = ids + [MASK] * (total - prompt)
    session = ours.start(ids, block_length=L, max_new_tokens=10)
    for block in (1, 2):
        block_L = canvas[start : start + L]
        logits_LV = ours.logits(session.forward(torch.tensor([block_L])))[0]
        first = 1 if pair.family == "dream" and start == 0 else 0
        _same(logits_LV[first:], pair.logits(canvas)[start + first : start + L], pair.dtype)
        assert session.positions == block * total
        canvas[start : start + L] = _ids(L, seed=6 + block)
        session.commit(torch.tensor(canvas[start : start + L]))
        start += L
        assert session.prefix_length == start


@pytest.mark.parametrize("cache", ["prefix", "dual"])
def test_a_cache_keeps_keys_and_values_of_the_blocks_first_state(pair: Pair, cache: str) -> None:
    """Written out: at kept positions keys and values are those of the canvas as it was, elsewhere they are fresh."""
    ids, ours = _ids(10, seed=9), pair.ours(cache)
    session = ours.start(ids, block_length=L, max_new_tokens=9)
    before = ids + [MASK] * 10
    copies = [[*ids[8:], 33, MASK], [*ids[8:], MASK, 44]]
    hidden_NLH = session.forward(torch.tensor(copies))
    first = 7 if pair.family == "dream" else 8  # a shifted copy begins one before the block
    own = range(first, 12 if cache == "dual" else 20)
    for copy, hidden_LH in zip(copies, hidden_NLH, strict=True):
        hidden_CH = _frozen(ours.body, before, before[:8] + copy + before[12:], own)
        wanted_LH = hidden_CH[7:11] if pair.family == "dream" else hidden_CH[8:12]
        torch.testing.assert_close(hidden_LH, wanted_LH, rtol=0, atol=1e-4 if pair.dtype == "float32" else 1e-10)
    assert session.positions == 20 + 2 * len(own)


def _frozen(body: nn.Module, before: list[int], now: list[int], own: range) -> Tensor:
    """Hidden states of the canvas `now` where keys and values outside of `own` are taken from a run on `before`."""
    kept: list[tuple[Tensor, Tensor]] = []
    places = torch.arange(len(now))
    stale = torch.tensor([i not in own for i in range(len(now))])

    def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        group = q.shape[1] // k.shape[1]
        out = torch.empty_like(q)
        for head in range(q.shape[1]):
            scores = q[:, head] @ k[:, head // group].T / q.shape[2] ** 0.5
            out[:, head] = scores.softmax(-1) @ v[:, head // group]
        return out

    def remember(_layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        kept.append((k, v))
        return mix(q, k, v)

    def replaced(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        old_k, old_v = kept[layer]
        return mix(q, torch.where(stale[:, None, None], old_k, k), torch.where(stale[:, None, None], old_v, v))

    with torch.inference_mode():
        body(torch.tensor(before), places, remember)
        hidden: Tensor = body(torch.tensor(now), places, replaced)
    return hidden


def test_bfloat16_logits_are_float32_and_near_the_wide_ones(written: tuple[str, nn.Module, Path]) -> None:
    ids = torch.tensor([_ids(12, seed=15)])
    wide, narrow = (load_target(written[2], dtype=dtype) for dtype in ("float64", "bfloat16"))
    exact, rounded = (target.logits(target.dense(ids, None)) for target in (wide, narrow))
    assert rounded.dtype == torch.float32
    kept = exact.isfinite()
    assert (exact[kept] - rounded[kept]).abs().mean() < 0.05 * exact[kept].std()
