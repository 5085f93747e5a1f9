"""Traces for tests: recorded from toy targets, or of a target whose commit order is known in advance."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.spec import DecodeSpec, TargetSpec, TaskSpec
from tests.toys import ToyTarget, hashed, normal
from workers.replay.record import record
from workers.replay.trace import Trace, encode_trace


def toy_cell(
    *,
    temperature: float = 0.0,
    length: int = 4,
    new: int = 10,
    task: str = "toy",
    seed: int = 3,
    tau: float | None = None,
) -> Cell:
    """A draft-free cell that a toy target can decode, by the threshold rule where `tau` is given."""
    rule = {} if tau is None else {"commit": "threshold", "tau": tau}
    return Cell(
        target=TargetSpec(name="toy", digest="toy-0", dtype="float64"),
        task=TaskSpec(name=task, kind=task, split="train", digest="d" * 64),
        decode=DecodeSpec(temperature=temperature, block_length=length, max_new_tokens=new, **rule),  # type: ignore[arg-type]
        drafter=NO_DRAFTER,
        seed=seed,
    )


def toy_trace(target: ToyTarget, cell: Cell, index: int = 0, prompt: str = "hello", *, states: bool = False) -> Trace:
    """The trajectory of one prompt, with `states` as a set model's training asks for it."""
    ids = target.encode(prompt)
    return record(target, cell, prompt_id=f"p{index}", prompt_index=index, prompt_ids=ids, states=states)[1]


class OrderedTarget(ToyTarget):
    """Commits by a rule of its own: `next_position(filled)` gets all the confidence, the others hashed crumbs of it.

    What a stale distribution says of any other position is therefore noise.
    """

    next_position: Callable[[tuple[int, ...], int], int] = staticmethod(
        lambda filled, length: min(set(range(length)) - {*filled})
    )

    def row(self, prefix: tuple[int, ...], block: tuple[int, ...]) -> Tensor:
        """Logits of one block copy."""
        length, mask = len(block), self.vocab_size - 1
        crumbs_LV = 0.3 * normal(hashed(self.seed, prefix, block), length, self.vocab_size)
        filled = tuple(i for i, token in enumerate(block) if token != mask)
        if len(filled) < length:
            crumbs_LV[self.next_position(filled, length), hashed(self.seed, prefix) % 7] += 9.0
        return crumbs_LV


def write_traces(folder: Path, traces: list[Trace]) -> list[Path]:
    """One file a trace."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, trace in enumerate(traces):
        path = folder / f"{number:03d}.trace"
        path.write_bytes(encode_trace(trace))
        paths.append(path)
    return paths


def same(left: object, right: object) -> bool:
    """Equality that reads tensors bit for bit, dtype included."""
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    return left == right
