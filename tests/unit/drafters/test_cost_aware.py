"""The cost-aware budget: the choice against brute force, and what a cut tree is."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.spec import DecodeSpec, DrafterSpec
from tests.costs import curve_of, steep_curve_file
from tests.drafters import made
from tests.toys import RandomDrafter, ToyTarget
from tests.unit.decoding.test_loop import RandomOrderDrafter
from workers.decoding.loop import decode
from workers.decoding.reference import reference
from workers.drafters.cost_aware import CostAwareDrafter, best_drafts, cost_aware
from workers.models.cost_curve import read_cost_curve, write_cost_curve

EIGHTHS = st.integers(0, 8).map(lambda n: n / 8)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(EIGHTHS, max_size=12).map(lambda masses: sorted(masses, reverse=True)),
    st.lists(st.integers(1, 40), min_size=13, max_size=13),
    st.integers(0, 9),
)
def test_the_choice_is_the_best_of_all_by_exact_arithmetic(
    masses: list[float], seconds: list[int], drafter: int
) -> None:
    """Eighths and whole seconds make sums exact; every D is tried with fractions, and the least of the best wins."""

    def rate(drafts: int) -> Fraction:
        return (1 + sum(map(Fraction, masses[:drafts]), Fraction(0))) / (seconds[drafts] + drafter)

    best = max(range(len(masses) + 1), key=lambda drafts: (rate(drafts), -drafts))
    found = best_drafts(masses, [float(value) for value in seconds], float(drafter))
    assert rate(found) == rate(best) or float(rate(found)) == float(rate(best))
    assert rate(found) != rate(best) or found == best or float(rate(found)) == float(rate(best))


def test_choices_by_hand() -> None:
    flat, linear = [1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]
    assert best_drafts([0.5, 0.1, 0.1, 0.01], flat, 0.0) == 4, "a state costs nothing: all of them"
    assert best_drafts([0.0, 0.0], flat, 0.0) == 0, "nor is anything gained: none"
    assert best_drafts([0.9, 0.9, 0.9], linear, 0.0) == 0, "1.9 commits in 2 seconds are fewer than 1 in 1"
    assert best_drafts([0.9, 0.9, 0.9], linear, 1.0) == 3, "with a drafter to be paid as well: 1/2, 1.9/3, 2.8/4, 3.7/5"
    assert best_drafts([0.9, 0.1, 0.1], linear, 1.0) == 1
    assert best_drafts([], linear, 1.0) == 0


@pytest.mark.parametrize("merge_states", [True, False])
def test_a_cut_tree_is_the_start_of_the_whole_one_and_counts_what_was_cut(merge_states: bool) -> None:
    """By the steep curve (1 + N / 10, drafter 0.2) the number of drafts is worked out anew for each tree."""
    curve = read_cost_curve(Path(steep_curve_file(8)))
    plain = RandomOrderDrafter(3, 9, merge_states=merge_states)
    cut, whole = [], []

    class Both(CostAwareDrafter):
        def propose(self, root, known, stale):  # type: ignore[no-untyped-def]
            tree = super().propose(root, known, stale)
            cut.append(tree)
            whole.append(plain.propose(root, known, stale))
            return tree

    target, spec = ToyTarget(seed=2, drift=0.1), DecodeSpec(max_new_tokens=32, block_length=8)
    out = decode(target, Both(plain, curve), [1], spec=spec, seed=0)
    assert out.output_ids == reference(target, [1], spec=spec, seed=0).output_ids
    for few, all_ in zip(cut, whole, strict=True):
        kept = few.drafts
        assert few.states == all_.states[: kept + 1]
        assert few.parents == all_.parents[: kept + 1]
        assert all(parent < node for node, parent in enumerate(few.parents))
        assert few.trimmed == all_.drafts - kept
        assert few.merged == all_.merged
        rates = [(1 + sum(all_.masses[1 : n + 1])) / (1.2 + 0.1 * n) for n in range(all_.drafts + 1)]
        assert rates[kept] == pytest.approx(max(rates))
    assert out.counters.trimmed == sum(tree.trimmed for tree in cut) > 0
    assert sum(out.counters.drafted) == sum(tree.drafts for tree in cut) > 0


def test_longer_prefixes_choose_by_their_own_costs() -> None:
    """Free states over an empty prefix, dear ones behind it: only the first block gets drafts."""
    curve = curve_of(lambda states, prefix: 1.0 + (states - 1) * (9.0 if prefix else 0.0), prefixes=(0, 8))
    drafter = CostAwareDrafter(RandomDrafter(1, 6), curve)
    out = decode(ToyTarget(), drafter, [], spec=DecodeSpec(max_new_tokens=24, block_length=8), seed=0)
    first = sum(out.rounds[i] == 0 or place < 8 for i, place in enumerate(out.order))
    rounds = max(out.rounds[i] for i in range(first)) + 1
    assert sum(out.counters.drafted[:rounds]) > 0
    assert set(out.counters.drafted[rounds:]) == {0}


def test_spot_with_a_curve_is_the_cost_aware_one_and_without_one_is_plain() -> None:
    assert isinstance(made("spot", 8, 6, cost=steep_curve_file(8)), CostAwareDrafter)
    assert not isinstance(made("spot", 8, 6), CostAwareDrafter)


def test_a_curve_that_does_not_fit_is_refused_by_field(tmp_path: Path) -> None:
    file = tmp_path / "curve.json"
    digest = write_cost_curve(file, curve_of(lambda states, prefix: 1.0, states=(1, 5)))

    def refused(message: str, *, block_length: int = 8, **options: object) -> None:
        spec = DrafterSpec(name="mine", kind="spot", **{"cost": str(file), "budget": 4, **options})  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=message):
            cost_aware(RandomDrafter(1, spec.budget), spec, block_length=block_length)

    refused("drafter mine: its cost curve is for blocks of 8: asked is 16", block_length=16)
    refused("drafter mine: budget is 5: allowed by its cost curve is up to 4", budget=5)
    refused(f"drafter mine: its cost curve has digest {digest}, the cell says e", cost_digest="e")
    refused("cost 'gone' is neither a file", cost="gone")
