"""With independent noise a cost-aware budget does not bend the distribution that is sampled.

That verdicts made again do not either is shown in `test_redraw.py`, on a target where they could.
"""

import pytest

from tests.costs import curve_of
from tests.toys import RandomOrderDrafter
from tests.unit.decoding.test_law import ALPHA, SEEDS, TARGET, exact_law, outcomes, p_value, rule
from workers.decoding.loop import decode
from workers.drafters.cost_aware import CostAwareDrafter

SPEC = rule(2.0, "independent")


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
