"""Logits of a shipped target on the device against those of the same weights on the CPU in float64.

The states are those of a draft-free run of the reference, so both sides see the same ones: several copies in one
forward, as a verification does, and each alone.

Shapes: N states, L block width, R open positions of all states, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sweeps.identity import NEAR_TIE
from sweeps.spec import DecodeSpec, TargetSpec
from tests.gpu.setting import Row, Rows, Setting
from workers.decoding.loop import decode
from workers.decoding.rule import judge
from workers.decoding.seen import Seen
from workers.decoding.state import BlockState
from workers.drafters.none import NoDrafter
from workers.targets.base import Session, Target
from workers.targets.load import load

COPIES = 9  # a root and eight drafts
LIMIT = 1e-2  # float32 against float64: far above its rounding, far below what a wrong product does


@dataclass(frozen=True, slots=True)
class Path:
    """The states of one block in the order in which they were forwarded, and the filled block."""

    states: tuple[BlockState, ...]
    filled: BlockState


def parity_rows(setting: Setting, spec: TargetSpec, text: str, block_length: int) -> Rows:
    """A row a dtype: differences of logits on two blocks behind the prompt `text`."""
    reference = load(replace(spec, dtype="float64"), device="cpu")
    rule = DecodeSpec(max_new_tokens=2 * block_length, block_length=block_length, ignore_eos=True)
    ids = reference.encode(text)
    paths = paths_of(reference, ids, rule)
    exact = list(logits_of(reference, ids, paths, rule, copies=COPIES))
    for dtype in setting.dtypes:
        target = load(replace(spec, dtype=dtype), device=setting.device)
        yield parity_row(target, spec.name, ids, paths, rule, exact)


def parity_row(
    target: Target, name: str, ids: Sequence[int], paths: Sequence[Path], rule: DecodeSpec, exact: Sequence[Tensor]
) -> Row:
    """Differences of logits, and how often the best token and the next commit agree."""
    dtype = target.traits.dtype
    batched = list(logits_of(target, ids, paths, rule, copies=COPIES))
    alone = list(logits_of(target, ids, paths, rule, copies=1))
    opens = [state.open for path in paths for state in path.states]
    to_exact = difference(batched, exact)
    row: Row = {
        "kind": "parity",
        "target": name,
        "dtype": dtype,
        "states": len(opens),
        "rows": sum(map(len, opens)),
        "to_float64": to_exact | {"same_commit": same_commits(batched, exact, opens, rule)},
        "batched_to_alone": difference(batched, alone) | {"same_commit": same_commits(batched, alone, opens, rule)},
        "near_tie": NEAR_TIE[dtype],
        "problems": [],
    }
    if dtype == "float32" and not to_exact["largest"] <= LIMIT:
        row["problems"].append(f"{name} float32: a logit is {to_exact['largest']:g} off the CPU's float64 one")
    if to_exact["one_sided"]:
        row["problems"].append(f"{name} {dtype}: {to_exact['one_sided']} logits are finite on one side only")
    return row


def paths_of(target: Target, ids: Sequence[int], rule: DecodeSpec) -> list[Path]:
    """The states that draft-free decoding at T = 0 passes through, block by block."""
    blocks: dict[int, list[Seen]] = {}
    decode(
        target, NoDrafter(), ids, spec=rule, seed=0, watch=lambda seen: blocks.setdefault(seen.start, []).append(seen)
    )
    return [
        Path(tuple(seen.state for seen in block), block[-1].state.fill(*block[-1].verdict.step))
        for block in blocks.values()
    ]


@torch.inference_mode()
def logits_of(
    target: Target, ids: Sequence[int], paths: Sequence[Path], rule: DecodeSpec, *, copies: int
) -> Iterator[Tensor]:
    """Logits (float64, CPU) of every state's open positions, with so many copies in a forward."""
    session: Session = target.start(ids, block_length=rule.block_length, max_new_tokens=rule.max_new_tokens)
    device = target.traits.device
    for number, path in enumerate(paths):
        if number:
            session.commit(torch.tensor(paths[number - 1].filled.tokens, device=device))
        for first in range(0, len(path.states), copies):
            states = path.states[first : first + copies]
            hidden_NLH = session.forward(torch.tensor([state.tokens for state in states], device=device))
            for hidden_LH, state in zip(hidden_NLH, states, strict=True):
                yield target.logits(hidden_LH[list(state.open)]).double().cpu()


def difference(one: Sequence[Tensor], other: Sequence[Tensor]) -> dict[str, float]:
    """How far logits are apart (`one_sided` ones, finite in one of both only, aside), and on how many rows they agree.

    `bit_equal_rows` are equal in every logit, `same_argmax` rows in the best token.
    """
    one_RV, other_RV = torch.cat(list(one)), torch.cat(list(other))
    finite_RV = one_RV.isfinite() & other_RV.isfinite()
    gap_RV = torch.where(finite_RV, one_RV - other_RV, torch.zeros_like(one_RV)).abs()
    same_R = one_RV.argmax(-1) == other_RV.argmax(-1)
    return {
        "one_sided": int((one_RV.isfinite() != other_RV.isfinite()).sum()),
        "largest": float(gap_RV.max()),
        "mean": float(gap_RV.mean()),
        "bit_equal_rows": int((one_RV == other_RV).all(-1).sum()),
        "same_argmax": int(same_R.sum()),
    }


def same_commits(
    one: Sequence[Tensor], other: Sequence[Tensor], opens: Sequence[tuple[int, ...]], rule: DecodeSpec
) -> int:
    """In how many states the target's next commit is the same."""
    return sum(
        judge(a_RV, None, open, rule).step == judge(b_RV, None, open, rule).step
        for a_RV, b_RV, open in zip(one, other, opens, strict=True)
    )
