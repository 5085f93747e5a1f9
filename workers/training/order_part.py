"""One trace as it is kept for training: which commit filled which position when, and the rows of every step.

Shapes: S steps, L block width; `arrays` hold the rows of all steps, one after the other.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from workers.models.features import BEYOND, COMMITTED
from workers.replay.trace import Trace, decode_trace
from workers.training.order_card import Role

Ints = NDArray[np.int64]
Key = tuple[Role, str, str, str, float]
P = TypeVar("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is kept of one trace. `choices_S` is the number of draft depths of a step that leave a choice."""

    path: Path
    sha256: bytes
    role: Role
    target: str
    target_digest: str
    block_length: int
    prompt: str
    task: str
    temperature: float
    rows_S: Ints
    order_SL: NDArray[np.int32]
    choices_S: Ints
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, path: Path, sha256: bytes, trace: Trace, role: Role) -> Self:
        """Raises ValueError for a trace of another commit rule than the standard one, or that ends within a block."""
        header, length = trace.header, trace.header.decode.block_length
        if header.decode.commit != "standard":
            raise ValueError(f"trace: commit rule is {header.decode.rule}: allowed for an order model is standard")
        bounds = np.array(trace.rows, dtype=np.int64)
        rows_S = bounds[1:] - bounds[:-1]
        return cls(
            path=path,
            sha256=sha256,
            role=role,
            target=header.target,
            target_digest=header.target_digest,
            block_length=length,
            prompt=f"{header.task}/{header.prompt_id}",
            task=header.task,
            temperature=header.decode.temperature,
            rows_S=rows_S,
            order_SL=fill_order(trace),
            choices_S=np.maximum(rows_S - 2, 0),  # the known commit and the deepest prefix leave two open
            arrays={name: trace.arrays[name] for name in ("logprobs", "logodds", "entropy", "outside")},
        )

    @property
    def key(self) -> Key:
        """The source it belongs to."""
        return self.role, self.target, self.target_digest, self.task, self.temperature


def kept_prompts(prompts: Iterable[str], held_out: float) -> set[str]:
    """The prompts to keep from training: a share of them, at least one, in the order of a hash, so that adding others
    moves none. Raises ValueError where none is left to train on.
    """
    ranked = sorted(set(prompts), key=lambda prompt: hashlib.sha256(prompt.encode()).digest())
    kept = set(ranked[: math.ceil(held_out * len(ranked))])
    if len(kept) == len(ranked):
        raise ValueError(f"traces: {len(ranked)} prompts: at least 2 are needed, one of them held out")
    return kept


def fill_order(trace: Trace) -> NDArray[np.int32]:
    """`order_SL[s, i]`: the number of the step that filled position i, counted from step s (negative: before it);
    COMMITTED for given tokens, BEYOND for positions that are never filled.

    Raises ValueError for a trace that ends within a block.
    """
    order_SL = np.empty((len(trace), trace.header.decode.block_length), dtype=np.int32)
    starts = np.array([step.start for step in trace.steps])
    for start in np.unique(starts):
        steps = np.flatnonzero(starts == start)
        first = trace.steps[steps[0]].state
        order_L = np.where(np.array(first.tokens) == trace.header.mask_id, BEYOND, COMMITTED)
        for number, step in enumerate(steps):
            order_L[[commit.position for commit in trace.taken[step]]] = number
        relative = order_L - np.arange(len(steps))[:, None]
        order_SL[steps] = np.where((order_L == BEYOND) | (order_L == COMMITTED), order_L, relative)
    rows_S = np.diff(np.array(trace.rows))
    if not np.array_equal(((order_SL >= 0) & (order_SL < BEYOND)).sum(-1), rows_S):
        raise ValueError("trace: it ends within a block")
    return order_SL


def read_parts(paths: Iterable[Path], part_of: Callable[[Path, bytes, Trace], P]) -> list[P]:
    """What is kept of the traces in some files (path, sha256, trace), by path. Raises ValueError naming the file."""
    parts = []
    for path in sorted(paths):
        data = path.read_bytes()
        try:
            parts.append(part_of(path, hashlib.sha256(data).digest(), decode_trace(data)))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return parts


def digest_of(contents: Iterable[bytes]) -> str:
    """sha256 (hex) over the contents of all files, of their own sha256."""
    return hashlib.sha256(b"".join(contents)).hexdigest()


def repeated(values: Iterable[Any], steps: Sequence[int], kind: type) -> NDArray[Any]:
    """One value a part, repeated for its steps."""
    return np.repeat(np.array(list(values), dtype=kind), steps)
