"""One batched forward over a draft tree: the root and every draft, each a copy of the active block.

A copy attends to the cached prefix and to itself only, so a state's hidden rows do not depend on its neighbours.
Shapes: N states, L block width, H hidden width.
"""

import torch
from torch import Tensor

from workers.decoding.tree import DraftTree
from workers.targets.base import Session


def verify(session: Session, tree: DraftTree, device: str) -> Tensor:
    """Hidden states `hidden_NLH` of all states of the tree, in node order."""
    blocks_NL = torch.tensor([state.tokens for state in tree.states], dtype=torch.int64, device=device)
    return session.forward(blocks_NL)
