"""The key/value cache of one sequence and attention of many block copies over it.

Keys and values (after RoPE) are kept for one sequence, preallocated. A verification forward has N copies of the active
block: the queries of all copies are folded into one product with the prefix keys, each copy's own keys make a second
part, and one softmax runs over both. So the prefix is read once and never copied N times. In a whole-sequence target
what is kept may lie behind the block as well: keys carry their positions, so their order in the cache is no matter.

Shapes: T = pending + N * L positions, h query heads, k key/value heads, g = h / k, d head width, M prefix, R = T * g
folded queries.
"""

import torch
from torch import Tensor

from workers.targets.layers import Attend, dense_attention


class PrefixCache:
    """Keys and values of positions `[0, length)` in every layer. `capacity` is fixed when the sequence starts."""

    def __init__(
        self, *, layers: int, kv_heads: int, head_dim: int, capacity: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._keys_lkCd = torch.empty((layers, kv_heads, capacity, head_dim), dtype=dtype, device=device)
        self._values_lkCd = torch.empty_like(self._keys_lkCd)
        self.capacity = capacity
        self.length = 0

    def write(self, layer: int, start: int, k_Tkd: Tensor, v_Tkd: Tensor) -> None:
        """Store one layer's keys and values of positions `[start, start + T)`; `length` is the caller's to move."""
        stop = start + k_Tkd.shape[0]
        self._keys_lkCd[layer, :, start:stop] = k_Tkd.transpose(0, 1)
        self._values_lkCd[layer, :, start:stop] = v_Tkd.transpose(0, 1)

    def read(self, layer: int, length: int) -> tuple[Tensor, Tensor]:
        """Views `k_kMd, v_kMd` of the first `length` positions."""
        return self._keys_lkCd[layer, :, :length], self._values_lkCd[layer, :, :length]


def prefill_attention(cache: PrefixCache, visible_11MM: Tensor) -> Attend:
    """Dense attention among the prefix's own positions, which are stored on the way."""
    dense = dense_attention(visible_11MM)

    def attend(layer: int, q_Mhd: Tensor, k_Mkd: Tensor, v_Mkd: Tensor) -> Tensor:
        cache.write(layer, 0, k_Mkd, v_Mkd)
        return dense(layer, q_Mhd[None], k_Mkd[None], v_Mkd[None])[0]

    return attend


def refresh_attention(cache: PrefixCache, kept_M: Tensor) -> Attend:
    """Attention of a whole sequence `[1, S]` to itself, storing the keys and values of the positions `kept_M`."""
    dense = dense_attention(None)

    def attend(layer: int, q_1Shd: Tensor, k_1Skd: Tensor, v_1Skd: Tensor) -> Tensor:
        cache.write(layer, 0, k_1Skd[0, kept_M], v_1Skd[0, kept_M])
        return dense(layer, q_1Shd, k_1Skd, v_1Skd)

    return attend


def copies_attention(cache: PrefixCache, *, pending: int, copies: int) -> Attend:
    """Attention of a filled block of `pending` positions (0: none) and of `copies` copies of the active block.

    The filled block's keys and values are stored first, so that it sees the prefix and itself, and the copies see both
    as prefix.
    """
    total = cache.length + pending

    def attend(layer: int, q_Thd: Tensor, k_Tkd: Tensor, v_Tkd: Tensor) -> Tensor:
        if pending:
            cache.write(layer, cache.length, k_Tkd[:pending], v_Tkd[:pending])
        prefix_k_kMd, prefix_v_kMd = cache.read(layer, total)
        positions, heads, width = q_Thd.shape
        kv_heads = k_Tkd.shape[1]
        group = heads // kv_heads
        folded = pending * group
        wide = torch.promote_types(q_Thd.dtype, torch.float32)
        q_kRd = (
            (q_Thd * width**-0.5).view(positions, kv_heads, group, width).transpose(0, 1).reshape(kv_heads, -1, width)
        )
        prefix_scores_kRM = q_kRd @ prefix_k_kMd.transpose(1, 2)
        q_kNrd = q_kRd[:, folded:].view(kv_heads, copies, -1, width)
        own_k_kNdL = k_Tkd[pending:].view(copies, -1, kv_heads, width).permute(2, 0, 3, 1)
        own_v_kNLd = v_Tkd[pending:].view(copies, -1, kv_heads, width).permute(2, 0, 1, 3)
        own_scores_kRL = (q_kNrd @ own_k_kNdL).flatten(1, 2)
        joint_kRj = torch.cat((prefix_scores_kRM[:, folded:], own_scores_kRL), dim=-1)
        weights_kRj = joint_kRj.softmax(dim=-1, dtype=wide).to(q_Thd.dtype)
        own_weights_kNrL = weights_kRj[:, :, total:].reshape(kv_heads, copies, -1, own_k_kNdL.shape[-1])
        mixed_kRd = weights_kRj[:, :, :total] @ prefix_v_kMd + (own_weights_kNrL @ own_v_kNLd).flatten(1, 2)
        if pending:
            filled_weights_kRM = prefix_scores_kRM[:, :folded].softmax(dim=-1, dtype=wide).to(q_Thd.dtype)
            mixed_kRd = torch.cat((filled_weights_kRM @ prefix_v_kMd, mixed_kRd), dim=1)
        mixed_kTgd = mixed_kRd.view(kv_heads, positions, group, width)
        mixed_Thd: Tensor = mixed_kTgd.transpose(0, 1).reshape(positions, heads, width)
        return mixed_Thd

    return attend
