"""Recording a trajectory: draft-free decoding of one prompt, watched step by step.

Shapes: S steps, R rows of one step (masked positions), K candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeps.cell import Cell
from workers.decoding.loop import decode
from workers.decoding.noise import sample_seed
from workers.decoding.seen import Seen
from workers.decoding.state import Commit
from workers.decoding.tally import Generation
from workers.drafters.none import NoDrafter
from workers.models.set_features import evened
from workers.replay.trace import ROW_ARRAYS, SIZES, STATES, Trace, TraceHeader
from workers.targets.base import Target


@dataclass(slots=True)
class Recorder:
    """A watcher of `decode` that keeps the rows of every step; with `states` also hidden states and noise."""

    states: bool = False
    taken: list[tuple[Commit, ...]] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    seen: list[tuple[int, ...]] = field(default_factory=list)
    rows: dict[str, list[NDArray[Any]]] = field(default_factory=dict)

    def __call__(self, seen: Seen) -> None:
        """One step: the distribution that its commits were decided by."""
        stale = seen.fresh()
        self.taken.append(seen.verdict.step)
        self.margins.append(seen.verdict.margin)
        self.seen.append(stale.state.tokens)
        for name, source in ROW_ARRAYS.items():
            values_LX = getattr(stale, source)
            self.rows.setdefault(name, []).append(values_LX[list(stale.state.open)].numpy())
        if self.states:
            assert stale.hidden_LH is not None, "the decoder left no hidden states"
            hidden_RH = evened(stale.hidden_LH[list(stale.state.open)]).cpu()
            self.rows.setdefault("hidden", []).append(hidden_RH.numpy().astype(np.float16))
            if stale.noise_LK is not None:
                self.rows.setdefault("noise", []).append(stale.noise_LK[list(stale.state.open)].float().numpy())

    def trace(self, header: TraceHeader) -> Trace:
        """Everything seen so far as a trace."""
        commits = [commit for step in self.taken for commit in step]
        arrays: dict[str, NDArray[Any]] = {
            "positions": np.array([commit.position for commit in commits], dtype=np.int32),
            "tokens": np.array([commit.token for commit in commits], dtype=np.int32),
            "margins": narrow(np.array(self.margins, dtype=np.float64)),
        }
        if header.decode.commit == "threshold":
            arrays[SIZES] = np.array([len(step) for step in self.taken], dtype=np.int32)
        for name, parts in self.rows.items():
            arrays[name] = np.concatenate(parts) if name in STATES else narrow(np.concatenate(parts))
        trace = Trace.of(header, arrays)
        assert [step.state.tokens for step in trace.steps] == self.seen, "trace: its states are not the decoder's"
        return trace


def record(
    target: Target, cell: Cell, *, prompt_id: str, prompt_index: int, prompt_ids: Sequence[int], states: bool = False
) -> tuple[Generation, Trace]:
    """Decode one prompt of `cell` draft-free and keep its trajectory, with `states` also what a set model reads.

    Raises ValueError as `decode` does.
    """
    header = TraceHeader(
        cell_id=cell.baseline().cell_id,
        target=target.traits.name,
        target_digest=target.traits.weight_digest,
        dtype=target.traits.dtype,
        mask_id=target.traits.mask_id,
        task=cell.task.name,
        task_digest=cell.task.digest,
        split=cell.task.split,
        prompt_id=prompt_id,
        prompt_index=prompt_index,
        prompt_ids=tuple(prompt_ids),
        seed=cell.seed,
        decode=cell.decode,
    )
    recorder = Recorder(states=states)
    seed = sample_seed(cell.seed, prompt_id)
    generation = decode(target, NoDrafter(), header.prompt_ids, spec=cell.decode, seed=seed, watch=recorder)
    return generation, recorder.trace(header)


def narrow(array: NDArray[Any]) -> NDArray[Any]:
    """The same values in the smallest of int32, float32 and the type they have, if it holds them exactly."""
    small = array.astype(np.int32 if array.dtype.kind == "i" else np.float32)
    return small if np.array_equal(small.astype(array.dtype), array, equal_nan=True) else array
