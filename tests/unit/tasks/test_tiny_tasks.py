"""The generated tasks: reproducible, disjoint splits, one layout, and gold that agrees with the worked answers."""

import random
import re
from collections import Counter
from itertools import pairwise

import pytest

from sweeps.spec import TaskSpec
from workers.catalog import TASKS, resolve
from workers.tasks import tiny_arith, tiny_code
from workers.tasks.base import Prompt
from workers.tasks.tiny_arith import TinyArith
from workers.tasks.tiny_code import TinyCode
from workers.tasks.wording import alternatives, choose
from workers.training.tiny_tokenizer import train_tokenizer

BOTH = (TinyArith(), TinyCode())


@pytest.mark.parametrize("task", BOTH, ids=lambda task: task.name)
class TestBoth:
    def test_the_same_seed_gives_the_same_prompts(self, task: TinyArith | TinyCode) -> None:
        first = task.prompts(split="test", limit=20, seed=5)
        assert first == task.prompts(split="test", limit=20, seed=5)
        assert first[:7] == task.prompts(split="test", limit=7, seed=5)
        assert first != task.prompts(split="test", limit=20, seed=6)
        assert len({prompt.id for prompt in first}) == 20

    def test_no_limit_means_two_hundred(self, task: TinyArith | TinyCode) -> None:
        assert len(task.prompts(split="test", limit=None, seed=0)) == 200

    def test_an_unknown_split_is_refused(self, task: TinyArith | TinyCode) -> None:
        with pytest.raises(ValueError, match="'dev' is not one of train, test"):
            task.prompts(split="dev", limit=1, seed=0)

    def test_the_catalog_makes_it_and_names_its_data(self, task: TinyArith | TinyCode) -> None:
        entry, spec = TASKS[task.name], TaskSpec(name="t", kind=task.name)
        assert isinstance(resolve(entry.factory)(spec), type(task))
        assert resolve(entry.digest)(spec) == task.data_digest
        assert re.fullmatch("[0-9a-f]{64}", task.data_digest)

    def test_all_answers_have_one_length_in_tokens_and_fill_three_to_five_blocks(
        self, task: TinyArith | TinyCode
    ) -> None:
        pairs = list(task.examples(split="train", limit=300, seed=1))
        tokenizer = train_tokenizer(text for prompt, answer in pairs for text in (prompt.text, answer))
        lengths = {len(tokenizer(answer).input_ids) for _, answer in pairs}
        assert len(lengths) == 1
        assert 96 <= lengths.pop() <= 160


def test_splits_share_no_arithmetic() -> None:
    def numbers(prompt: Prompt) -> tuple[str, ...]:
        """Amounts with a sign each, read back from the words."""
        found = re.findall(r"(has|with|in the morning|buys|finds|gets|wins|eats|loses|sells|uses) (\d\d)", prompt.text)
        signs = {"has": "", "with": "", **dict.fromkeys(("buys", "finds", "gets", "wins"), "+")}
        return tuple(signs.get(verb, "-") + amount for verb, amount in found)

    train = {numbers(p) for p in TinyArith().prompts(split="train", limit=2000, seed=0)}
    test = {numbers(p) for p in TinyArith().prompts(split="test", limit=500, seed=0)}
    assert all(len(n) == 5 for n in train | test)
    assert not train & test


def test_splits_share_no_function() -> None:
    def steps(prompt: Prompt) -> str:
        return prompt.text.partition("First")[2]

    train = {steps(p) for p in TinyCode().prompts(split="train", limit=2000, seed=0)}
    test = {steps(p) for p in TinyCode().prompts(split="test", limit=500, seed=0)}
    assert not train & test


def test_worked_arithmetic_is_right_and_has_two_digits() -> None:
    task = TinyArith()
    for prompt, answer in task.examples(split="test", limit=200, seed=2):
        sums = re.findall(r"(\d+) ([+-]) (\d+) = (\d+)", answer)
        assert len(sums) == tiny_arith.STEPS
        for a, sign, n, r in sums:
            assert int(a) + (int(n) if sign == "+" else -int(n)) == int(r)
        for before, after in pairwise(sums):
            assert before[3] == after[0]
        numbers = re.findall(r"\d+", re.sub(r"Step \d:", "", answer)) + re.findall(r"\d+", prompt.text)
        assert all(len(number) == 2 for number in numbers)
        assert answer.endswith(f"#### {sums[-1][3]}")
        assert prompt.gold == sums[-1][3]
        assert task.score(prompt, answer).correct


