"""Decoding single prompts without a sweep: what `spot decode` shows.

Text or ids in; generations out, one at a time, each with a grid that says for every position of every block which
commit filled it, in which round. The same loading and the same decoder as in a sweep.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from sweeps.records import Failure
from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec
from workers.decoding.loop import decode
from workers.decoding.noise import sample_seed
from workers.decoding.tally import Generation
from workers.decoding.verification import Verification
from workers.drafters.base import Oracle
from workers.futures import future_of, told
from workers.guard import failure_of
from workers.loading import Loaded
from workers.room import size_of
from workers.targets.base import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """One position of a block. `commit` (counted from 0) and `round` are None for tokens of the prompt.

    `text` is the token alone, decoded; it may be half a character. `kept` is false from the first stop id on.
    """

    token: int
    text: str
    commit: int | None
    round: int | None
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GridBlock:
    """One block that was decoded, from absolute position `start` on; positions that were not asked for are left out."""

    start: int
    cells: tuple[GridCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """One prompt's generation by a commit `rule`, its text (kept tokens) and its grid; `failure` instead where decoding
    was refused.

    `bound`: an oracle made it, which was told the draft-free trajectory first; its counts are a bound.
    """

    index: int
    prompt_id: str
    prompt_ids: tuple[int, ...]
    rule: str = "standard"
    bound: bool = False
    generation: Generation | None = None
    text: str = ""
    grid: tuple[GridBlock, ...] = ()
    failure: Failure | None = None


def check_device(device: str) -> None:
    """Raise ValueError unless `device` is a torch device that this machine has."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    count = torch.accelerator.device_count() if accelerator else 0
    try:
        asked = torch.device(device)
    except RuntimeError:
        asked = None
    if asked and (
        asked.type == "cpu" or (accelerator and asked.type == accelerator.type and (asked.index or 0) < count)
    ):
        return
    own = [f"{accelerator.type}:{index}" for index in range(count)] if accelerator else []
    raise ValueError(f"device is {device!r}: allowed on this machine is {' | '.join(['cpu', *own])}")


def decode_prompts(
    target_spec: TargetSpec,
    drafter_spec: DrafterSpec,
    spec: DecodeSpec,
    seed: int,
    prompts: Iterable[str | Sequence[int]],
    *,
    device: str = "cpu",
    threads: int = 1,
) -> Iterator[Decoded]:
    """Decode prompts one after another. Text goes through the target's chat template, ids are taken as they are.

    Prompt i has the id `str(i)`, which with `seed` makes its sample seed. Raises ValueError when target or drafter
    cannot be loaded; a prompt that cannot be decoded is a `Decoded` with a failure, and the next one follows.
    """
    check_device(device)
    torch.set_num_threads(threads)
    loaded = Loaded(device)
    target = loaded.get_target(target_spec, size_of(spec, drafter_spec))
    drafter, verification = loaded.get_drafter(drafter_spec, spec), Verification.of(drafter_spec)
    for index, prompt in enumerate(prompts):
        bound = isinstance(drafter, Oracle)
        decoded = Decoded(index=index, prompt_id=str(index), prompt_ids=(), rule=spec.rule, bound=bound)
        try:
            ids = target.encode(prompt) if isinstance(prompt, str) else list(prompt)
            decoded = replace(decoded, prompt_ids=tuple(ids))
            own_seed = sample_seed(seed, decoded.prompt_id)
            future = partial(future_of, target, ids, spec=spec, seed=own_seed)
            teller = told(drafter, future)
            generation = decode(target, teller, ids, spec=spec, seed=own_seed, verification=verification)
            text = target.decode(generation.output_ids[: generation.tokens_kept])
            grid = grid_of(target, ids, generation, spec.block_length)
            yield replace(decoded, generation=generation, text=text, grid=grid)
        except Exception as error:
            failure = replace(failure_of(error), prompt_index=index, prompt_id=decoded.prompt_id)
            yield replace(decoded, failure=failure)


def grid_of(
    target: Target, prompt_ids: Sequence[int], generation: Generation, block_length: int
) -> tuple[GridBlock, ...]:
    """The blocks that were decoded, position by position."""
    tokens = [*prompt_ids, *generation.output_ids]
    commit_of = {len(prompt_ids) + index: commit for commit, index in enumerate(generation.order)}
    kept = len(prompt_ids) + generation.tokens_kept

    def cell(place: int) -> GridCell:
        commit = commit_of.get(place)
        return GridCell(
            token=tokens[place],
            text=target.decode([tokens[place]]),
            commit=commit,
            round=None if commit is None else generation.rounds[commit],
            kept=place < kept,
        )

    starts = range(len(prompt_ids) // block_length * block_length, len(tokens), block_length)
    return tuple(
        GridBlock(
            start=start, cells=tuple(cell(place) for place in range(start, min(start + block_length, len(tokens))))
        )
        for start in starts
    )
