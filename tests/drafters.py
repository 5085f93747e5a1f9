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
from workers.drafters.base import Drafter, Oracle
from workers.drafters.none import NoDrafter
from workers.models.facts import OrderConfig
from workers.models.order_model import OrderModel, save_order_model
from workers.replay.future import Future
from workers.targets.base import Target


def write_random_order_model(folder: Path, block_length: int) -> None:
    """An order model as it is before training."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = OrderModel(OrderConfig(block_length=block_length, width=16, heads=2, feedforward=16))
    save_order_model(model, folder)


MAKERS: dict[str, Callable[[Path, int, CommitRule], object]] = {
    "order_model": lambda folder, block_length, commit: write_random_order_model(folder, block_length),
    "draft_graph": lambda folder, block_length, commit: write_wide_graph(
        folder, block_length=block_length, tau=None if commit == "standard" else 0.9
    ),
}


@cache
def artifact(kind: str, block_length: int, commit: CommitRule = "standard") -> str:
    """The directory of an artifact, made once a run of the tests."""
    folder = TemporaryDirectory(prefix=f"{kind}-")
    atexit.register(folder.cleanup)
    MAKERS[kind](Path(folder.name), block_length, commit)
    return folder.name


@cache
def made(
    kind: str, block_length: int, budget: int, commit: CommitRule = "standard", **options: object
) -> Drafter | Oracle:
    """What the table makes of a kind and its options; drafters remember nothing, so one is as good as many."""
    entry = DRAFTERS[kind]
    assert commit in entry.commits
    named = artifact(entry.artifact, block_length, commit) if entry.artifact else ""
    spec = DrafterSpec(name=kind, kind=kind, budget=budget, checkpoint=named, **options)  # type: ignore[arg-type]
    drafter: Drafter | Oracle = resolve(entry.factory)(spec, block_length=block_length, device="cpu")
    assert isinstance(drafter, Oracle) == entry.oracle
    return drafter


def ready(
    kind: str, target: Target, prompt: Sequence[int], spec: DecodeSpec, seed: int, *, budget: int, **options: object
) -> Drafter:
    """The drafter of one prompt: an oracle is told its draft-free future (with independent noise: another sample's).

    With independent noise the own draft-free run would give away draws that decide other commits of this one.
    """
    drafter = made(kind, spec.block_length, budget, spec.commit, **options)
    if not isinstance(drafter, Oracle):
        return drafter
    future = decode(target, NoDrafter(), prompt, spec=spec, seed=seed + (spec.noise == "independent"))
    return drafter.knowing(Future.of(future, spec.block_length))