def test_no_sum_carries_and_no_difference_borrows() -> None:
    for _, answer in TinyArith().examples(split="train", limit=300, seed=5):
        for a, sign, n, r in re.findall(r"(\d\d) ([+-]) (\d\d) = (\d\d)", answer):
            for digit in range(2):
                assert int(r[digit]) == int(a[digit]) + int(f"{sign}{n[digit]}")


def test_every_wording_occurs() -> None:
    for task, templates in (
        (TinyArith(), (*tiny_arith.GAIN_FORMS, *tiny_arith.LOSS_FORMS)),
        (TinyCode(), (*tiny_code.DOCSTRINGS, *(form for forms in tiny_code.COMMENTS.values() for form in forms))),
    ):
        text = "\n".join(answer for _, answer in task.examples(split="train", limit=600, seed=3))
        for template in templates:
            for choice in alternatives(template):
                assert all(words in text for words in choice)


@pytest.mark.parametrize(
    "template",
    [*tiny_arith.GAIN_FORMS, *tiny_arith.LOSS_FORMS, *tiny_code.DOCSTRINGS, *sum(tiny_code.COMMENTS.values(), ())],
)
def test_alternatives_have_one_length_and_no_word_at_the_same_place(template: str) -> None:
    for choice in alternatives(template):
        rows = [words.split() for words in choice]
        assert len({len(row) for row in rows}) == 1
        assert all(len(set(column)) == len(rows) for column in zip(*rows, strict=True))


def test_choices_are_independent_and_favour_the_first() -> None:
    rng = random.Random(0)
    drawn = Counter(choose("[a|b] and [c|d|e]", rng) for _ in range(4000))
    assert set(drawn) == {f"{x} and {y}" for x in "ab" for y in "cde"}
    assert abs(drawn["a and c"] / 4000 - 0.36) < 0.03
    assert abs(drawn["b and e"] / 4000 - 0.08) < 0.02
    assert choose("no choice", rng) == "no choice"


@pytest.mark.parametrize(
    ("text", "correct"), [("#### 46", True), ("####46\n", True), ("#### 45", False), ("nothing", False), ("", False)]
)
def test_arithmetic_scores(text: str, correct: bool) -> None:
    prompt = Prompt(id="x", text="", gold="46")
    assert TinyArith().score(prompt, text).correct is correct


def test_values_of_a_function_by_hand() -> None:
    steps = tuple(
        tiny_code.Step(out=out, operation=operation, a=a, b=b)
        for out, operation, a, b in (
            ("q", "plus", "x", "y"),
            ("r", "times", "q", "3"),
            ("s", "minus", "r", "x"),
            ("t", "larger", "s", "y"),
            ("u", "smaller", "t", "9"),
        )
    )
    problem = tiny_code.Problem(function="mix", arguments=("x", "y"), steps=steps)
    assert problem.value((1, 2)) == 8  # 3, 9, 8, 8, 8
    assert problem.value((2, 2)) == 9  # 4, 12, 10, 10, 9
    assert problem.value((-5, 1)) == 1  # -4, -12, -7, 1, 1


def test_worked_functions_pass_their_tests_and_wrong_ones_fail() -> None:
    task = TinyCode()
    for prompt, answer in task.examples(split="test", limit=12, seed=4):
        assert task.score(prompt, answer).correct
    prompt, answer = next(task.examples(split="test", limit=1, seed=4))
    for wrong in (re.sub(r"return (\w)", r"return \1 + 1", answer), answer.replace("def ", "def other_"), "", "```"):
        assert not task.score(prompt, wrong).correct


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1\n```",
        "```\nx = 1\n```",
        "Here it is:\n```py\nx = 1\n```\nand\n```python\ny = 2\n```",
        "```python\nx = 1",
        "x = 1",
    ],
)
def test_code_is_taken_from_the_first_fence_or_the_whole_text(text: str) -> None:
    assert tiny_code.extract(text) == "x = 1"


def test_every_statement_counts() -> None:
    """Each step uses the one before it, and names are distinct, so a lost statement changes the function or breaks
    it.
    """
    for prompt in TinyCode().prompts(split="test", limit=200, seed=8):
        outs = re.findall(r"set (\w) to (?:the (?:larger|smaller) of )?(\w)", prompt.text)
        assert len({out for out, _ in outs}) == tiny_code.STEPS
        assert all(second[1] == first[0] for first, second in pairwise(outs))
