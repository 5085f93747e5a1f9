"""Telling oracles the future: draft-free decoding of the same prompt, recorded once a worker and kept for all oracles.

Every oracle and every budget of a prompt shares one trajectory, that of the baseline cell. The memo is bounded by the
commits it holds; what was not asked for longest is forgotten and recorded again when it is asked for.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sweeps.cell import Cell
from sweeps.spec import DecodeSpec
from workers.decoding.loop import decode
from workers.decoding.noise import sample_seed
from workers.decoding.tally import Generation
from workers.drafters.base import Drafter, Oracle
from workers.drafters.none import NoDrafter
from workers.replay.future import Future
from workers.targets.base import Target

MOST_COMMITS = 1_000_000  # about 100 MB: four thousand prompts of 256 tokens
Key = tuple[str, str]


@dataclass(slots=True)
class Futures:
    """The recorded futures of one worker, by the id of the draft-free cell and the prompt's."""

    most_commits: int = MOST_COMMITS
    known: OrderedDict[Key, Future] = field(default_factory=OrderedDict)
    commits: int = 0

    def of(self, target: Target, cell: Cell, prompt_id: str, ids: Sequence[int]) -> Future:
        """The future of a prompt, recorded now where it is not known. Raises as `future_of` and `decode` do."""
        key = cell.baseline().cell_id, prompt_id
        if key in self.known:
            self.known.move_to_end(key)
            return self.known[key]
        seed = sample_seed(cell.seed, prompt_id)
        return self.keep(key, future_of(target, ids, spec=cell.decode, seed=seed))

    def heard(self, cell: Cell, prompt_id: str, generation: Generation) -> None:
        """Remember a generation of a draft-free cell, which is the future of its variants where the noise is shared.

        Only the standard rule has oracles.
        """
        if cell.decode.noise == "coupled" and cell.decode.commit == "standard":
            self.keep((cell.cell_id, prompt_id), Future.of(generation, cell.decode.block_length))

    def keep(self, key: Key, future: Future) -> Future:
        """Remember a future, and forget others where there are too many."""
        self.forget(key)
        self.known[key] = future
        self.commits += len(future)
        while self.commits > self.most_commits and len(self.known) > 1:
            self.forget(next(iter(self.known)))
        return future

    def forget(self, key: Key) -> None:
        """Drop a future, if it is known."""
        if key in self.known:
            self.commits -= len(self.known.pop(key))


def future_of(target: Target, ids: Sequence[int], *, spec: DecodeSpec, seed: int) -> Future:
    """The future of a prompt, recorded draft-free. `seed` is the sample's own: drafters with it meet the same noise.

    Raises ValueError under independent noise: no run follows the record, and its draws come back in other forwards, so
    that a drafter which knows them bends the distribution of what is committed. Raises ValueError for another commit
    rule than the standard one: a future is a list of commits, not of steps.
    """
    if spec.commit != "standard":
        raise ValueError(f"decode.commit is {spec.commit!r}: allowed for an oracle is 'standard'")
    if spec.noise == "independent":
        raise ValueError("decode.noise is 'independent': allowed for an oracle is 'coupled', where the future is one")
    return Future.of(decode(target, NoDrafter(), ids, spec=spec, seed=seed), spec.block_length)


def told(drafter: Drafter | Oracle, future: Callable[[], Future]) -> Drafter:
    """The drafter as it is; an oracle is told the prompt's future, which is recorded only for it."""
    return drafter.knowing(future()) if isinstance(drafter, Oracle) else drafter
