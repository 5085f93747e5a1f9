"""FreeDave with one commit a step: `ssd` by another name, state by state and forward by forward."""

import pytest

from sweeps.spec import DecodeSpec, DrafterSpec
from tests.toys import ToyTarget
from workers.catalog import DRAFTERS, resolve
from workers.decoding.loop import decode
from workers.drafters.base import Drafter


def drafter(kind: str, budget: int) -> Drafter:
    made: Drafter = resolve(DRAFTERS[kind].factory)(
        DrafterSpec(name=kind, kind=kind, budget=budget), block_length=8, device="cpu"
    )
    return made


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("noise", ["coupled", "independent"])
@pytest.mark.parametrize("budget", [1, 3, 20])
def test_every_count_is_that_of_ssd(temperature: float, noise: str, budget: int) -> None:
    spec = DecodeSpec(max_new_tokens=40, block_length=8, temperature=temperature, noise=noise)  # type: ignore[arg-type]
    target = ToyTarget(seed=5, drift=0.1)
    ssd, freedave = (decode(target, drafter(k, budget), [1], spec=spec, seed=2) for k in ("ssd", "freedave"))
    assert (freedave.output_ids, freedave.order) == (ssd.output_ids, ssd.order)
    assert freedave.counters == ssd.counters
    assert sum(ssd.counters.accepted) > 0
