"""Generated word problems: four additions and subtractions of two-digit numbers, worked out step by step.

Made for a target of two million parameters: every number has two digits and every phrasing of a step one length, so a
word filled early never fixes how much room is left for the numbers behind it, and no sum carries. The phrasings put the
numbers at different places (one states the result before the sum) and have free wordings of their own. What is filled
decides the words around it, so the order in which a diffusion target fills a block is far from left to right.
"""

import random
from dataclasses import dataclass

from sweeps.spec import TaskSpec
from workers.tasks.base import Prompt, Score
from workers.tasks.generated import GeneratedTask
from workers.tasks.numbers import score_number
from workers.tasks.wording import choose

NAMES = ("Ana", "Ben", "Eva", "Ida", "Leo", "Max", "Sam", "Tom")
ITEMS = ("cups", "eggs", "hats", "keys", "nuts", "pens", "pins", "toys")
GAINS = ("buys", "finds", "gets", "wins")
LOSSES = ("eats", "loses", "sells", "uses")
LOSS_VERBS = {item: tuple(v for v in LOSSES if v != "eats" or item in ("eggs", "nuts")) for item in ITEMS}
STEPS = 4
OPENINGS = (
    "{name} has {start} {items}.",
    "{name} starts with {start} {items}.",
    "In the morning {name} has {start} {items}.",
)
MIDDLE = "First {name} {v1} {n1}, next {name} {v2} {n2}, then {name} {v3} {n3} and last {name} {v4} {n4}."
QUESTIONS = (
    "How many {items} are there now?",
    "How many {items} does {name} have now?",
)
# Every phrasing of a step, and every phrasing of the close, has one length in words, marks and digits.
GAIN_FORMS = (
    "{name} {verb} {n} more {items}, [so we add|and this makes]: {a} + {n} = {r} [in all|by now].",
    "[There are now|That gives us] {r} {items} [after this step|once it happened], because {a} + {n} = {r} "
    "[is right|holds true].",
    "[Starting at|Going from] {a} {items}, the {n} [new ones|extra things] [make it|lead to] {a} + {n} = {r}.",
    "[We add|Now put] {n} to {a} [and so see|which will show] that the sum {a} + {n} = {r}.",
)
LOSS_FORMS = (
    "{name} {verb} {n} [of the|from those] {items}, [so we take|and this leaves]: {a} - {n} = {r} left.",
    "[There are only|That leaves just] {r} {items} [after this step|once it happened], because {a} - {n} = {r} "
    "[is right|holds true].",
    "[Out of|Going from] {a} {items}, the {n} [lost ones|missing things] [make it|lead to] {a} - {n} = {r}.",
    "[We take|Now pull] {n} from {a} [and so see|which will show] that the rest {a} - {n} = {r}.",
)
CLOSES = (
    "So {name} has {r} {items} now.",
    "In all {r} {items} are left.",
)
FORM_WEIGHTS = (0.55, 0.25, 0.12, 0.08)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One word problem: a start and four (verb, amount) steps; every intermediate result has two digits."""

    name: str
    items: str
    start: int
    steps: tuple[tuple[str, int], ...]

    @property
    def results(self) -> tuple[int, ...]:
        """The number of items after each step."""
        out, total = [], self.start
        for verb, amount in self.steps:
            total += amount if verb in GAINS else -amount
            out.append(total)
        return tuple(out)

    @property
    def key(self) -> str:
        """What decides the split: the numbers and the signs, whatever the wording."""
        return f"{self.start}" + "".join(f"{'+' if v in GAINS else '-'}{n}" for v, n in self.steps)


def draw_problem(rng: random.Random) -> Problem:
    """A random problem without carrying or borrowing; amounts and results lie in 10..99."""
    items = rng.choice(ITEMS)
    start = total = rng.randint(10, 99)
    steps: list[tuple[str, int]] = []
    while len(steps) < STEPS:
        tens, units = divmod(total, 10)
        gain = tens < 9 and (tens < 2 or rng.random() < 0.5)
        if gain:
            amount = 10 * rng.randint(1, 9 - tens) + rng.randint(0, 9 - units)
        else:
            amount = 10 * rng.randint(1, tens - 1) + rng.randint(0, units)
        steps.append((rng.choice(GAINS if gain else LOSS_VERBS[items]), amount))
        total += amount if gain else -amount
    return Problem(name=rng.choice(NAMES), items=items, start=start, steps=tuple(steps))


def question(problem: Problem, rng: random.Random) -> str:
    """The problem in words; the phrasing is drawn."""
    words = {"name": problem.name, "items": problem.items, "start": str(problem.start)}
    for i, (verb, amount) in enumerate(problem.steps, start=1):
        words |= {f"v{i}": verb, f"n{i}": str(amount)}
    return " ".join((rng.choice(OPENINGS), MIDDLE, rng.choice(QUESTIONS))).format(**words)


def answer(problem: Problem, rng: random.Random) -> str:
    """A worked answer; the phrasing of each step is drawn, with odds that depend on the step's verb."""
    lines, before = [], problem.start
    for i, ((verb, amount), after) in enumerate(zip(problem.steps, problem.results, strict=True), start=1):
        verbs, forms = (GAINS, GAIN_FORMS) if verb in GAINS else (LOSSES, LOSS_FORMS)
        turn = verbs.index(verb)
        form = rng.choices(forms[turn:] + forms[:turn], FORM_WEIGHTS)[0]
        step = choose(form, rng).format(name=problem.name, verb=verb, items=problem.items, n=amount, a=before, r=after)
        lines.append(f"Step {i}: {step}")
        before = after
    close = CLOSES[rng.random() < 0.3].format(name=problem.name, items=problem.items, r=before)
    return "\n".join((*lines, close, f"#### {before}"))


class TinyArith(GeneratedTask[Problem]):
    """The task `tiny-arith`."""

    name = "tiny-arith"

    def draw(self, rng: random.Random) -> Problem:
        """A random problem."""
        return draw_problem(rng)

    def worked(self, problem: Problem, rng: random.Random) -> tuple[str, str, str]:
        """The problem's text, its gold and a worked answer."""
        text, solution = question(problem, rng), answer(problem, rng)
        return text, str(problem.results[-1]), solution

    def score(self, prompt: Prompt, text: str) -> Score:
        """Correct when the number that the text states, after `####`, is the gold number."""
        return score_number(prompt.gold, text)


def make(_spec: TaskSpec) -> TinyArith:
    """The catalog's factory."""
    return TinyArith()


def digest(_spec: TaskSpec) -> str:
    """The catalog's digest."""
    return TinyArith().data_digest
