"""The driver with real Ray actors: they die, hang, lie and disagree; rows stay right and the run ends."""

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from orchestrator.deadlines import Policy
from orchestrator.driver import run_plan
from orchestrator.outcome import RunOutcome
from orchestrator.pool import PoolEvent
from sweeps.effort import ResourceSpec
from sweeps.origin import code_digest
from sweeps.records import ItemResult
from sweeps.results import load_results
from sweeps.store import RunDir
from sweeps.todo import Plan
from tests.drive import executions
from tests.fake_plan import RUNNER, Watch, a_plan, stored
from tests.fake_runner import answer

pytestmark = [pytest.mark.usefixtures("local_ray"), pytest.mark.slow]
ONE = ResourceSpec(cpus=1.0, workers=1)
TWO = ResourceSpec(cpus=1.0, workers=2)


def make_pool(resources: ResourceSpec = TWO, **options: Any) -> Any:
    from orchestrator.pool_ray import RayPool

    return RayPool(resources, **{"runner_factory": RUNNER, **options})


def go(plan: Plan, folder: Path, watch: Watch | None = None, pool: Any = None, **options: Any) -> RunOutcome:
    return run_plan(plan, RunDir(folder / "run"), pool or make_pool(), progress=watch or Watch(), **options)


def requested(folder: Path, **options: Any) -> Plan:
    return a_plan(folder, log=str(folder / "log"), **options)


def events_until(pool: Any, count: int, seconds: float = 30.0) -> list[PoolEvent]:
    found: list[PoolEvent] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        found += pool.wait(0.2)
    return found


def test_the_same_rows_as_in_process_with_every_fault_at_once(tmp_path: Path) -> None:
    plan = requested(
        tmp_path,
        cells=4,
        prompts=6,
        chunk=2,
        timed=2,
        repeats=2,
        faults={
            "decode-000000": {"what": "sigkill", "times": 1},
            "decode-000002": {"what": "hang", "times": 1},
            "timing": {"what": "garbage", "times": 1},
        },
    )
    watch = Watch()
    policy = Policy(floor_seconds=2.0, ceiling_seconds=6.0)
    outcome = go(plan, tmp_path, watch, policy=policy)
    assert (outcome.failed, outcome.left, outcome.exit_code) == (0, 0, 0)
    cells = {job.cell_id: job.cell for job in plan.jobs}
    for result in stored(RunDir(tmp_path / "run")).values():
        row = result.generations[0] if result.generations else result.timings[0]
        item_rows = answer_rows(result, cells)
        assert row in item_rows
    attempts = Counter(executions(tmp_path))
    assert sorted(attempts.values()) == [1] * (len(attempts) - 3) + [2, 2, 2]
    assert any("died" in line or "dead" in line for line in watch.messages("worker_lost"))
    assert "no answer by its deadline" in watch.messages("worker_lost")
    assert watch.kinds()[-1] == "finished"


def answer_rows(result: ItemResult, cells: dict[str, Any]) -> tuple[Any, ...]:
    from sweeps.records import WorkItem

    item = WorkItem(
        item_id=result.item_id,
        cell_id=result.cell_id,
        kind=result.kind,
        first=result.first,
        last=result.last,
        repeats=2 if result.kind == "timing" else 1,
    )
    expected = answer(item, cells[result.cell_id])
    return expected.generations + expected.timings


def test_a_poison_item_is_given_up_after_three_workers_and_the_rest_finishes(tmp_path: Path) -> None:
    plan = requested(tmp_path, cells=3, prompts=4, faults={"decode-000002": {"what": "sigkill"}})
    poison = plan.jobs[1].cell_id
    request = tmp_path / "request.json"
    request.write_text(request.read_text().replace("decode-000002", f"{poison}-decode-000002"))
    outcome = go(plan, tmp_path)
    assert (outcome.done, outcome.failed, outcome.left, outcome.exit_code) == (10, 2, 0, 1)
    (failure,) = stored(RunDir(tmp_path / "run"))[f"{poison}-decode-000002-000004"].failures
    assert (failure.kind, failure.type) == ("infrastructure", "WorkerLost")
    assert failure.message.startswith("killed its worker 3 times: ")
    assert Counter(executions(tmp_path))[f"{poison}-decode-000002-000004"] == 3


