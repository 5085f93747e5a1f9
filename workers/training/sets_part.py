"""One trace of threshold decoding as it is kept for training: which step filled which position, with which token, and
the rows of every step, hidden states included.

Shapes: S steps, L block width; `arrays` hold the rows of all steps, one after the other.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from workers.models.features import BEYOND
from workers.replay.trace import Trace
from workers.training.order_part import Ints, fill_order

Key = tuple[str, str, str, float, float]
KEPT = ("ids", "logprobs", "logodds", "entropy", "outside", "hidden")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPart:
    """What is kept of one trace. `tokens_SL` is what each step's block holds in the end; `choices_S` the number of
    later steps in the block, each of which is an example.
    """

    path: Path
    sha256: bytes
    target: str
    target_digest: str
    block_length: int
    prompt: str
    task: str
    temperature: float
    tau: float
    limit: float
    rows_S: Ints
    order_SL: NDArray[np.int32]
    tokens_SL: NDArray[np.int32]
    choices_S: Ints
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, path: Path, sha256: bytes, trace: Trace) -> Self:
        """Raises ValueError for a trace of another commit rule, without hidden states, or that ends within a block."""
        decode = trace.header.decode
        if decode.commit != "threshold":
            raise ValueError(f"trace: commit rule is {decode.rule}: allowed for a set model is threshold")
        if not trace.states:
            raise ValueError("trace: it was recorded without hidden states, which a set model reads")
        if decode.temperature > 0 and "noise" not in trace.arrays:
            raise ValueError(f"trace: noise is {decode.noise}: allowed for a set model is coupled")
        bounds, order_SL = np.array(trace.rows, dtype=np.int64), fill_order(trace)
        last_S = np.where(order_SL < BEYOND, order_SL, -1).max(-1)  # the block's last step, counted from each
        tokens_SL = np.empty_like(order_SL)
        ends = np.flatnonzero(last_S == 0)
        for first, end in zip([0, *(ends[:-1] + 1)], ends, strict=True):
            tokens_SL[first : end + 1] = trace.steps[end].state.fill(*trace.taken[end]).tokens
        rows = len(trace.arrays["ids"])
        none = np.zeros((rows, trace.arrays["ids"].shape[1]), dtype=np.float32)
        return cls(
            path=path,
            sha256=sha256,
            target=trace.header.target,
            target_digest=trace.header.target_digest,
            block_length=decode.block_length,
            prompt=f"{trace.header.task}/{trace.header.prompt_id}",
            task=trace.header.task,
            temperature=decode.temperature,
            tau=decode.tau,
            limit=decode.limit,
            rows_S=bounds[1:] - bounds[:-1],
            order_SL=order_SL,
            tokens_SL=tokens_SL,
            choices_S=last_S.astype(np.int64),
            arrays={name: trace.arrays[name] for name in KEPT}
            | {"noise": trace.arrays.get("noise", none), "drawn": trace.arrays["drawn_ids"][:, 0]},
        )

    @property
    def key(self) -> Key:
        """The source it belongs to."""
        return self.target, self.target_digest, self.task, self.temperature, self.tau
