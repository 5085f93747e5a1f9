"""SPOT: a draft tree over the predicted commit order (arXiv 2610.22543; decoding.md section 4).

The order model is asked again for each virtual state; tokens come from the stale distribution. Search, token factors
and the mass floor belong to `grow`. Deterministic: the same root, stale distribution and options give the same tree.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from sweeps.spec import DrafterSpec
from workers.decoding.expand import VirtualState, grow
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree
from workers.drafters.base import Drafter
from workers.drafters.cost_aware import cost_aware
from workers.drafters.stale_view import StaleView
from workers.models.facts import find_order_model
from workers.models.features import KNOWN, OPEN
from workers.models.order_model import OrderModel, load_order_model


class OrderScorer:
    """The order model on one round's stale distribution: `q_BL` for virtual states (see `Scorer`)."""

    def __init__(self, model: OrderModel, stale: Stale) -> None:
        self.model = model
        self.device = model.offsets_C.device
        self.view = StaleView(stale)
        with torch.inference_mode():
            self.stale_1AW = model.embed_stale(self.view.features_AF[None].to(self.device))

    def __call__(self, nodes: Sequence[VirtualState]) -> Tensor:
        """Probabilities of the next commit's position, one row a node."""
        depth_BL = torch.tensor([self._depths(node) for node in nodes])
        with torch.inference_mode():
            columns_BAC = self.view.columns(depth_BL).to(self.device)
            open_BA = (depth_BL[:, self.view.open] == OPEN).to(self.device)
            q_BA = self.model.log_order(self.model.encode(self.stale_1AW, columns_BAC), open_BA).exp().cpu()
            return self.view.spread(q_BA)

    def _depths(self, node: VirtualState) -> list[int]:
        """Fill depth of every position of a node's state."""
        depths = self.view.depth_L.tolist()
        depths[node.known] = KNOWN
        for depth, position in enumerate(node.path, start=1):
            depths[position] = depth
        return depths


class SpotDrafter:
    """Proposes the `budget` states of largest mass."""

    def __init__(self, spec: DrafterSpec, model: OrderModel) -> None:
        self.spec = spec
        self.budget = spec.budget
        self.model = model

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        """The draft tree below `root`."""
        return grow(
            root,
            known[0],
            stale,
            budget=self.budget,
            gamma=self.spec.gamma,
            hedge=self.spec.hedge,
            merge_states=self.spec.merge_states,
            score=OrderScorer(self.model, stale),
        )


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> Drafter:
    """The drafter with the order model of `spec.checkpoint`, cost-aware with `spec.cost`.

    Raises ValueError when one of them is missing or does not fit.
    """
    model = load_order_model(find_order_model(spec.checkpoint), block_length=block_length, device=device)
    return cost_aware(SpotDrafter(spec, model), spec, block_length=block_length)
