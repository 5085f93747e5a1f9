"""The draft-free trajectory of one prompt: at every step, what the target left behind and what it committed next.

One format for all that looks back: order-model training, oracles, the observation study, and replay (the NFE of any
drafter without a target forward). Every step's `Stale` therefore comes back bit for bit. Kept per step: its commits
(their number too, under a commit rule that makes several) and its margin; per masked position of that step (a row): ids
and log probabilities of the top K, log-odds, entropy, mass outside the top K, and the best two token scores (perturbed
ones at T > 0) with their ids. Not kept, because they follow: probabilities and block states. Values that float32 holds
exactly are kept as float32. A trace for a set model also holds the target's hidden states and shared noise.

Shapes: S steps, R rows (masked positions, step by step, ascending), K candidates, L block width.
"""

from dataclasses import dataclass
from typing import Any, Self

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sweeps.cell import decode_identity
from sweeps.spec import DecodeSpec
from workers.decoding.stale import Stale
from workers.decoding.state import Commit
from workers.replay.blocks import Step, steps_of
from workers.replay.container import pack, unpack

MAGIC = b"SPOTTRC\n"
VERSION = 1
SUFFIX = ".trace"
STEP_ARRAYS = ("positions", "tokens", "margins")
SIZES = "sizes"  # commits of each step, where there may be several
ROW_ARRAYS = {  # name: the field of `Stale` its rows come from
    "ids": "ids_LK",
    "logprobs": "logprobs_LK",
    "logodds": "logodds_L",
    "entropy": "entropy_L",
    "outside": "outside_L",
    "drawn_ids": "drawn_ids_L2",
    "drawn_scores": "drawn_scores_L2",
}
STATES = ("hidden", "noise")  # where a trace is recorded with them


class TraceHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Where a trajectory comes from: target, task, prompt, seed and the decoding rule, as in its draft-free cell."""

    cell_id: str
    target: str
    target_digest: str
    dtype: str
    mask_id: int
    task: str
    task_digest: str
    split: str
    prompt_id: str
    prompt_index: int
    prompt_ids: tuple[int, ...]
    seed: int
    decode: DecodeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A trajectory: `steps[s]` is the state that was forwarded at step s, `taken[s]` what the target filled next.

    With `states` it was recorded for a set model: `hidden` are the target's last hidden states as the model reads them
    (float16, scaled to a root mean square of 1), `noise` the shared noise of the top K tokens where there is any.

    `commits` are those of all steps, in order: one a step under the standard rule, so that `commits[s]` is step s's.
    `margins[s]` is the step's `Verdict.margin`. `arrays` holds the rows of all steps; those of step s
    are `rows[s] .. rows[s + 1]`.
    """

    header: TraceHeader
    commits: tuple[Commit, ...]
    taken: tuple[tuple[Commit, ...], ...]
    margins: tuple[float, ...]
    steps: tuple[Step, ...]
    rows: tuple[int, ...]
    arrays: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def states(self) -> bool:
        """Whether it holds hidden states."""
        return "hidden" in self.arrays

    def stale(self, step: int) -> Stale:
        """What the forward of step `step` left behind, bit for bit."""
        state = self.steps[step].state
        first, last = self.rows[step], self.rows[step + 1]

        def spread(name: str, dtype: type, empty: float = 0) -> Tensor:
            rows_RX = self.arrays[name][first:last]
            full_LX = np.full((len(state.tokens), *rows_RX.shape[1:]), empty, dtype=dtype)
            full_LX[list(state.open)] = rows_RX
            return torch.from_numpy(full_LX)

        probs_RK = torch.from_numpy(self.arrays["logprobs"][first:last].astype(np.float64)).exp()
        logprobs_LK = spread("logprobs", np.float64)
        return Stale(
            state=state,
            temperature=self.header.decode.temperature,
            ids_LK=spread("ids", np.int64),
            probs_LK=torch.zeros_like(logprobs_LK).index_copy_(0, torch.tensor(state.open), probs_RK),
            logprobs_LK=logprobs_LK,
            logodds_L=spread("logodds", np.float64, -np.inf),
            entropy_L=spread("entropy", np.float64),
            outside_L=spread("outside", np.float64),
            drawn_ids_L2=spread("drawn_ids", np.int64),
            drawn_scores_L2=spread("drawn_scores", np.float64),
            fill_order=self.steps[step].fill_order,
            start=self.steps[step].start,
            coupled=self.header.decode.noise == "coupled",
            limit=self.header.decode.limit,
            noise_LK=spread("noise", np.float64) if "noise" in self.arrays else None,
            hidden_LH=spread("hidden", np.float32) if self.states else None,
        )

    @classmethod
    def of(cls, header: TraceHeader, arrays: dict[str, NDArray[Any]]) -> Self:
        """A trace from its stored parts. Raises ValueError when they do not fit one another."""
        allowed = {*STEP_ARRAYS, *ROW_ARRAYS, *((SIZES,) if header.decode.commit == "threshold" else ())}
        with_states = {*STATES} & {*arrays}
        if set(arrays) - with_states != allowed:
            raise ValueError(f"trace: arrays are {sorted(arrays)}: allowed is {sorted(allowed)}")
        commits = tuple(
            Commit(*pair) for pair in zip(arrays["positions"].tolist(), arrays["tokens"].tolist(), strict=True)
        )
        ends = np.cumsum(arrays[SIZES]).tolist() if SIZES in arrays else list(range(1, len(commits) + 1))
        if (ends[-1] if ends else 0) != len(commits) or len(arrays["margins"]) != len(ends):
            raise ValueError(f"trace: {len(commits)} commits and {len(ends)} steps that do not fit one another")
        taken = tuple(commits[first:last] for first, last in zip([0, *ends], ends, strict=False))
        steps = steps_of(header.prompt_ids, taken, mask_id=header.mask_id, decode=header.decode)
        rows = tuple(np.cumsum([0, *(len(step.state.open) for step in steps)]).tolist())
        for name in (*ROW_ARRAYS, *sorted(with_states)):
            if len(arrays[name]) != rows[-1]:
                raise ValueError(f"trace: {name} has {len(arrays[name])} rows: its commits ask for {rows[-1]}")
        margins = tuple(arrays["margins"].tolist())
        return cls(header=header, commits=commits, taken=taken, margins=margins, steps=steps, rows=rows, arrays=arrays)


def encode_trace(trace: Trace) -> bytes:
    """The file content of a trace; equal traces give equal bytes."""
    header = msgspec.to_builtins(trace.header) | {"decode": decode_identity(trace.header.decode)}
    return pack(MAGIC, VERSION, header, trace.arrays)


def decode_trace(data: bytes) -> Trace:
    """The trace in a file's content. Raises ValueError on foreign, truncated or altered bytes or another version."""
    header, arrays = unpack(data, MAGIC, VERSION, "trace")
    try:
        return Trace.of(msgspec.convert(header, type=TraceHeader, strict=True), arrays)
    except msgspec.ValidationError as error:
        raise ValueError(f"trace: header: {error}") from None
