"""The table's drafters for tests, each with the artifact it needs; a new kind of artifact is one line of `MAKERS`."""

import atexit
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from sweeps.spec import CommitRule, DecodeSpec, DrafterSpec
from tests.graphs import write_wide_graph
from workers.catalog import DRAFTERS, resolve
from workers.decoding.loop import decode
from workers.drafters.base import Drafter, Oracle, TargetReader
from workers.drafters.none import NoDrafter
from workers.models.facts import OrderConfig
from workers.models.order_model import OrderModel, save_order_model
from workers.models.set_facts import SetConfig
from workers.models.set_model import SetModel, save_set_model
from workers.replay.future import Future
from workers.targets.base import Target


def write_random_order_model(folder: Path, block_length: int) -> None:
    """An order model as it is before training."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = OrderModel(OrderConfig(block_length=block_length, width=16, heads=2, feedforward=16))
    save_order_model(model, folder)


def write_random_set_model(folder: Path, block_length: int, hidden: int) -> None:
    """A set model as it is before training, for targets of that width; but it tells positions and states apart, and
    takes the stale distribution for a good guess of tokens.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SetModel(SetConfig(block_length=block_length, hidden=hidden, **SMALL_SET_MODEL))
        with torch.no_grad():
            model.include.weight.mul_(8)
    save_set_model(model, folder)


SMALL_SET_MODEL = {"layers": 1, "width": 16, "heads": 2, "feedforward": 16, "candidate_width": 8}
MAKERS: dict[str, Callable[[Path, int, CommitRule, int], object]] = {
    "order_model": lambda folder, length, commit, hidden: write_random_order_model(folder, length),
    "draft_graph": lambda folder, length, commit, hidden: write_wide_graph(
        folder, block_length=length, tau=None if commit == "standard" else 0.9
    ),
    "set_model": lambda folder, length, commit, hidden: write_random_set_model(folder, length, hidden),
}


@cache
def artifact(kind: str, block_length: int, commit: CommitRule = "standard", hidden: int = 0) -> str:
    """The directory of an artifact, made once a run of the tests; one that reads vectors reads those of `hidden`."""
    folder = TemporaryDirectory(prefix=f"{kind}-")
    atexit.register(folder.cleanup)
    MAKERS[kind](Path(folder.name), block_length, commit, hidden)
    return folder.name


@cache
def made(
    kind: str, block_length: int, budget: int, commit: CommitRule = "standard", hidden: int = 0, **options: object
) -> Drafter | Oracle | TargetReader:
    """What the table makes of a kind and its options; drafters remember nothing, so one is as good as many."""
    entry = DRAFTERS[kind]
    assert commit in entry.commits
    named = artifact(entry.artifact, block_length, commit, hidden) if entry.artifact else ""
    spec = DrafterSpec(name=kind, kind=kind, budget=budget, checkpoint=named, **options)  # type: ignore[arg-type]
    drafter: Drafter | Oracle | TargetReader = resolve(entry.factory)(spec, block_length=block_length, device="cpu")
    assert isinstance(drafter, Oracle) == entry.oracle
    return drafter


def ready(
    kind: str, target: Target, prompt: Sequence[int], spec: DecodeSpec, seed: int, *, budget: int, **options: object
) -> Drafter:
    """The drafter of one prompt: an oracle is told its draft-free future (with independent noise: another sample's).

    With independent noise the own draft-free run would give away draws that decide other commits of this one.
    A target reader is shown the target.
    """
    hidden = width_of(target) if DRAFTERS[kind].artifact == "set_model" else 0
    drafter = made(kind, spec.block_length, budget, spec.commit, hidden, **options)
    if isinstance(drafter, TargetReader):
        return drafter.reading(target)
    if not isinstance(drafter, Oracle):
        return drafter
    future = decode(target, NoDrafter(), prompt, spec=spec, seed=seed + (spec.noise == "independent"))
    return drafter.knowing(Future.of(future, spec.block_length))


def width_of(target: Target) -> int:
    """How wide a target's vectors are."""
    return int(target.embed(torch.tensor([0], device=target.traits.device)).shape[-1])
