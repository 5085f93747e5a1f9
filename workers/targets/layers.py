"""The Qwen3 body: RMSNorm, per-head q/k norm before RoPE, grouped-query attention, SwiGLU.

Parameter names are the published ones (`layers.0.self_attn.q_proj.weight`), so a state dict loads without renaming. How
positions attend is the caller's business: `body` takes a function from queries, keys and values to mixed values, which
is the dense masked attention below in training and parity tests, and the cached two-part attention of `caches.py` in
decoding.

Shapes: X any leading shape of positions, H hidden, h query heads, k key/value heads, d head width, S sequence, B batch.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812  (its usual name)
from torch import Tensor, nn

from workers.targets.shape import BodyShape

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, q_Xhd, k_Xkd, v_Xkd) -> mixed_Xhd."""


class RMSNorm(nn.Module):
    """Root-mean-square norm, computed in float32 or wider and returned in the input's dtype."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x_XH: Tensor) -> Tensor:
        """Normed `x_XH`."""
        wide_XH = x_XH.to(torch.promote_types(x_XH.dtype, torch.float32))
        scale_X1 = torch.rsqrt(wide_XH.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * (wide_XH * scale_X1).to(x_XH.dtype)


class SelfAttention(nn.Module):
    """Projections and head norms; the mixing itself is passed in."""

    def __init__(self, shape: BodyShape) -> None:
        super().__init__()
        self.shape = shape
        q_width, kv_width = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden, q_width, bias=False)
        self.k_proj = nn.Linear(shape.hidden, kv_width, bias=False)
        self.v_proj = nn.Linear(shape.hidden, kv_width, bias=False)
        self.o_proj = nn.Linear(q_width, shape.hidden, bias=False)
        self.q_norm = RMSNorm(shape.head_dim, shape.norm_eps)
        self.k_norm = RMSNorm(shape.head_dim, shape.norm_eps)

    def forward(self, x_XH: Tensor, rotary: tuple[Tensor, Tensor], layer: int, attend: Attend) -> Tensor:
        """Mixed values after the output projection."""
        split = (*x_XH.shape[:-1], -1, self.shape.head_dim)
        q_Xhd = rotate(self.q_norm(self.q_proj(x_XH).view(split)), rotary)
        k_Xkd = rotate(self.k_norm(self.k_proj(x_XH).view(split)), rotary)
        v_Xkd = self.v_proj(x_XH).view(split)
        mixed_XH: Tensor = self.o_proj(attend(layer, q_Xhd, k_Xkd, v_Xkd).flatten(-2))
        return mixed_XH


class MLP(nn.Module):
    """SwiGLU."""

    def __init__(self, shape: BodyShape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.mlp, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.mlp, bias=False)
        self.down_proj = nn.Linear(shape.mlp, shape.hidden, bias=False)

    def forward(self, x_XH: Tensor) -> Tensor:
        """The gated product, projected back."""
        out_XH: Tensor = self.down_proj(F.silu(self.gate_proj(x_XH)) * self.up_proj(x_XH))
        return out_XH


class Layer(nn.Module):
    """One pre-norm Transformer layer."""

    def __init__(self, shape: BodyShape) -> None:
        super().__init__()
        self.self_attn = SelfAttention(shape)
        self.mlp = MLP(shape)
        self.input_layernorm = RMSNorm(shape.hidden, shape.norm_eps)
        self.post_attention_layernorm = RMSNorm(shape.hidden, shape.norm_eps)

    def forward(self, x_XH: Tensor, rotary: tuple[Tensor, Tensor], layer: int, attend: Attend) -> Tensor:
        """Attention and MLP, each added to the stream."""
        x_XH = x_XH + self.self_attn(self.input_layernorm(x_XH), rotary, layer, attend)
        out_XH: Tensor = x_XH + self.mlp(self.post_attention_layernorm(x_XH))
        return out_XH


class Body(nn.Module):
    """Embedding, layers and last norm."""

    def __init__(self, shape: BodyShape) -> None:
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.hidden, shape.norm_eps)

    def forward(self, ids_X: Tensor, positions_X: Tensor, attend: Attend) -> Tensor:
        """Hidden states `hidden_XH` after the last norm, for ids at absolute positions."""
        x_XH = self.embed_tokens(ids_X)
        rotary = rotary_table(positions_X, self.shape.head_dim, self.shape.rope_theta, x_XH.dtype)
        for index, layer in enumerate(self.layers):
            x_XH = layer(x_XH, rotary, index, attend)
        hidden_XH: Tensor = self.norm(x_XH)
        return hidden_XH


def rotary_table(positions_X: Tensor, head_dim: int, theta: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine (`X1d` each). Angles are float32, as in the published implementation, unless `dtype` is
    float64.
    """
    wide = torch.promote_types(dtype, torch.float32)
    exponents = torch.arange(0, head_dim, 2, dtype=wide, device=positions_X.device) / head_dim
    angles_Xe = positions_X.to(wide)[..., None] * (1.0 / theta**exponents)
    angles_X1d = torch.cat((angles_Xe, angles_Xe), dim=-1)[..., None, :]
    return angles_X1d.cos().to(dtype), angles_X1d.sin().to(dtype)


def rotate(x_Xhd: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary position embedding, halves paired (i, i + d/2)."""
    cos_X1d, sin_X1d = rotary
    first, second = x_Xhd.chunk(2, dim=-1)
    return x_Xhd * cos_X1d + torch.cat((-second, first), dim=-1) * sin_X1d


def dense_attention(visible_B1SS: Tensor) -> Attend:
    """Attention over a whole batch of sequences with an arbitrary boolean mask (True where a query sees a key)."""

    def attend(_layer: int, q_BShd: Tensor, k_BSkd: Tensor, v_BSkd: Tensor) -> Tensor:
        group = q_BShd.shape[2] // k_BSkd.shape[2]
        k_BhSd = k_BSkd.transpose(1, 2).repeat_interleave(group, dim=1)
        v_BhSd = v_BSkd.transpose(1, 2).repeat_interleave(group, dim=1)
        mixed_BhSd = F.scaled_dot_product_attention(q_BShd.transpose(1, 2), k_BhSd, v_BhSd, attn_mask=visible_B1SS)
        return mixed_BhSd.transpose(1, 2)

    return attend


def block_causal(blocks_BS: Tensor) -> Tensor:
    """`visible_B1SS`: a position sees every position of its own block and of earlier blocks."""
    return (blocks_BS[:, :, None] >= blocks_BS[:, None, :])[:, None]
