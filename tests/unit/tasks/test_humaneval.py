"""HumanEval: the package's data, its own solutions in several forms, and wrong ones."""

import json

import pytest

from workers.tasks.humaneval import HumanEval, read_problems

# The four whose prompt brings a helper function, one that imports in its body, and others.
CHOSEN = (
    "HumanEval/0",
    "HumanEval/10",
    "HumanEval/32",
    "HumanEval/38",
    "HumanEval/50",
    "HumanEval/99",
    "HumanEval/162",
)


@pytest.fixture(scope="module")
def task() -> HumanEval:
    return HumanEval()


def test_all_problems_are_there_in_order(task: HumanEval) -> None:
    assert [p.id for p in task.prompts(split="test", limit=None, seed=0)] == [f"HumanEval/{i}" for i in range(164)]
    assert task.prompts(split="test", limit=3, seed=1) == task.prompts(split="test", limit=None, seed=0)[:3]


def test_prompt_is_an_instruction_with_the_header(task: HumanEval) -> None:
    (first,) = task.prompts(split="test", limit=1, seed=0)
    row = read_problems()[0]
    assert first.text.startswith("Complete the following Python function.")
    assert row["prompt"] in first.text
    assert first.text.endswith("```")
    assert row["canonical_solution"] not in first.text + first.gold
    assert json.loads(first.gold)["entry_point"] == "has_close_elements"


@pytest.mark.parametrize("form", ["whole", "body", "function only"])
def test_the_packages_own_solutions_pass(task: HumanEval, form: str) -> None:
    rows = {row["task_id"]: row for row in read_problems()}
    for prompt in task.prompts(split="test", limit=None, seed=0):
        if prompt.id not in CHOSEN:
            continue
        row = rows[prompt.id]
        start = row["prompt"].rindex("\ndef ") + 1
        texts = {
            "whole": f"Here you are:\n```python\n{row['prompt']}{row['canonical_solution']}\n```",
            "body": row["canonical_solution"],
            "function only": f"```\n{row['prompt'][start:]}{row['canonical_solution']}```",
        }
        score = task.score(prompt, texts[form])
        assert score.correct, (prompt.id, score)


@pytest.mark.slow
def test_every_fourth_solution_of_the_package_passes(task: HumanEval) -> None:
    pairs = list(zip(task.prompts(split="test", limit=None, seed=0), read_problems(), strict=True))
    for prompt, row in pairs[::4]:
        score = task.score(prompt, row["prompt"] + row["canonical_solution"])
        assert score.correct, (prompt.id, score)


def test_wrong_answers_fail_with_a_reason(task: HumanEval) -> None:
    (first,) = task.prompts(split="test", limit=1, seed=0)
    for text, reason in (
        ("", "NameError"),
        ("I cannot.", "SyntaxError"),
        ("```python\ndef has_close_elements(numbers, threshold):\n    return True\n```", "AssertionError"),
        ("```python\ndef other():\n    return True\n```", "NameError"),
        ("```python\ndef check(f): pass\ndef has_close_elements(a, b): return 1\n```", "AssertionError"),
    ):
        score = task.score(first, text)
        assert not score.correct
        assert score.reason.startswith(reason), (text, score)


def test_another_split_is_refused(task: HumanEval) -> None:
    with pytest.raises(ValueError, match="'train' is not one of test"):
        task.prompts(split="train", limit=1, seed=0)
