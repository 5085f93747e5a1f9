"""Who gets what, when to give up: every rule on a clock that the test turns."""

from dataclasses import replace

import pytest

from orchestrator.deadlines import Placement, Policy
from orchestrator.scheduler import Scheduler
from sweeps.records import WorkItem


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def item(cell: str, kind: str = "decode", first: int = 0, last: int = 2, repeats: int = 1) -> WorkItem:
    name = f"{cell}-{kind}-{first}"
    return WorkItem(item_id=name, cell_id=cell, kind=kind, first=first, last=last, repeats=repeats)  # type: ignore[arg-type]


def make(
    items: list[WorkItem],
    workers: int = 1,
    policy: Policy | None = None,
    places: dict[str, Placement] | None = None,
) -> tuple[Scheduler, Clock]:
    clock = Clock()
    every = {each.cell_id: Placement(target="t") for each in items} | (places or {})
    scheduler = Scheduler(items, every, clock=clock, policy=policy)
    for number in range(workers):
        scheduler.started(f"w{number}")
        scheduler.ready(f"w{number}")
    return scheduler, clock


def given(scheduler: Scheduler) -> list[tuple[str, str]]:
    return [(each.worker, each.item.item_id) for each in scheduler.assign()]


def drain(scheduler: Scheduler, worker: str = "w0") -> list[str]:
    """The order in which one worker that never fails gets the items."""
    order = []
    while not scheduler.finished:
        (assignment,) = scheduler.assign()
        order.append(assignment.item.item_id)
        assert scheduler.result(worker, assignment.item.item_id, healthy=True) == "store"
    return order


def test_baselines_first_then_plan_order_and_timings_after_their_cells_decoding() -> None:
    items = [item("a", "timing"), item("a"), item("a", first=2, last=4), item("base"), item("b")]
    scheduler, _ = make(items, places={"base": Placement(target="t", baseline=True)})
    order = drain(scheduler)
    assert order == ["base-decode-0", "a-decode-0", "a-decode-2", "b-decode-0", "a-timing-0"]


def test_a_timing_waits_while_its_cell_is_still_being_decoded_elsewhere() -> None:
    scheduler, _ = make([item("a"), item("a", "timing")], workers=2)
    assert given(scheduler) == [("w0", "a-decode-0")]
    assert given(scheduler) == []
    scheduler.result("w0", "a-decode-0", healthy=True)
    assert [name for _, name in given(scheduler)] == ["a-timing-0"]


def test_a_worker_keeps_its_target_and_idle_ones_go_where_most_work_waits() -> None:
    items = [item(f"x{i}") for i in range(6)] + [item(f"y{i}") for i in range(3)]
    places = {each.cell_id: Placement(target=each.cell_id[0]) for each in items}
    scheduler, _ = make(items, workers=3, places=places)
    first = dict(given(scheduler))
    assert sorted(name[0] for name in first.values()) == ["x", "x", "y"]
    loads = dict.fromkeys(first, 1)
    target = {worker: name[0] for worker, name in first.items()}
    while not scheduler.finished:
        for worker in list(first):
            scheduler.result(worker, first.pop(worker), healthy=True)
            for name, new in given(scheduler):
                loads[name] += target[name] != new[0]
                target[name] = new[0]
                first[name] = new
    assert sum(loads.values()) <= 4


def test_a_lost_workers_item_is_tried_again_first_and_given_up_after_its_attempts() -> None:
    scheduler, _ = make([item("poison"), item("b")], policy=Policy(attempts=3))
    for attempt in (1, 2, 3):
        (assignment,) = scheduler.assign()
        assert (assignment.item.item_id, assignment.attempt) == ("poison-decode-0", attempt)
        lost, verdict = scheduler.lost(assignment.worker)
        assert lost == assignment.item
        assert verdict == ("give_up" if attempt == 3 else "retry")
        scheduler.started(f"new{attempt}")
        scheduler.ready(f"new{attempt}")
    assert scheduler.state("poison-decode-0") == "failed"
    assert drain(scheduler, "new3") == ["b-decode-0"]


def test_an_infrastructure_failure_counts_as_an_attempt() -> None:
    scheduler, _ = make([item("a")], policy=Policy(attempts=2))
    scheduler.assign()
    assert scheduler.result("w0", "a-decode-0", healthy=False) == "retry"
    scheduler.assign()
    assert scheduler.result("w0", "a-decode-0", healthy=False) == "give_up"
    assert scheduler.finished


def test_a_late_answer_is_taken_once_and_the_second_one_dropped() -> None:
    scheduler, clock = make([item("a")], workers=2)
    assert given(scheduler) == [("w0", "a-decode-0")]
    clock.now += 1e6
    assert scheduler.overdue() == ("w0",)
    assert scheduler.lost("w0")[1] == "retry"
    assert given(scheduler) == [("w1", "a-decode-0")]
    assert scheduler.result("w0", "a-decode-0", healthy=True) == "store"
    assert scheduler.finished
    assert scheduler.result("w1", "a-decode-0", healthy=True) == "drop"
    assert scheduler.running("w1") is None


