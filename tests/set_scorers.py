"""Scorers of commit sets for tests: a hashed one, and one that takes the stale distribution for the next one."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tests.toys import hashed
from workers.decoding.set_tree import grow_sets
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree
from workers.drafters.set_scores import SetNode, SetScores


@dataclass
class HashSets:
    """A seeded pure function of the whole virtual state, path included.

    Chances are multiples of 1 / `grid`: a coarse grid makes sure ones (0 and 1), even ones and many equal products.
    """

    seed: int
    grid: int = 4
    tokens: int = 5
    asked: int = 0

    def __call__(self, nodes: Sequence[SetNode]) -> SetScores:
        self.asked += 1
        rows = [self.row(node) for node in nodes]
        include, token, sure = zip(*rows, strict=True)
        return SetScores(
            include_BL=torch.tensor(include, dtype=torch.float64),
            token_BL=torch.tensor(token),
            sure_BL=torch.tensor(sure, dtype=torch.float64),
        )

    def row(self, node: SetNode) -> tuple[list[float], list[int], list[float]]:
        length = len(node.state.tokens)
        key = self.seed, node.state, node.known, node.path
        include = [hashed(*key, "P", i) % (self.grid + 1) / self.grid for i in range(length)]
        include = [chance if i in node.state.open else 0.0 for i, chance in enumerate(include)]
        token = [hashed(*key, "token", i) % self.tokens for i in range(length)]
        sure = [(1 + hashed(*key, "sure", i) % self.grid) / self.grid for i in range(length)]
        return include, token, sure


@dataclass
class StaleSets:
    """What the stale distribution alone foretells: P is how far its confidence is over the limit, tokens its draws."""

    stale: Stale
    sharpness: float = 1.0

    def __call__(self, nodes: Sequence[SetNode]) -> SetScores:
        stale = self.stale
        over_L = stale.logodds_L - (stale.limit if stale.limit < float("inf") else 2.0)
        include_L = (self.sharpness * over_L).sigmoid()
        rows = []
        for node in nodes:
            open_L = torch.zeros(len(include_L), dtype=torch.bool)
            open_L[[*node.state.open]] = True
            rows.append(torch.where(open_L, include_L, 0.0))
        sure_L = stale.probs_LK[:, 0]
        return SetScores(
            include_BL=torch.stack(rows),
            token_BL=stale.drawn_ids_L2[:, 0].expand(len(nodes), -1),
            sure_BL=sure_L.expand(len(nodes), -1),
        )


@dataclass
class StaleSetsDrafter:
    """The tree of sets over `StaleSets`: a set drafter without a model."""

    budget: int = 6
    gamma: float = 0.0
    sharpness: float = 1.0

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        score = StaleSets(stale, self.sharpness)
        return grow_sets(root, known, stale, budget=self.budget, gamma=self.gamma, score=score)
