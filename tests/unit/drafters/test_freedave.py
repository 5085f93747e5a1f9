"""FreeDave with one commit a step: `ssd` by another name, state by state and forward by forward."""

import pytest

from sweeps.spec import DecodeSpec
from tests.drafters import ready
from tests.toys import ToyTarget
from workers.decoding.loop import decode


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("noise", ["coupled", "independent"])
@pytest.mark.parametrize("budget", [1, 3, 20])
def test_every_count_is_that_of_ssd(temperature: float, noise: str, budget: int) -> None:
    spec = DecodeSpec(max_new_tokens=40, block_length=8, temperature=temperature, noise=noise)  # type: ignore[arg-type]
    target = ToyTarget(seed=5, drift=0.1)
    ssd, freedave = (
        decode(target, ready(kind, target, [1], spec, 2, budget=budget), [1], spec=spec, seed=2)
        for kind in ("ssd", "freedave")
    )
    assert (freedave.output_ids, freedave.order) == (ssd.output_ids, ssd.order)
    assert freedave.counters == ssd.counters
    assert sum(ssd.counters.accepted) > 0