def test_a_late_failure_of_an_old_attempt_does_not_touch_the_present_one() -> None:
    scheduler, _ = make([item("a")], workers=2)
    scheduler.assign()
    scheduler.lost("w0")
    scheduler.assign()
    assert scheduler.result("w0", "a-decode-0", healthy=False) == "drop"
    assert scheduler.state("a-decode-0") == "running"
    assert scheduler.attempts("a-decode-0") == 2


def test_deadlines_are_learnt_within_floor_and_ceiling_and_loading_gets_the_ceiling() -> None:
    policy = Policy(slack=10, floor_seconds=5, ceiling_seconds=100)
    items = [item("a", first=2 * i, last=2 * i + 2) for i in range(3)] + [item("big", last=200)]
    scheduler, clock = make(items, policy=policy)
    scheduler.assign()
    clock.now += 99
    assert scheduler.overdue() == ()  # nothing known, and the target had to be loaded
    scheduler.result("w0", "a-decode-0", healthy=True, load_seconds=97)  # 2 s for two prompts: 1 s each
    scheduler.assign()
    clock.now += 19.9
    assert scheduler.overdue() == ()
    clock.now += 0.1
    assert scheduler.overdue() == ("w0",)  # ten times the two seconds expected
    scheduler.result("w0", "a-decode-2", healthy=True)
    scheduler.assign()
    scheduler.result("w0", "a-decode-4", healthy=True)
    scheduler.assign()  # two hundred prompts: the ceiling
    clock.now += 99.9
    assert scheduler.overdue() == ()
    clock.now += 0.1
    assert scheduler.overdue() == ("w0",)


def test_quick_items_get_the_floor() -> None:
    scheduler, clock = make([item("a"), item("b")], policy=Policy(floor_seconds=60))
    scheduler.assign()
    clock.now += 0.01
    scheduler.result("w0", "a-decode-0", healthy=True)
    scheduler.assign()
    clock.now += 59
    assert scheduler.overdue() == ()
    clock.now += 1
    assert scheduler.overdue() == ("w0",)


def test_a_worker_that_never_gets_ready_is_overdue_and_an_idle_one_never_is() -> None:
    scheduler, clock = make([], policy=Policy(start_seconds=30))
    scheduler.started("slow")
    clock.now += 31
    assert scheduler.overdue() == ("slow",)
    scheduler.ready("slow")
    clock.now += 1e6
    assert scheduler.overdue() == ()


def test_workers_that_do_not_start_exhaust_the_run() -> None:
    scheduler, _ = make([item("a")], workers=0, policy=Policy(start_losses=3))
    scheduler.started("w0")
    for number in range(3):
        assert not scheduler.exhausted
        scheduler.lost(f"w{number}")
        scheduler.started(f"w{number + 1}")
    assert scheduler.exhausted
    scheduler.leave()
    assert scheduler.state("a-decode-0") == "left"
    assert scheduler.finished


def test_many_poison_items_do_not_exhaust_a_run_in_which_something_worked() -> None:
    items = [item("good"), *(item(f"p{i}") for i in range(30))]
    scheduler, _ = make(items, policy=Policy(attempts=2, hopeless=3))
    scheduler.assign()
    scheduler.result("w0", "good-decode-0", healthy=True)
    worker, number = "w0", 0
    while not scheduler.finished:
        assert not scheduler.exhausted
        scheduler.assign()
        scheduler.lost(worker)
        number += 1
        worker = f"n{number}"
        scheduler.started(worker)
        scheduler.ready(worker)
    assert number == 60
    assert scheduler.counts() == {"queued": 0, "running": 0, "done": 1, "failed": 30, "left": 0}


def test_a_run_in_which_nothing_ever_works_is_given_up_early() -> None:
    scheduler, _ = make([item(f"p{i}") for i in range(100)], policy=Policy(attempts=3, hopeless=2))
    losses = 0
    worker = "w0"
    while not scheduler.exhausted:
        scheduler.assign()
        scheduler.lost(worker)
        losses += 1
        worker = f"n{losses}"
        scheduler.started(worker)
        scheduler.ready(worker)
    assert losses == 6


@pytest.mark.parametrize("call", ["ready", "lost", "result"])
def test_what_an_unknown_worker_says_changes_nothing(call: str) -> None:
    scheduler, _ = make([item("a")])
    if call == "ready":
        scheduler.ready("ghost")
    elif call == "lost":
        assert scheduler.lost("ghost") == (None, "drop")
    else:
        assert scheduler.result("ghost", "no such item", healthy=True) == "drop"
    assert scheduler.counts()["queued"] == 1
    assert given(scheduler) == [("w0", "a-decode-0")]


def test_ten_thousand_items_are_handed_out_quickly() -> None:
    items = [replace(item(f"c{i // 10}", first=i % 10 * 2, last=i % 10 * 2 + 2)) for i in range(10_000)]
    scheduler, _ = make(items)
    assert len(drain(scheduler)) == 10_000
