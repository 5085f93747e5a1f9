"""Generated programming problems: a small Python function of five statements, named and described by the prompt.

Made for a target of two million parameters. Comment and statement of a step have one length together, whatever the
operation and the wording, so the layout of the answer follows from the prompt. Wordings and the operand order of
commutative operations are free choices: each decides several tokens at once, so the order in which a diffusion target
fills a block depends on what was filled. Answers are graded by running them against tests; the expected values come
from interpreting the problem, not from running code.
"""

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sweeps.spec import TaskSpec
from workers.tasks.base import Prompt, Score
from workers.tasks.generated import GeneratedTask
from workers.tasks.sandbox import run_tests
from workers.tasks.texts import clean
from workers.tasks.wording import choose

FUNCTIONS = ("bend", "calc", "fold", "grow", "join", "mix", "pack", "trim")
ARGUMENTS = ("k", "m", "n", "p", "x", "y")
LOCALS = ("q", "r", "s", "t", "u", "v", "w", "z")
STEPS = 5
ORDER = ("First", "Next", "Then", "Later", "Last")
ASK = {
    "plus": "set {out} to {a} plus {b}",
    "minus": "set {out} to {a} minus {b}",
    "times": "set {out} to {a} times {b}",
    "larger": "set {out} to the larger of {a} and {b}",
    "smaller": "set {out} to the smaller of {a} and {b}",
}
# All codes of one operation have one length, and so have all comments; a comment for max and min is three tokens
# shorter.
CODE = {
    "plus": ("{a} + {b}", "{b} + {a}"),
    "minus": ("{a} - {b}",),
    "times": ("{a} * {b}", "{b} * {a}"),
    "larger": ("max({a}, {b})", "max({b}, {a})"),
    "smaller": ("min({a}, {b})", "min({b}, {a})"),
}
COMMENTS = {
    "plus": (
        "{out} is [the sum of|made up from] {a} and {b} here",
        "[add up|put together] {a} and {b}, [to get|giving us] {out}",
        "[now let|next make] {out} hold {a} with {b} [added in|on top]",
    ),
    "minus": (
        "[take away|pull out] {b} from {a} [to get|giving us] {out} now",
        "{out} is [what is|all of] {a} without {b} [in it|at all]",
        "[now let|next make] {out} hold {a} with {b} [taken out|cut off]",
    ),
    "times": (
        "[multiply up|scale out] {a} by {b}, [to get|giving us] {out}",
        "{out} is [the product of|made up from] {a} times {b} now",
        "[now let|next make] {out} hold {a} times {b} [over here|as well]",
    ),
    "larger": (
        "{out} is [the larger one|biggest of both] now",
        "[keep the|choose our] larger here as {out}",
        "the larger [one goes|will land] in {out}",
    ),
    "smaller": (
        "{out} is [the smaller one|lowest of both] now",
        "[keep the|choose our] smaller here as {out}",
        "the smaller [one goes|will land] in {out}",
    ),
}
DOCSTRINGS = (
    "[Work with|Start from] {x} and {y} [in just five|using only these] small steps.",
    "[Take in|Read off] {x} and {y}, then [give back|hand out] {last}.",
    "Find {last} from [the two inputs|both given numbers] {x} and {y} here.",
)
WEIGHTS = (0.6, 0.28, 0.12)
_FENCE = re.compile(r"```[A-Za-z0-9]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`out = a (operation) b`; operands are variable names or one-digit constants."""

    out: str
    operation: str
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A function of two arguments and five steps that returns the last step's variable."""

    function: str
    arguments: tuple[str, str]
    steps: tuple[Step, ...]

    @property
    def key(self) -> str:
        """What decides the split: operations and operands, whatever the function's name and the wording."""
        return ";".join(f"{s.out}={s.operation}({s.a},{s.b})" for s in self.steps)

    def value(self, arguments: tuple[int, int]) -> int:
        """The function's value by interpreting the steps."""
        known = dict(zip(self.arguments, arguments, strict=True))
        for step in self.steps:
            a, b = _read(step.a, known), _read(step.b, known)
            known[step.out] = {
                "plus": a + b,
                "minus": a - b,
                "times": a * b,
                "larger": max(a, b),
                "smaller": min(a, b),
            }[step.operation]
        return known[self.steps[-1].out]


def _read(operand: str, known: Mapping[str, int]) -> int:
    return int(operand) if operand.isdigit() else known[operand]


def draw_problem(rng: random.Random) -> Problem:
    """A random problem; each step uses the variable of the step before it, so that no statement is idle."""
    x, y = rng.sample(ARGUMENTS, 2)
    names = rng.sample(LOCALS, STEPS)
    steps: list[Step] = []
    for i, out in enumerate(names):
        operation = rng.choice(tuple(ASK))
        a = names[i - 1] if i else x
        others = [v for v in (x, y, *names[:i]) if v != a] if i else [y]
        constant = str(rng.randint(2, 9))
        b = constant if i and (operation == "times" or rng.random() < 0.4) else rng.choice(others)
        steps.append(Step(out=out, operation=operation, a=a, b=b))
    return Problem(function=rng.choice(FUNCTIONS), arguments=(x, y), steps=tuple(steps))


def question(problem: Problem) -> str:
    """The problem in words."""
    x, y = problem.arguments
    asks = (
        f"{word} {ASK[step.operation].format(out=step.out, a=step.a, b=step.b)}."
        for word, step in zip(ORDER, problem.steps, strict=True)
    )
    return f"Write a Python function {problem.function}({x}, {y}). {' '.join(asks)} Return {problem.steps[-1].out}."


def answer(problem: Problem, rng: random.Random) -> str:
    """A fenced function; the wordings and the order of commutative operands are drawn."""
    x, y = problem.arguments
    last = problem.steps[-1].out
    doc = choose(rng.choices(DOCSTRINGS, WEIGHTS)[0], rng).format(x=x, y=y, last=last)
    lines = [f"def {problem.function}({x}, {y}):", f'    """{doc}"""']
    for step in problem.steps:
        words = {"out": step.out, "a": step.a, "b": step.b}
        codes = CODE[step.operation]
        code = codes[len(codes) > 1 and rng.random() < 0.3]
        comment = choose(rng.choices(COMMENTS[step.operation], WEIGHTS)[0], rng)
        lines.append(f"    # {comment.format(**words)}")
        lines.append(f"    {step.out} = {code.format(**words)}")
    lines.append(f"    return {last}")
    return "\n".join(("```python", *lines, "```"))


def tests_of(problem: Problem, rng: random.Random) -> str:
    """Six assertions on random arguments, as Python source."""
    lines = []
    for _ in range(6):
        pair = (rng.randint(-9, 20), rng.randint(-9, 20))
        lines.append(f"assert {problem.function}{pair} == {problem.value(pair)}")
    return "\n".join(lines) + "\n"


def extract(text: str) -> str:
    """The code in a generated answer: the first fenced block (an unclosed one reaches to the end), else the whole
    text.
    """
    found = _FENCE.search(text)
    return found.group(1) if found else text


class TinyCode(GeneratedTask[Problem]):
    """The task `tiny-code`."""

    name = "tiny-code"

    def draw(self, rng: random.Random) -> Problem:
        """A random problem."""
        return draw_problem(rng)

    def worked(self, problem: Problem, rng: random.Random) -> tuple[str, str, str]:
        """The problem's text, its gold and a worked answer."""
        tests, solution = tests_of(problem, rng), answer(problem, rng)
        return question(problem), json.dumps({"entry_point": problem.function, "tests": tests}), solution

    def score(self, prompt: Prompt, text: str) -> Score:
        """Correct when the extracted function passes every test of the prompt."""
        gold = json.loads(prompt.gold)
        code = extract(text)
        outcome = run_tests(code, gold["tests"], names=(gold["entry_point"],))
        return Score(correct=outcome.passed, reason=outcome.reason, extracted=clean(code))


def make(_spec: TaskSpec) -> TinyCode:
    """The catalog's factory."""
    return TinyCode()


def digest(_spec: TaskSpec) -> str:
    """The catalog's digest."""
    return TinyCode().data_digest
