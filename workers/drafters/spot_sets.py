"""SPOT-Sets: a draft tree of whole steps of threshold decoding (arXiv 2610.22543; decoding.md section 6).

The set model reads the target's hidden states and the embeddings of the likeliest tokens, and is asked again for each
virtual state; the search and the mass floor belong to `grow_sets`. It has to see the target's embeddings before it can
draft, once: all drafters of one worker that use the same model on the same target share what it makes of them.
"""

from pathlib import Path
from weakref import WeakValueDictionary

from sweeps.spec import DrafterSpec
from workers.decoding.set_tree import grow_sets
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree
from workers.drafters.base import Drafter
from workers.drafters.set_scorer import ModelSetScorer
from workers.models.set_facts import find_set_model, read_config
from workers.models.set_model import BoundSetModel, bind, load_set_model
from workers.targets.base import Target, TargetTraits

BOUND: WeakValueDictionary[tuple[str, int, str, TargetTraits], BoundSetModel] = WeakValueDictionary()


class SetDrafter:
    """Proposes the `budget` states of largest mass, beside the target whose embeddings `bound` holds."""

    def __init__(self, spec: DrafterSpec, bound: BoundSetModel) -> None:
        self.spec = spec
        self.budget = spec.budget
        self.bound = bound

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        """The draft tree below `root`; it goes on in the next block where `stale.beyond` is given.

        Raises ValueError where the distribution was recorded without hidden states: there is nothing to draft from.
        """
        if stale.hidden_LH is None:
            raise ValueError("drafter spot-sets reads hidden states, and this distribution was recorded without")
        score = ModelSetScorer(self.bound.model, self.bound.table_VE, stale)
        return grow_sets(root, known, stale, budget=self.budget, gamma=self.spec.gamma, score=score)


class SpotSets:
    """The drafter before it has seen a target (a `TargetReader`)."""

    def __init__(self, spec: DrafterSpec, path: Path, *, block_length: int, device: str) -> None:
        self.spec = spec
        self.budget = spec.budget
        self.path, self.block_length, self.device = path, block_length, device

    def reading(self, target: Target) -> Drafter:
        """The drafter for this target.

        Raises ValueError when the model is for other blocks or hidden states, or is by now another one than the spec's.
        """
        key = read_config(self.path).digest, self.block_length, self.device, target.traits
        bound = BOUND.get(key)
        if bound is None:
            model = load_set_model(self.path, block_length=self.block_length, device=self.device)
            bound = BOUND[key] = bind(model, target)
        found = bound.model.config.digest
        if self.spec.digest and found != self.spec.digest:  # the file may have been replaced since it was checked
            raise ValueError(
                f"drafter {self.spec.name}: its set model has digest {found}, the cell says {self.spec.digest}"
            )
        return SetDrafter(self.spec, bound)


def make(spec: DrafterSpec, *, block_length: int, device: str = "cpu") -> SpotSets:
    """The drafter with the set model of `spec.checkpoint`. Raises ValueError when that is missing."""
    return SpotSets(spec, find_set_model(spec.checkpoint), block_length=block_length, device=device)
