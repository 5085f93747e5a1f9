"""A target with cache and drafts against the naive decoder, for every family's tests."""

from collections.abc import Sequence

from sweeps.spec import DecodeSpec
from tests.toys import RandomDrafter, WrongDrafter
from workers.decoding.loop import decode
from workers.decoding.reference import reference
from workers.drafters.none import NoDrafter
from workers.drafters.ssd import SsdDrafter
from workers.targets.base import Target


def assert_drafts_change_nothing(target: Target, ids: Sequence[int], spec: DecodeSpec) -> None:
    """Good, bad, random and no drafts give the naive decoder's output and order, in no more forwards, without a pass
    for keys and values alone.
    """
    naive = reference(target, ids, spec=spec, seed=3)
    assert len(naive.output_ids) == spec.max_new_tokens
    for drafter in (NoDrafter(), SsdDrafter(3), RandomDrafter(1, 8), WrongDrafter(3)):
        drafted = decode(target, drafter, ids, spec=spec, seed=3)
        assert (drafted.output_ids, drafted.order) == (naive.output_ids, naive.order)
        assert drafted.counters.nfe <= spec.max_new_tokens
        assert drafted.counters.kv_passes == 0
