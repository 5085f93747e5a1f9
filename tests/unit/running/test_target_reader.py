"""A drafter that reads its target: bound to the one that is loaded, anew for another, and kept no longer than that."""

import gc
import weakref
from dataclasses import dataclass, replace

import pytest

from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec
from tests.toys import ToyTarget
from workers import catalog
from workers.decoding.loop import decode
from workers.decoding.reference import reference
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree
from workers.drafters.base import Drafter, Oracle, TargetReader
from workers.drafters.none import NoDrafter
from workers.drafters.ssd import make as make_ssd
from workers.entries import DrafterEntry, FamilyEntry
from workers.loading import Loaded
from workers.targets.base import Target

TARGET = TargetSpec(name="toy", family="toy", digest="toy-1", dtype="float64")
DECODE = DecodeSpec(max_new_tokens=13, block_length=8)
SPEC = DrafterSpec(name="peek", kind="peek", budget=4)


@dataclass
class Peeking:
    """A chain of stale tokens, checked against the one target that it was given."""

    chain: Drafter
    target: ToyTarget
    budget: int

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        assert stale.hidden_LH is not None
        assert stale.hidden_LH.shape == (8, self.target.vocab_size)
        assert self.target.embed(stale.ids_LK).shape[-1] == self.target.vocab_size
        return self.chain.propose(root, known, stale)


@dataclass
class Reader:
    """What the factory makes."""

    spec: DrafterSpec

    @property
    def budget(self) -> int:
        return self.spec.budget

    def reading(self, target: Target) -> Drafter:
        assert isinstance(target, ToyTarget)
        return Peeking(make_ssd(replace(self.spec, kind="ssd"), block_length=8), target, self.spec.budget)


@pytest.fixture(autouse=True)
def peeking_in_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    real = catalog.resolve
    monkeypatch.setitem(catalog.FAMILIES, "toy", FamilyEntry(loader="toy:load", exact_cache=True))
    monkeypatch.setitem(catalog.DRAFTERS, "peek", DrafterEntry(factory="toy:peek", summary="", uses=("budget",)))

    def load(spec: TargetSpec, *, device: str) -> ToyTarget:
        return ToyTarget(seed=int(spec.digest[-1]), vocab_size=40)

    def make(spec: DrafterSpec, *, block_length: int, device: str) -> Reader:
        return Reader(spec)

    made = {"toy:load": load, "toy:peek": make}
    monkeypatch.setattr("workers.loading.resolve", lambda reference: made.get(reference) or real(reference))


def test_it_drafts_beside_the_target_that_was_loaded_last() -> None:
    loaded = Loaded("cpu")
    for digest in ("toy-1", "toy-2", "toy-1"):
        target = loaded.get_target(replace(TARGET, digest=digest))
        drafter = loaded.get_drafter(SPEC, DECODE)
        assert isinstance(drafter, Peeking)
        assert drafter.target is target
        assert loaded.get_drafter(SPEC, DECODE) is drafter, "bound once"
        drafted = decode(target, drafter, [1, 2], spec=DECODE, seed=0)
        assert drafted.output_ids == reference(target, [1, 2], spec=DECODE, seed=0).output_ids
        assert drafted.counters.drafted != (0,) * drafted.counters.nfe


def test_it_is_dropped_with_its_target() -> None:
    loaded = Loaded("cpu")
    loaded.get_target(TARGET)
    gone = weakref.ref(loaded.get_drafter(SPEC, DECODE))
    assert gone() is not None
    loaded.get_target(replace(TARGET, digest="toy-2"))
    gc.collect()
    assert gone() is None, "what it holds of the other target would take memory beside this one"


def test_only_readers_are_readers() -> None:
    assert isinstance(Reader(SPEC), TargetReader)
    for other in (NoDrafter(), make_ssd(replace(SPEC, kind="ssd"), block_length=8)):
        assert not isinstance(other, TargetReader | Oracle)
    assert not isinstance(Reader(SPEC), Oracle)
