"""Small plans for the fake runner, and what the tests compare."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.events import RunEvent
from sweeps.cell import NO_DRAFTER, Cell
from sweeps.effort import MeasureSpec
from sweeps.records import ItemResult
from sweeps.results import load_results
from sweeps.spec import DecodeSpec, DrafterSpec, GridSpec, SweepSpec, TargetSpec, TaskSpec
from sweeps.store import RunDir
from sweeps.todo import Plan, jobs_of

RUNNER = "tests.fake_runner:FakeRunner"


class Watch:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []

    def show(self, event: RunEvent) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def messages(self, kind: str) -> list[str]:
        return [event.message for event in self.events if event.kind == kind]


def a_cell(*, budget: int = 0, target: str = "fake", seed: int = 0, request: str = "") -> Cell:
    drafter = DrafterSpec(name="spot", kind="spot", budget=budget) if budget else NO_DRAFTER
    return Cell(
        target=TargetSpec(name=target, path=request, digest=f"digest of {target}"),
        task=TaskSpec(name="task", kind="task", digest="d"),
        decode=DecodeSpec(),
        drafter=drafter,
        seed=seed,
    )


def a_plan(
    folder: Path,
    *,
    name: str = "sweep",
    cells: int = 2,
    prompts: int = 4,
    chunk: int = 2,
    timed: int = 0,
    repeats: int = 1,
    targets: tuple[str, ...] = ("fake",),
    **request: Any,
) -> Plan:
    """`cells` cells (the first is the baseline) for each target, with the fake runner's request written to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "request.json"
    path.write_text(json.dumps(request))
    measure = MeasureSpec(prompts=prompts, timed_prompts=timed, repeats=repeats, chunk=chunk)
    spec = SweepSpec(name=name, grid=GridSpec(target=targets, task=("task",)), measure=measure)
    every = [a_cell(budget=4 * i, target=target, request=str(path)) for target in targets for i in range(cells)]
    return Plan(spec=spec, jobs=jobs_of(every, measure))


def timeless(result: ItemResult) -> ItemResult:
    """A result without what may differ between two runs."""
    return replace(result, finished_at=0.0, seconds=0.0, load_seconds=0.0, attempt=1, provenance=None)


def stored(run: RunDir) -> dict[str, ItemResult]:
    """Every stored result by item id, without times."""
    loaded = load_results(run)
    assert not loaded.problems
    return {result.item_id: timeless(result) for result in loaded.results}
