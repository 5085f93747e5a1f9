"""LLaDA2 against transformers' Qwen3 with half-rotary heads and a mixture of experts written out token by token.

Theirs is the layer's attention, norms and dense MLP; the rotation of half a head and the mixture are the plain loops
below. For float64 their norm, which rounds to float32, is replaced by a wide one.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import Qwen3Config, Qwen3ForCausalLM
from transformers.models.qwen3 import modeling_qwen3

from tests.tiny_checkpoints import EXPERTS, LAYOUTS
from workers.targets.block_causal import BlockCausalTarget
from workers.targets.layers import block_causal
from workers.targets.load import load_target
from workers.targets.memory import EXPERT_CHUNK
from workers.targets.mlp import Mixture, Router
from workers.targets.shape import ExpertShape
from workers.training.tiny_tokenizer import save_tokenizer, train_tokenizer

TOLERANCE = {"float64": 1e-10, "float32": 2e-5}
L, HIDDEN, HEADS, KV, WIDTH, TURNING, LAYERS = 4, 32, 4, 2, 8, 4, 3
THETA = 6e5


def routing(scores: Sequence[float], bias: Sequence[float], shape: ExpertShape) -> dict[int, float]:
    """The chosen experts of one token and their weights, by sorting; equal values go to the lower index."""
    moved = [score + shift for score, shift in zip(scores, bias, strict=True)]
    size = shape.count // shape.groups
    members = [range(g * size, (g + 1) * size) for g in range(shape.groups)]
    worth = [sum(sorted((moved[e] for e in group), reverse=True)[:2]) for group in members]
    groups = sorted(range(shape.groups), key=lambda g: (-worth[g], g))[: shape.groups_kept]
    open_experts = [e for g in sorted(groups) for e in members[g]]
    chosen = sorted(open_experts, key=lambda e: (-moved[e], e))[: shape.chosen]
    total = sum(scores[e] for e in chosen)
    return {e: shape.scale * scores[e] / total for e in chosen}


def mlp(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """SwiGLU of one token."""
    inner = gate @ x
    return down @ (inner * torch.sigmoid(inner) * (up @ x))


class PlainMixture(nn.Module):
    """One token after another, one expert after another, from a layer's published tensors."""

    def __init__(self, tensors: dict[str, Tensor], shape: ExpertShape) -> None:
        super().__init__()
        self.tensors, self.shape = tensors, shape

    def expert(self, name: str, x: Tensor) -> Tensor:
        gate, up, down = (self.tensors[f"{name}.{part}_proj.weight"].to(x.dtype) for part in ("gate", "up", "down"))
        return mlp(x, gate, up, down)

    def forward(self, x_BSH: Tensor) -> Tensor:
        out = []
        for x in x_BSH.flatten(0, -2):
            wide = torch.promote_types(x.dtype, torch.float32)
            scores = torch.sigmoid(self.tensors["gate.weight"].to(x.dtype).to(wide) @ x.to(wide))
            total = self.expert("shared_experts", x)
            for e, weight in routing(scores.tolist(), self.tensors["gate.expert_bias"].tolist(), self.shape).items():
                total = total + weight * self.expert(f"experts.{e}", x)
            out.append(total)
        return torch.stack(out).view_as(x_BSH)


