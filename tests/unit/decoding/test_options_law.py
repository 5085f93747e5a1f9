"""With independent noise neither a margin to verify nor a cost-aware budget bends the distribution that is sampled."""

import pytest

from tests.costs import curve_of
from tests.toys import RandomOrderDrafter
from tests.unit.decoding.test_law import ALPHA, DRAFTERS, SEEDS, TARGET, exact_law, outcomes, p_value, rule
from workers.decoding.loop import decode
from workers.decoding.tally import Generation
from workers.drafters.cost_aware import CostAwareDrafter

SPEC = rule(2.0, "independent")


def sample(name: str, margin: float) -> list[Generation]:
    make = DRAFTERS[name]
    return [decode(TARGET, make(seed, SPEC), [], spec=SPEC, seed=seed, verify_margin=margin) for seed in range(SEEDS)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "margin"), [("random", 0.5), ("spot", 0.5), ("ssd", 1e9)])
def test_verdicts_made_again_keep_the_law(name: str, margin: float) -> None:
    runs = sample(name, margin)
    assert sum(run.counters.recomputes for run in runs) > SEEDS / 4, "else nothing was made again"
    assert p_value(outcomes(runs), exact_law(SPEC)) > ALPHA


@pytest.mark.slow
def test_cutting_trees_by_cost_keeps_the_law() -> None:
    curve = curve_of(lambda states, prefix: 1.0 + 0.2 * (states - 1))
    runs = [
        decode(
            TARGET, CostAwareDrafter(RandomOrderDrafter(seed, 4, merge_states=True), curve), [], spec=SPEC, seed=seed
        )
        for seed in range(SEEDS)
    ]
    assert sum(run.counters.trimmed for run in runs) > SEEDS / 4
    assert sum(sum(run.counters.accepted) for run in runs) > SEEDS / 10
    assert p_value(outcomes(runs), exact_law(SPEC)) > ALPHA
