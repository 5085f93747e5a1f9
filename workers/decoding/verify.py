"""One batched forward over a draft tree: the root and every draft, each a copy of its block.

A copy attends to the cached prefix and to itself only (one in the next block to its own filled block too), so a state's
hidden rows do not depend on its neighbours. Shapes: N states, C of them in the next block, L block width, H hidden
width.
"""

import torch
from torch import Tensor

from workers.decoding.tree import DraftTree
from workers.targets.base import Session


def verify(session: Session, tree: DraftTree, device: str) -> Tensor:
    """Hidden states `hidden_NLH` of all states of the tree, in node order."""
    crossings = tree.crossings
    if not crossings:
        return session.forward(ids([state.tokens for state in tree.states], device))
    order = [*(node for node in range(len(tree.states)) if node not in crossings), *crossings]
    blocks_NL = ids([tree.states[node].tokens for node in order], device)
    behind_CL = ids([tree.states[node].behind for node in crossings], device)
    hidden_NLH = session.forward(blocks_NL, behind_CL)
    return hidden_NLH[torch.tensor(order, device=device).argsort()]


def ids(rows: list[tuple[int, ...]], device: str) -> Tensor:
    """Token ids of several blocks."""
    return torch.tensor(rows, dtype=torch.int64, device=device)
