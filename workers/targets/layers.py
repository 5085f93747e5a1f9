"""The Transformer body of all families: RMSNorm, RoPE, grouped-query attention, SwiGLU or a mixture (`mlp.py`).

Parameter names are Qwen3's (`layers.0.self_attn.q_proj.weight`); `BodyShape` says where families differ. How positions
attend is the caller's business: `body` takes a function from queries, keys and values to mixed values, which is the
dense masked attention below in training and parity tests, and the cached attention of `caches.py` in decoding.

Shapes: X any leading shape of positions, H hidden, h query heads, k key/value heads, d head width, S sequence, B batch.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812  (its usual name)
from torch import Tensor, nn

from workers.targets.mlp import MLP, Mixture
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
        for name, width in shape.projections:
            setattr(self, name, nn.Linear(shape.hidden, width, bias=shape.qkv_bias))
        self.o_proj = nn.Linear(shape.heads * shape.head_dim, shape.hidden, bias=False)
        self.q_norm = RMSNorm(shape.head_dim, shape.norm_eps) if shape.qk_norm else nn.Identity()
        self.k_norm = RMSNorm(shape.head_dim, shape.norm_eps) if shape.qk_norm else nn.Identity()

    def forward(self, x_XH: Tensor, rotary: tuple[Tensor, Tensor], layer: int, attend: Attend) -> Tensor:
        """Mixed values after the output projection."""
        q_Xhd, k_Xkd, v_Xkd = self.project(x_XH)
        q_Xhd, k_Xkd = rotate(self.q_norm(q_Xhd), rotary), rotate(self.k_norm(k_Xkd), rotary)
        mixed_XH: Tensor = self.o_proj(attend(layer, q_Xhd, k_Xkd, v_Xkd).flatten(-2))
        return mixed_XH

    def project(self, x_XH: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values by heads."""
        split = (*x_XH.shape[:-1], -1, self.shape.head_dim)
        made = [getattr(self, name)(x_XH).view(split) for name, _ in self.shape.projections]
        if self.shape.fused_qkv:
            made = list(made[0].split((self.shape.heads, self.shape.kv_heads, self.shape.kv_heads), dim=-2))
        q_Xhd, k_Xkd, v_Xkd = made
        return q_Xhd, k_Xkd, v_Xkd


class Layer(nn.Module):
    """One pre-norm Transformer layer."""

    def __init__(self, shape: BodyShape, index: int) -> None:
        super().__init__()
        self.self_attn = SelfAttention(shape)
        experts = shape.experts if shape.has_experts(index) else None
        self.mlp = Mixture(shape.hidden, experts) if experts else MLP(shape.hidden, shape.mlp)
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
        self.layers = nn.ModuleList(Layer(shape, index) for index in range(shape.layers))
        self.norm = RMSNorm(shape.hidden, shape.norm_eps)

    def forward(self, ids_X: Tensor, positions_X: Tensor, attend: Attend) -> Tensor:
        """Hidden states `hidden_XH` after the last norm, for ids at absolute positions."""
        x_XH = self.embed_tokens(ids_X)
        turning = self.shape.rotary_dim or self.shape.head_dim
        dtype = torch.promote_types(x_XH.dtype, torch.float32) if self.shape.rotary_wide else x_XH.dtype
        rotary = rotary_table(positions_X, turning, self.shape.rope_theta, dtype)
        for index, layer in enumerate(self.layers):
            x_XH = layer(x_XH, rotary, index, attend)
        hidden_XH: Tensor = self.norm(x_XH)
        return hidden_XH


def rotary_table(positions_X: Tensor, turning: int, theta: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine (`X1r` each) of the `turning` first dimensions. Angles are float32, as in the published
    implementations, unless `dtype` is float64.
    """
    wide = torch.promote_types(dtype, torch.float32)
    exponents = torch.arange(0, turning, 2, dtype=wide, device=positions_X.device) / turning
    angles_Xe = positions_X.to(wide)[..., None] * (1.0 / theta**exponents)
    angles_X1r = torch.cat((angles_Xe, angles_Xe), dim=-1)[..., None, :]
    return angles_X1r.cos().to(dtype), angles_X1r.sin().to(dtype)


def rotate(x_Xhd: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary position embedding of the first r dimensions, halves paired (i, i + r/2); the rest stays as it is."""
    cos_X1r, sin_X1r = rotary
    turning = cos_X1r.shape[-1]
    turned_Xhr = x_Xhd[..., :turning]
    first, second = turned_Xhr.chunk(2, dim=-1)
    turned_Xhr = (turned_Xhr * cos_X1r + torch.cat((-second, first), dim=-1) * sin_X1r).to(x_Xhd.dtype)
    return turned_Xhr if turning == x_Xhd.shape[-1] else torch.cat((turned_Xhr, x_Xhd[..., turning:]), dim=-1)


def dense_attention(visible_B1SS: Tensor | None) -> Attend:
    """Attention over a batch of sequences with any boolean mask (True where a query sees a key; None: everywhere)."""

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
