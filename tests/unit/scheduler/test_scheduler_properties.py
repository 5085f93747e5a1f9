"""Whatever happens in whatever order: one final state an item, one stored result an item, and an end."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.deadlines import Placement, Policy
from orchestrator.scheduler import Scheduler
from sweeps.records import WorkItem

OPEN = ("queued", "running")
KINDS = ("decode", "timing", "trace")
POLICY = Policy(attempts=3, slack=4, floor_seconds=5, ceiling_seconds=50, start_seconds=20, hopeless=10**6)
ACTIONS = st.sampled_from(["ready", "good", "bad", "lost", "late_good", "late_bad", "time"])


class World:
    """A scheduler with workers that do as the test says, and a store that counts."""

    def __init__(self, plan: list[tuple[int, int, int]], workers: int) -> None:
        self.now = 0.0
        items = [
            WorkItem(
                item_id=f"i{number}",
                cell_id=f"c{cell}-{target}",
                kind=KINDS[kind],  # type: ignore[arg-type]
                first=0,
                last=1 + cell,
            )
            for number, (cell, target, kind) in enumerate(plan)
        ]
        self.items = {item.item_id: item for item in items}
        places = {item.cell_id: Placement(target=item.cell_id[-1], baseline=item.cell_id[1] == "0") for item in items}
        self.scheduler = Scheduler(items, places, clock=lambda: self.now, policy=POLICY)
        self.made = 0
        self.workers: list[str] = []
        self.gone: list[tuple[str, str]] = []  # worker and item that were given up, and may still answer
        self.stored: Counter[str] = Counter()
        self.handed: Counter[str] = Counter()
        for _ in range(workers):
            self.start()

    def start(self) -> None:
        self.made += 1
        self.workers.append(f"w{self.made}")
        self.scheduler.started(f"w{self.made}")

    def settle(self, item_id: str, verdict: str) -> None:
        if verdict in ("store", "give_up"):
            self.stored[item_id] += 1

    def lose(self, worker: str) -> None:
        running = self.scheduler.running(worker)
        item, verdict = self.scheduler.lost(worker)
        if running is not None:
            self.gone.append((worker, running.item_id))
        if item is not None:
            assert item == running
            self.settle(item.item_id, verdict)
        self.workers.remove(worker)
        self.start()

    def answer(self, worker: str, item_id: str, healthy: bool) -> None:
        self.settle(item_id, self.scheduler.result(worker, item_id, healthy=healthy, load_seconds=0.0))

    def act(self, action: str, pick: int) -> None:
        worker = self.workers[pick % len(self.workers)]
        running = self.scheduler.running(worker)
        if action == "ready":
            self.scheduler.ready(worker)
        elif action in ("good", "bad") and running is not None:
            self.answer(worker, running.item_id, action == "good")
        elif action == "lost":
            self.lose(worker)
        elif action in ("late_good", "late_bad") and self.gone:
            self.answer(*self.gone[pick % len(self.gone)], action == "late_good")
        elif action == "time":
            self.now += pick
            for late in self.scheduler.overdue():
                self.lose(late)
        if pick % 4:
            self.assign()

    def assign(self) -> None:
        for assignment in self.scheduler.assign():
            assert self.scheduler.running(assignment.worker) == assignment.item
            assert assignment.worker in self.workers
            self.handed[assignment.item.item_id] += 1
            assert assignment.attempt == self.handed[assignment.item.item_id] <= POLICY.attempts
            if assignment.item.kind == "timing":
                cell = assignment.item.cell_id
                decodes = [i for i in self.items.values() if i.cell_id == cell and i.kind == "decode"]
                assert all(self.scheduler.state(i.item_id) in ("done", "failed") for i in decodes)

    def check(self) -> None:
        running = [item.item_id for w in self.workers if (item := self.scheduler.running(w)) is not None]
        states = {name: self.scheduler.state(name) for name in self.items}
        assert all(count == 1 for count in self.stored.values())
        assert {name for name, state in states.items() if state in ("done", "failed")} == set(self.stored)
        assert all(running.count(name) == (state == "running") for name, state in states.items() if state in OPEN)
        assert sum(self.scheduler.counts().values()) == len(self.items)
        assert self.scheduler.finished == (len(self.stored) == len(self.items))


HISTORIES = st.lists(st.tuples(ACTIONS, st.integers(0, 60)), min_size=20, max_size=60)
PLANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=8)


@given(PLANS, st.integers(1, 4), HISTORIES)
@settings(max_examples=300, deadline=None)
def test_any_history_keeps_the_books_and_can_still_be_finished(
    plan: list[tuple[int, int, int]], workers: int, history: list[tuple[str, int]]
) -> None:
    world = World(plan, workers)
    for action, pick in history:
        world.act(action, pick)
        world.check()
    steps = 0
    while not world.scheduler.finished:  # from here on everything works
        steps += 1
        assert steps <= 2 * len(plan) + 4, "no progress although every worker works"
        for worker in list(world.workers):
            world.scheduler.ready(worker)
            running = world.scheduler.running(worker)
            if running is not None:
                world.answer(worker, running.item_id, True)
        world.assign()
        world.check()
    assert set(world.stored) == set(world.items)


@given(PLANS, st.integers(1, 3), st.data())
@settings(max_examples=100, deadline=None)
def test_workers_that_only_die_or_hang_end_the_run_too(
    plan: list[tuple[int, int, int]], workers: int, data: st.DataObject
) -> None:
    world = World(plan, workers)
    losses = 0
    while not world.scheduler.finished and not world.scheduler.exhausted:
        for worker in list(world.workers):
            world.scheduler.ready(worker)
        world.assign()
        if data.draw(st.booleans()):
            world.now += POLICY.ceiling_seconds
            late = world.scheduler.overdue()
            losses += len(late)
            for worker in late:
                world.lose(worker)
        else:
            losses += 1
            world.lose(data.draw(st.sampled_from(world.workers)))
        world.check()
        assert losses <= (len(plan) + 1) * POLICY.attempts + workers * (POLICY.start_losses + 1) * (1 + len(plan))


@given(PLANS, HISTORIES)
@settings(max_examples=100, deadline=None)
def test_leaving_settles_everything_once(plan: list[tuple[int, int, int]], history: list[tuple[str, int]]) -> None:
    world = World(plan, 2)
    for action, pick in history:
        world.act(action, pick)
    before = dict(world.stored)
    world.scheduler.leave()
    counts = world.scheduler.counts()
    assert world.scheduler.finished
    assert counts["queued"] == counts["running"] == 0
    assert counts["left"] == len(plan) - len(before)
    for worker, item_id in world.gone:
        assert world.scheduler.result(worker, item_id, healthy=True) == "drop"
