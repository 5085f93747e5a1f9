"""The two kinds of MLP: SwiGLU, and a mixture of experts with a sigmoid router limited to groups (LLaDA2).

All experts of a layer are one wide SwiGLU whose parts are scaled by the routing weights, zero for experts that were not
chosen. The shape of every product then depends on the number of positions alone, so that no position's result depends
on where another one is routed; and a verification batch touches nearly all experts' weights anyway.

Shapes: X any leading shape of positions, P positions, H hidden, E experts, G groups, F width of an expert.
"""

import torch
import torch.nn.functional as F  # noqa: N812  (its usual name)
from torch import Tensor, nn

from workers.targets.memory import EXPERT_CHUNK
from workers.targets.shape import ExpertShape

TINY = 1e-20  # as published: scores that all vanish give no division by zero


class MLP(nn.Module):
    """SwiGLU."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden, width, bias=False)
        self.up_proj = nn.Linear(hidden, width, bias=False)
        self.down_proj = nn.Linear(width, hidden, bias=False)

    def forward(self, x_XH: Tensor) -> Tensor:
        """The gated product, projected back."""
        out_XH: Tensor = self.down_proj(F.silu(self.gate_proj(x_XH)) * self.up_proj(x_XH))
        return out_XH


class Router(nn.Module):
    """Scores of experts, in float32 or wider. `bias` moves the choice only, never the weights."""

    def __init__(self, hidden: int, shape: ExpertShape) -> None:
        super().__init__()
        self.shape = shape
        self.weight = nn.Parameter(torch.empty(shape.count, hidden))
        self.bias = nn.Parameter(torch.zeros(shape.count))

    def forward(self, x_XH: Tensor) -> Tensor:
        """Weight of every expert at every position `weights_XE`: zero where it was not chosen."""
        wide = torch.promote_types(x_XH.dtype, torch.float32)
        with torch.autocast(x_XH.device.type, enabled=False):
            scores_XE = F.linear(x_XH.to(wide), self.weight.to(wide)).sigmoid()
        chosen_XE = self.choose(scores_XE.detach() + self.bias.detach())
        kept_XE = scores_XE * chosen_XE
        weights_XE: Tensor = kept_XE / (kept_XE.sum(dim=-1, keepdim=True) + TINY) * self.shape.scale
        return weights_XE

    def choose(self, scores_XE: Tensor) -> Tensor:
        """Which experts work: the best of the best groups, a group counting for its two best experts' sum.

        Equal scores go to the lower index, in groups as in experts.
        """
        shape = self.shape
        scores_XGe = scores_XE.view(*scores_XE.shape[:-1], shape.groups, -1)
        groups_XG = best(scores_XGe.topk(2, dim=-1).values.sum(dim=-1), shape.groups_kept)
        return best(scores_XGe.masked_fill(~groups_XG[..., None], -torch.inf).flatten(-2), shape.chosen)


def best(values_XE: Tensor, count: int) -> Tensor:
    """True at the `count` largest values, the lowest index first among equals (`topk` promises no order)."""
    order_Xc = values_XE.sort(dim=-1, descending=True, stable=True).indices[..., :count]
    return torch.zeros_like(values_XE, dtype=torch.bool).scatter(-1, order_Xc, True)


class Mixture(nn.Module):
    """Chosen experts, weighted, and the shared ones. Expert e owns the e-th part of the wide MLP `experts`."""

    def __init__(self, hidden: int, shape: ExpertShape) -> None:
        super().__init__()
        self.router = Router(hidden, shape)
        self.experts = MLP(hidden, shape.count * shape.mlp)
        self.shared = MLP(hidden, shape.shared * shape.mlp) if shape.shared else None

    def forward(self, x_XH: Tensor) -> Tensor:
        """The mixture at every position."""
        parts = torch.split(x_XH.flatten(0, -2), EXPERT_CHUNK if not torch.is_grad_enabled() else x_XH.numel())
        routed_XH = torch.cat([self.routed(part_PH) for part_PH in parts]).view_as(x_XH)
        return routed_XH if self.shared is None else routed_XH + self.shared(x_XH)

    def routed(self, x_PH: Tensor) -> Tensor:
        """The chosen experts' weighted sum."""
        weights_PE = self.router(x_PH).to(x_PH.dtype)
        inner = F.silu(self.experts.gate_proj(x_PH)) * self.experts.up_proj(x_PH)
        inner_PEF = inner.view(*weights_PE.shape, -1) * weights_PE[..., None]
        out_PH: Tensor = self.experts.down_proj(inner_PEF.flatten(-2))
        return out_PH