def _turned(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    """Pairs (i, i + TURNING/2) of the first TURNING dimensions turn; the others do not. `q` is [B, heads, S, width]."""
    half = TURNING // 2

    def turn(x: Tensor) -> Tensor:
        out = x.clone()
        for i in range(half):
            c, s = cos[:, None, :, i], sin[:, None, :, i]
            out[..., i] = x[..., i] * c - x[..., i + half] * s
            out[..., i + half] = x[..., i + half] * c + x[..., i] * s
        return out

    return turn(q), turn(k)


class _Angles(nn.Module):
    """Cosine and sine of position * theta^(-2i / TURNING)."""

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        rows = [
            [[p * THETA ** (-2 * i / TURNING) for i in range(TURNING // 2)] for p in r] for r in position_ids.tolist()
        ]
        angles = torch.tensor(rows, dtype=torch.float64)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def _wide_norm(self: nn.Module, x: Tensor) -> Tensor:
    return self.weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.variance_epsilon)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Qwen3ForCausalLM, dict[str, Tensor], Path]:
    """Their model (layer 0 dense), our checkpoint of the same numbers with mixtures in the later layers."""
    folder: Path = tmp_path_factory.mktemp("checkpoint")
    tokenizer = train_tokenizer(["some words to merge, 12 + 34"], limit=300)
    save_tokenizer(tokenizer, folder)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer) + 5,
        hidden_size=HIDDEN,
        intermediate_size=48,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV,
        head_dim=WIDTH,
        tie_word_embeddings=False,
    )
    model = Qwen3ForCausalLM(config).double()
    for name, weight in model.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "norm" in name else 0.0, std=0.3)
    tensors = {}
    theirs = model.state_dict()
    for name, weight in theirs.items():
        if ".k_proj" in name or ".v_proj" in name or (".mlp." in name and ".layers.0." not in name):
            continue
        if ".q_proj" in name:
            parts = [theirs[name.replace("q_proj", f"{part}_proj")] for part in "qkv"]
            tensors[name.replace("self_attn.q_proj", "attention.query_key_value")] = torch.cat(parts)
        else:
            for old, new in (
                ("embed_tokens", "word_embeddings"),
                ("self_attn.o_proj", "attention.dense"),
                ("self_attn.q_norm", "attention.query_layernorm"),
                ("self_attn.k_norm", "attention.key_layernorm"),
            ):
                name = name.replace(old, new)
            tensors[name] = weight.clone()
    for layer in range(1, LAYERS):
        where = f"model.layers.{layer}.mlp"
        tensors[f"{where}.gate.weight"] = torch.randn(8, HIDDEN).double() * 0.3
        tensors[f"{where}.gate.expert_bias"] = torch.randn(8) * 0.2
        for name in ("shared_experts", *(f"experts.{e}" for e in range(8))):
            for part, size in (("gate", (12, HIDDEN)), ("up", (12, HIDDEN)), ("down", (HIDDEN, 12))):
                tensors[f"{where}.{name}.{part}_proj.weight"] = torch.randn(size).double() * 0.3
    save_file(tensors, str(folder / "model.safetensors"))
    written = LAYOUTS["llada2"].config | {"vocab_size": config.vocab_size, "rope_theta": THETA}
    written |= {"num_hidden_layers": LAYERS, "tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(written))
    return model, tensors, folder


@pytest.fixture(params=TOLERANCE)
def pair(
    request: pytest.FixtureRequest,
    written: tuple[Qwen3ForCausalLM, dict[str, Tensor], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[BlockCausalTarget, nn.Module, float]]:
    model, tensors, folder = written
    if request.param == "float64":
        monkeypatch.setattr(modeling_qwen3.Qwen3RMSNorm, "forward", _wide_norm)
    monkeypatch.setattr(modeling_qwen3, "apply_rotary_pos_emb", _turned)
    dtype = getattr(torch, request.param)
    torch.set_default_dtype(dtype)
    theirs = Qwen3ForCausalLM._from_config(model.config, dtype=dtype, attn_implementation="sdpa").eval()
    theirs.load_state_dict(model.state_dict())
    theirs.model.rotary_emb = _Angles()
    for layer in range(1, LAYERS):
        where = f"model.layers.{layer}.mlp."
        parts = {name.removeprefix(where): tensor for name, tensor in tensors.items() if name.startswith(where)}
        theirs.model.layers[layer].mlp = PlainMixture(parts, EXPERTS)
    yield load_target(folder, dtype=request.param), theirs.to(dtype), TOLERANCE[request.param]
    torch.set_default_dtype(torch.float32)


def _theirs(model: nn.Module, ids: list[int], blocks: list[int]) -> Tensor:
    size = len(ids)
    hidden = torch.finfo(model.dtype).min
    mask = torch.tensor([[0.0 if blocks[q] >= blocks[k] else hidden for k in range(size)] for q in range(size)])
    with torch.inference_mode():
        out: Tensor = model(torch.tensor([ids]), attention_mask=mask.to(model.dtype)[None, None]).logits[0]
    return out


def _same(ours_XV: Tensor, theirs_XV: Tensor, tolerance: float) -> None:
    kept = ours_XV.isfinite()
    assert kept.any(dim=-1).all()
    scale = max(1.0, theirs_XV.abs().max().item())
    torch.testing.assert_close(ours_XV[kept], theirs_XV[kept], rtol=0, atol=tolerance * scale)


def _ids(count: int, seed: int) -> list[int]:
    return torch.randint(5, 250, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def test_dense_forward_equals_transformers(pair: tuple[BlockCausalTarget, nn.Module, float]) -> None:
    ours, theirs, tolerance = pair
    ids, blocks = _ids(22, seed=1), [i // L for i in range(22)]
    hidden = ours.dense(torch.tensor([ids]), block_causal(torch.tensor([blocks])))
    _same(ours.logits(hidden[0]), _theirs(theirs, ids, blocks), tolerance)


def test_copies_over_cache_and_pending_block_equal_transformers(
    pair: tuple[BlockCausalTarget, nn.Module, float],
) -> None:
    ours, theirs, tolerance = pair
    prompt = _ids(10, seed=2)
    session = ours.start(prompt, block_length=L, max_new_tokens=20)
    session.forward(torch.tensor([[*prompt[8:], 2, 2]]))
    filled = [*prompt[8:], 40, 41]
    session.commit(torch.tensor(filled))
    sequence = prompt[:8] + filled
    copies = [_ids(L, seed=3), [2] * L, _ids(L, seed=4)]
    for logits_LV, copy in zip(ours.logits(session.forward(torch.tensor(copies))), copies, strict=True):
        whole = sequence + copy
        _same(logits_LV, _theirs(theirs, whole, [i // L for i in range(16)])[12:], tolerance)


# Scores on a coarse grid tie often; a bias that prefers an expert must not change its weight.
SHAPES = (
    EXPERTS,
    ExpertShape(count=8, chosen=2, groups=2, groups_kept=1, mlp=4, shared=0, scale=1.0, dense_layers=0),
    ExpertShape(count=6, chosen=6, groups=3, groups_kept=3, mlp=4, shared=1, scale=2.5, dense_layers=0),
)


@settings(max_examples=150, deadline=None)
@given(shape=st.sampled_from(SHAPES), data=st.data())
def test_routing_equals_sorting_with_ties_and_bias(shape: ExpertShape, data: st.DataObject) -> None:
    grid = st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0])
    logits = data.draw(st.lists(grid, min_size=shape.count, max_size=shape.count))
    bias = data.draw(st.lists(st.sampled_from([0.0, 0.5, -0.25]), min_size=shape.count, max_size=shape.count))
    router = Router(1, shape).double()
    with torch.no_grad():
        router.weight.copy_(torch.tensor(logits)[:, None])
        router.bias.copy_(torch.tensor(bias))
    scores = torch.tensor(logits, dtype=torch.float64).sigmoid().tolist()
    expected = routing(scores, bias, shape)
    weights = router(torch.ones(1, 1, dtype=torch.float64))[0]
    assert {e for e, weight in enumerate(weights.tolist()) if weight} == set(expected)
    for e, weight in expected.items():
        assert weights[e].item() == pytest.approx(weight, abs=1e-12)


def test_the_bias_chooses_but_does_not_weigh() -> None:
    shape = SHAPES[1]
    router = Router(1, shape).double()
    with torch.no_grad():
        router.weight.copy_(torch.tensor([3.0, 2.0, 1.0, 0.0, -1.0, -1.0, -1.0, -1.0])[:, None])
        router.bias.copy_(torch.tensor([0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    weights = router(torch.ones(1, 1, dtype=torch.float64))[0]
    one, other = torch.tensor([3.0, 1.0], dtype=torch.float64).sigmoid()
    assert weights[[0, 2]].tolist() == pytest.approx([float(one / (one + other)), float(other / (one + other))])
    assert weights[1] == 0


def test_a_mixture_in_chunks_equals_the_loop_and_rows_stay_apart() -> None:
    torch.manual_seed(1)
    mixture = Mixture(HIDDEN, EXPERTS).double()
    count = EXPERT_CHUNK + 3
    x = torch.randn(count, HIDDEN, dtype=torch.float64)
    with torch.inference_mode():
        mixture.router.weight.normal_(std=0.3)
        mixture.router.bias.normal_(std=0.2)
        out = mixture(x)
        changed = x.clone()
        changed[5] = 1.0
        again = mixture(changed)
    width = EXPERTS.mlp
    tensors = {"gate.weight": mixture.router.weight, "gate.expert_bias": mixture.router.bias}
    for part in ("gate", "up", "down"):
        wide = getattr(mixture.experts, f"{part}_proj").weight
        for e in range(EXPERTS.count):
            cut = slice(e * width, (e + 1) * width)
            tensors[f"experts.{e}.{part}_proj.weight"] = wide[:, cut] if part == "down" else wide[cut]
        tensors[f"shared_experts.{part}_proj.weight"] = getattr(mixture.shared, f"{part}_proj").weight
    some = [0, 5, EXPERT_CHUNK - 1, EXPERT_CHUNK, count - 1]
    with torch.inference_mode():
        torch.testing.assert_close(out[some], PlainMixture(tensors, EXPERTS)(x[some]), rtol=0, atol=1e-10)
    others = torch.arange(count) != 5
    assert torch.equal(out[others], again[others])
    assert not torch.equal(out[5], again[5])


def test_the_expert_bias_stays_wide(written: tuple[Qwen3ForCausalLM, dict[str, Tensor], Path]) -> None:
    _, tensors, folder = written
    state = load_target(folder, dtype="bfloat16").body.state_dict()
    assert state["layers.1.mlp.router.bias"].dtype == torch.float32
    assert torch.equal(state["layers.1.mlp.router.bias"], tensors["model.layers.1.mlp.gate.expert_bias"])
    assert state["layers.1.mlp.router.weight"].dtype == torch.bfloat16


def test_changing_one_copy_leaves_the_other_rows_bit_equal(
    written: tuple[Qwen3ForCausalLM, dict[str, Tensor], Path],
) -> None:
    """Also where the changed copy is routed elsewhere."""
    for dtype in ("float64", "float32", "bfloat16"):
        target = load_target(written[2], dtype=dtype)
        rows = []
        for other in (9, 10, 11):
            session = target.start(_ids(9, seed=11), block_length=L, max_new_tokens=16)
            session.commit(torch.tensor(_ids(L, seed=12)))
            copies = [_ids(L, seed=13), _ids(L, seed=other), _ids(L, seed=14)]
            rows.append(session.forward(torch.tensor(copies)))
        for changed in rows[1:]:
            assert torch.equal(rows[0][[0, 2]], changed[[0, 2]])
            assert not torch.equal(rows[0][1], changed[1])
