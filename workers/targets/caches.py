"""The key/value cache of one sequence and attention of many block copies over it.

Keys and values (after RoPE) are kept for one sequence, preallocated. A verification forward has N copies of the active
block: the queries of all copies are folded into one product with the prefix keys, each copy's own keys make a second
part, and one softmax runs over both. So the prefix is read once and never copied N times. A copy of the block behind
the active one has a filled active block of its own in front, whose keys count as its own. In a whole-sequence target
what is kept may lie behind the block as well: keys carry their positions, so their order in the cache is no matter.

Shapes: T = pending + (N + C) * L positions, C of N copies crossing, B = 2 * L, h query heads, k key/value heads,
g = h / k, d head width, M prefix, R folded queries (g for each position).
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


def copies_attention(cache: PrefixCache, *, pending: int, copies: int, crossing: int = 0) -> Attend:
    """Attention of filled blocks of `pending` positions together (0: none), of `copies` copies of the active block and
    of `crossing` copies of the block behind it; the positions come in this order.

    The filled blocks' keys and values are stored first, so that each sees the prefix, those before it and itself, and
    the copies see them all as prefix. The last copies of the active block are the filled ones in front of the crossing
    copies, in the same order: a crossing copy sees the prefix, the one in front of it and itself.
    """
    total = cache.length + pending

    def attend(layer: int, q_Thd: Tensor, k_Tkd: Tensor, v_Tkd: Tensor) -> Tensor:
        if pending:
            cache.write(layer, cache.length, k_Tkd[:pending], v_Tkd[:pending])
        prefix_k_kMd, prefix_v_kMd = cache.read(layer, total)
        positions, heads, width = q_Thd.shape
        kv_heads = k_Tkd.shape[1]
        group = heads // kv_heads
        block = (positions - pending) // (copies + crossing)
        behind = pending + copies * block
        q_kRd = (
            (q_Thd * width**-0.5).view(positions, kv_heads, group, width).transpose(0, 1).reshape(kv_heads, -1, width)
        )
        prefix_scores_kRM = q_kRd @ prefix_k_kMd.transpose(1, 2)

        def mix(first: int, last: int, own_k_kNLd: Tensor, own_v_kNLd: Tensor) -> Tensor:
            """Mixed values of the copies at positions `[first, last)`, over the prefix and keys of their own."""
            rows = slice(first * group, last * group)
            return mix_copies(q_kRd[:, rows], prefix_scores_kRM[:, rows], prefix_v_kMd, own_k_kNLd, own_v_kNLd)

        parts = []
        for first in range(0, pending, block):
            rows, seen = slice(first * group, (first + block) * group), cache.length + first + block
            parts.append(weights_of(prefix_scores_kRM[:, rows, :seen], q_Thd.dtype) @ prefix_v_kMd[:, :seen])
        own_k_kNLd, own_v_kNLd = (by_copy(x_Tkd[pending:behind], copies) for x_Tkd in (k_Tkd, v_Tkd))
        parts.append(mix(pending, behind, own_k_kNLd, own_v_kNLd))
        if crossing:
            both_k_kCBd, both_v_kCBd = (
                torch.cat((own_kNLd[:, -crossing:], by_copy(x_Tkd[behind:], crossing)), dim=2)
                for own_kNLd, x_Tkd in ((own_k_kNLd, k_Tkd), (own_v_kNLd, v_Tkd))
            )
            parts.append(mix(behind, positions, both_k_kCBd, both_v_kCBd))
        mixed_kRd = torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]
        mixed_kTgd = mixed_kRd.view(kv_heads, positions, group, width)
        mixed_Thd: Tensor = mixed_kTgd.transpose(0, 1).reshape(positions, heads, width)
        return mixed_Thd

    return attend


def by_copy(x_Tkd: Tensor, copies: int) -> Tensor:
    """Keys or values of positions, copy by copy: `x_kNLd`."""
    return x_Tkd.view(copies, -1, *x_Tkd.shape[1:]).permute(2, 0, 1, 3)


def weights_of(scores_kRj: Tensor, dtype: torch.dtype) -> Tensor:
    """Softmax of scores, made in float32 or wider, in `dtype`."""
    return scores_kRj.softmax(dim=-1, dtype=torch.promote_types(dtype, torch.float32)).to(dtype)


def mix_copies(
    q_kRd: Tensor, prefix_scores_kRM: Tensor, prefix_v_kMd: Tensor, own_k_kNLd: Tensor, own_v_kNLd: Tensor
) -> Tensor:
    """Mixed values `mixed_kRd` of N copies' queries, over the prefix and each copy's own keys: one softmax for both."""
    kv_heads, copies, _, width = own_k_kNLd.shape
    seen = prefix_v_kMd.shape[1]
    own_scores_kNrL = q_kRd.view(kv_heads, copies, -1, width) @ own_k_kNLd.transpose(2, 3)
    joint_kRj = torch.cat((prefix_scores_kRM, own_scores_kNrL.flatten(1, 2)), dim=-1)
    weights_kRj = weights_of(joint_kRj, q_kRd.dtype)
    own_weights_kNrL = weights_kRj[:, :, seen:].reshape(own_scores_kNrL.shape)
    return weights_kRj[:, :, :seen] @ prefix_v_kMd + (own_weights_kNrL @ own_v_kNLd).flatten(1, 2)
