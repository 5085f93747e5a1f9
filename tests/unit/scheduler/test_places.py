"""Where items of one checkpoint with several caches go: apart, so that no kind is judged by another one's times."""

from dataclasses import replace

from orchestrator.deadlines import Deadlines, Policy
from orchestrator.driver import place_of
from sweeps.cell import Cell
from sweeps.spec import TargetSpec
from sweeps.todo import Job, item_of
from tests.fake_plan import a_cell

TARGET = TargetSpec(name="t", digest="w", cache="dual", exact_cache=False)
CELL: Cell = replace(a_cell(), target=TARGET)


def test_kinds_of_cache_are_places_of_their_own() -> None:
    jobs = [
        Job(cell=CELL, prompts=2),
        Job(cell=replace(CELL, target=replace(TARGET, cache="prefix")), prompts=2),
        Job(cell=CELL.uncached(), prompts=2, reference=True),
    ]
    places = [place_of(job) for job in jobs]
    assert len({place.target for place in places}) == 3
    assert [place.baseline for place in places] == [True, True, False]  # references wait: nothing else needs them


def test_a_reference_is_not_called_hung_because_cached_decoding_is_fast() -> None:
    cached, uncached = Job(cell=CELL, prompts=4), Job(cell=CELL.uncached(), prompts=4, reference=True)
    deadlines = Deadlines(Policy())
    for _ in range(3):
        deadlines.learn(item_of(cached, "decode", 0, 4), place_of(cached), seconds=1.0)
    item = item_of(uncached, "decode", 0, 4)
    assert deadlines.allowance(item, place_of(uncached), loaded=True) == Policy().ceiling_seconds
    assert deadlines.allowance(item_of(cached, "decode", 0, 4), place_of(cached), loaded=True) < 100
