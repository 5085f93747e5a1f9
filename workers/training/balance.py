"""Balance of a mixture of experts without a loss of its own (arXiv 2408.15664).

After each step an expert that worked at more than its share of positions gets a lower bias, one that worked at fewer a
higher one. The bias moves the choice of experts only, so that no gradient bends what they learn.
"""

import torch
from torch import Tensor, nn

from workers.targets.layers import Body
from workers.targets.mlp import Router


class Balance:
    """Counts how often each expert of a body works; the counts of the last forward are all it remembers."""

    def __init__(self, body: Body, rate: float) -> None:
        self.rate = rate
        self.routers = [module for module in body.modules() if isinstance(module, Router)]
        self.loads: dict[Router, Tensor] = {}
        for router in self.routers:
            router.register_forward_hook(self._count)

    def _count(self, router: nn.Module, _inputs: tuple[Tensor, ...], weights_XE: Tensor) -> None:
        assert isinstance(router, Router)
        self.loads[router] = (weights_XE.detach() > 0).flatten(0, -2).float().mean(dim=0)

    @torch.no_grad()
    def step(self) -> None:
        """Move the biases by the last forward's loads."""
        for router, load_E in self.loads.items():
            router.bias.add_(torch.sign(load_E.mean() - load_E), alpha=self.rate)

    def uneven(self) -> float:
        """Largest load over the mean load, of the worst layer (1 is even)."""
        return max((float(load_E.max() / load_E.mean()) for load_E in self.loads.values()), default=1.0)
