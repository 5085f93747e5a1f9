"""The fewest forwards, by exhaustive search over what a round can do, for all small cases.

The search knows no formula: it tries every walk that a round allows, with and without crossing, and every tree that
looks at the next block on the side.
"""

from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from sweeps.bound import blocks, fewest_forwards, fewest_rounds, least_forwards, steps_floor
from sweeps.laws import generation_alarms
from sweeps.spec import CommitRule, DecodeSpec, DrafterSpec
from tests.toys import KnowingStepsDrafter, ToyTarget
from tests.traces import toy_cell
from tests.unit.aggregates.test_threshold import row_of
from workers.decoding.loop import decode
from workers.decoding.seen import Seen
from workers.decoding.state import BlockState, Commit
from workers.decoding.verification import Verification
from workers.drafters.none import NoDrafter


def searched(steps: tuple[int, ...], budget: int, *, cross_block: bool, refresh: bool) -> int:
    """The fewest rounds for blocks of so many steps, by trying everything."""

    @cache
    def fewest(block: int, left: int, known: bool, glimpsed: bool) -> int:
        """Rounds from here on: `left` steps of a block, of which something is known; the next one was glimpsed."""
        if not left:
            if block + 1 == len(steps):
                return 0
            return fewest(block + 1, steps[block + 1], glimpsed, False)
        found = []
        drafts = budget if known else 0
        further = cross_block and block + 1 < len(steps)
        for taken in range(1, min(drafts + 1, left) + 1):  # the walk's nodes in this block: the root and taken - 1
            spare = drafts - (taken - 1)
            look = refresh and further and spare > 0  # a crossing draft beside the walk
            found += [fewest(block, left - taken, True, seen) for seen in {glimpsed, glimpsed or look}]
            if taken == left and further and spare:  # the crossing state is on the walk: the next block's first step
                found.append(
                    fewest(block + 1, steps[block + 1] - 1, True, False) if steps[block + 1] > 1 else filled(block + 1)
                )
        return 1 + min(found)

    def filled(block: int) -> int:
        """Rounds behind a block that a crossing step filled wholly: nothing is known of the next one."""
        return fewest(block, 0, True, False)

    return fewest(0, steps[0], False, False)


@pytest.mark.parametrize("budget", [0, 1, 2, 3, 4])
def test_the_floor_is_what_an_exhaustive_search_finds(budget: int) -> None:
    for count in (1, 2, 3, 4):
        for steps in product(range(1, 6), repeat=count):
            assert searched(steps, budget, cross_block=False, refresh=False) == steps_floor(steps, budget)
            crossed = steps_floor(steps, budget, cross_block=True)
            assert searched(steps, budget, cross_block=True, refresh=False) == crossed
            assert searched(steps, budget, cross_block=True, refresh=True) == crossed
            assert count <= crossed <= steps_floor(steps, budget)


def test_crossing_saves_a_forward_a_block_at_most() -> None:
    assert steps_floor([8, 8, 8], 3) == 3 * (1 + 2)
    assert steps_floor([8, 8, 8], 3, cross_block=True) == 2 + 2 + 3
    assert steps_floor([], 3) == steps_floor([], 3, cross_block=True) == 0
    assert steps_floor([5, 1, 1, 5], 9, cross_block=True) == 1 + 1 + 1 + 2


@pytest.mark.parametrize("prompt", range(9))
@pytest.mark.parametrize("new", [1, 2, 5, 11])
def test_under_the_standard_rule_every_token_is_a_step(prompt: int, new: int) -> None:
    places = range(prompt, prompt + new)
    for length, budget in product((1, 2, 3, 5), (1, 2, 4)):
        steps = tuple(sum(at // length == block for at in places) for block in sorted({at // length for at in places}))
        for cross_block in (False, True):
            floor = searched(steps, budget, cross_block=cross_block, refresh=cross_block)
            assert least_forwards(prompt, new, length, budget, cross_block=cross_block) == floor
            assert floor >= blocks(prompt, new, length)


@pytest.mark.parametrize("commit", ["standard", "threshold"])
def test_a_cell_is_held_to_its_own_floor(commit: CommitRule) -> None:
    """A run that crosses at every chance takes the fewest rounds that such a cell can, and too few for one without."""
    target, rule = ToyTarget(seed=4, scale=2.5), DecodeSpec(max_new_tokens=37, block_length=8, commit=commit, tau=0.8)
    future: dict[tuple[int, BlockState], tuple[Commit, ...]] = {}

    def watch(seen: Seen) -> None:
        future[seen.start, seen.state] = seen.step

    decode(target, NoDrafter(), [1, 2], spec=rule, seed=0, watch=watch)
    spec = DrafterSpec(name="knowing", kind="freedave", budget=3, cross_block=True)
    crossing = replace(toy_cell(), decode=rule, drafter=spec)
    plain = replace(crossing, drafter=replace(spec, cross_block=False))
    made = {
        cell: decode(
            target,
            KnowingStepsDrafter(future, 3),
            [1, 2],
            spec=rule,
            seed=0,
            verification=Verification.of(cell.drafter),
        )
        for cell in (crossing, plain)
    }
    rows = {cell: row_of(run) for cell, run in made.items()}
    for cell, row in rows.items():
        assert fewest_rounds(cell, row) == row.counters.rounds >= fewest_forwards(cell, row)
        assert list(generation_alarms(cell, row, None)) == []
    assert rows[crossing].counters.rounds < rows[plain].counters.rounds == fewest_rounds(plain, rows[crossing])
    if commit == "threshold":
        assert [alarm.kind for alarm in generation_alarms(plain, rows[crossing], None)] == [
            "fewer forwards than can be"
        ]
        assert fewest_forwards(crossing, rows[crossing]) == 5  # blocks
    else:
        assert fewest_forwards(crossing, rows[crossing]) == fewest_rounds(crossing, rows[crossing])