def test_what_cannot_travel_arrives_as_a_row_and_the_worker_lives(tmp_path: Path) -> None:
    faults = {"decode-000000": {"what": "exit"}, "decode-000002": {"what": "unpicklable"}}
    watch = Watch()
    outcome = go(requested(tmp_path, cells=1, prompts=6, faults=faults), tmp_path, watch, pool=make_pool(ONE))
    assert (outcome.done, outcome.failed, outcome.exit_code) == (2, 4, 1)
    failures = [f for result in stored(RunDir(tmp_path / "run")).values() for f in result.failures]
    kinds = sorted((failure.kind, failure.type) for failure in failures)
    assert kinds == [("deterministic", "SystemExit"), ("deterministic", "tests.fake_runner.NeedsArguments")]
    assert "worker_lost" not in watch.kinds()


def test_workers_get_their_share_of_threads_before_anything_is_imported(tmp_path: Path) -> None:
    pool = make_pool(ResourceSpec(cpus=2.0))
    try:
        assert pool.start() == ("ray-1",)
        (ready,) = events_until(pool, 1)
        assert ready.kind == "ready"
        assert ready.reason.endswith("2 threads")
    finally:
        pool.close()


@pytest.mark.parametrize(
    ("resources", "at_most", "count"),
    [
        (ResourceSpec(cpus=1.0), 0, 2),  # as many as fit
        (ResourceSpec(cpus=1.0), 1, 1),  # no more than there are items
        (ResourceSpec(cpus=1.0, workers=1000), 0, 2),
        (ResourceSpec(cpus=0.5, gpus=0.5), 0, 2),  # the pretended GPU is shared
        (ResourceSpec(cpus=0.5, gpus=1.0), 0, 1),
    ],
)
def test_how_many_workers_start(resources: ResourceSpec, at_most: int, count: int) -> None:
    pool = make_pool(resources)
    try:
        assert len(pool.start(at_most)) == count
        notes = [event.reason for event in pool.wait(0.0) if event.kind == "note"]
        assert notes == (["resources.workers is 1000, but only 2 fit: starting 2"] if resources.workers else [])
    finally:
        pool.close()


def test_what_no_node_has_is_refused_at_once(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(
        ValueError, match=r"needs CPU 1, GPU 2 on one node, this machine has CPU 2, GPU 1: missing GPU 1"
    ):
        go(requested(tmp_path), tmp_path, pool=make_pool(ResourceSpec(cpus=1.0, gpus=2.0)))
    assert time.monotonic() - began < 5
    assert not (tmp_path / "log").exists()


def test_a_worker_with_other_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.pool_ray.code_digest", lambda: "f" * 20)
    with pytest.raises(
        ValueError, match=f"runs other code \\({code_digest()[:12]}\\) than this one \\(ffffffffffff\\)"
    ):
        go(requested(tmp_path), tmp_path, pool=make_pool(ONE))


def test_a_runner_that_cannot_be_made_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    pool = make_pool(ONE, runner_factory="tests.no_such_module:Runner")
    outcome = go(requested(tmp_path, cells=1), tmp_path, pool=pool)
    assert (outcome.done, outcome.failed, outcome.left) == (0, 0, 4)
    assert "ModuleNotFoundError: No module named 'tests.no_such_module'" in outcome.message


def test_a_runner_class_that_cannot_be_sent_is_a_line(tmp_path: Path) -> None:
    import threading

    lock = threading.Lock()
    with pytest.raises(ValueError, match="cannot be sent to workers"):
        go(requested(tmp_path), tmp_path, pool=make_pool(runner_factory=lambda device, threads: lock))


def test_provenance_of_a_real_worker_is_another_process(tmp_path: Path) -> None:
    pool = make_pool(ONE)
    watch = Watch()
    go(requested(tmp_path, cells=1), tmp_path, watch, pool=pool)
    (where,) = watch.messages("worker_ready")
    assert f"process {os.getpid()}," not in where
    assert load_results(RunDir(tmp_path / "run")).problems == []
