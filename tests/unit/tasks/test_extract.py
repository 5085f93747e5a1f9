"""Getting the program out of an answer: every form of a right solution passes, and the rule for two fences."""

import time

import pytest

from workers.tasks.extract import defined_names, extract_code, preamble

HEADER = '''from typing import List


def half(x):
    return x / 2


def total(numbers: List[int]) -> float:
    """ The sum of halves.
    >>> total([2, 4])
    3.0
    """
'''
SOLUTION = """def total(numbers: List[int]) -> float:
    result = 0
    for n in numbers:
        result += half(n)
    return result
"""
BODY = """    result = 0
    for n in numbers:
        result += half(n)
    return result
"""
FORMS = {
    "bare": SOLUTION,
    "bare closed by a fence": SOLUTION + "```\n",
    "fence without tag": f"```\n{SOLUTION}```",
    "fence py": f"```py\n{SOLUTION}```",
    "fence Python3": f"```Python3\n{SOLUTION}```",
    "fence with attributes": f"```python {{.line-numbers}}\n{SOLUTION}```",
    "tildes": f"~~~python\n{SOLUTION}~~~",
    "four marks": f"````python\n{SOLUTION}````",
    "unclosed fence": f"Here:\n```python\n{SOLUTION}",
    "code on the opening line": f"```{SOLUTION}```",
    "fence at the end of the last line": f"```python\n{SOLUTION.rstrip()}```",
    "indented fence": "1. Solution:\n" + "".join(f"   {line}\n" for line in f"```python\n{SOLUTION}```".split("\n")),
    "tests in the second fence": f"```python\n{SOLUTION}```\nTests:\n```python\nassert total([2]) == 7\n```",
    "a draft in the first fence": f"```python\ndef total(numbers):\n    pass\n```\nNow:\n```python\n{SOLUTION}```",
    "a wrong draft in the first": f"```python\ndef total(numbers):\n    return 0\n```\nSo:\n```python\n{SOLUTION}```",
    "a draft that does not parse": f"```python\ndef total(numbers:\n```\n```python\n{SOLUTION}```",
    "a shell command first": f"```bash\npip install x\n```\n```python\n{SOLUTION}```",
    "crlf": f"```python\n{SOLUTION}```".replace("\n", "\r\n"),
    "bare crlf": SOLUTION.replace("\n", "\r\n"),
    "prose around a fence": f"Sure! I'd do it like this:\n\n```python\n{SOLUTION}```\n\nThis works, isn't it?",
    "prose around bare code": f"Sure! I'd do it so:\n\n{SOLUTION}\nThis works, isn't it?",
    "prose that parses": f"Solution\n\n{SOLUTION}\nNote: done\nThanks\n",
    "prose that starts like code": f"from here on it is easy:\n\n{SOLUTION}\nimport is not needed here.",
    "prompt repeated": HEADER + BODY,
    "prompt repeated in a fence": f"```python\n{HEADER}{BODY}```",
    "body only": BODY,
    "body in a fence": f"```python\n{BODY}```",
    "body without its first indent": BODY.lstrip(),
    "body without any indent": "result = sum(half(n) for n in numbers)\nreturn result\n",
    "body and prose": f"{BODY}\nThis adds the halves, don't you think?\n",
    "prose and body": f"The body is:\n{BODY}",
    "own imports": f"```python\nimport math\nfrom typing import List, Dict\n\n{SOLUTION}```",
    "future import": f"```python\nfrom __future__ import annotations\nimport math\n\n{SOLUTION}```",
    "helper in the answer": "```python\ndef third(x):\n    return x / 2\n\n"
    + SOLUTION.replace("half", "third")
    + "```",
    "decorated": f"```python\nimport functools\n\n@functools.lru_cache\ndef g(x): return x\n\n{SOLUTION}```",
    "tabs": SOLUTION.replace("    ", "\t"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_right_solution_runs(form: str) -> None:
    code = extract_code(FORMS[form], entry_point="total", prompt=HEADER)
    space: dict[str, object] = {}
    exec(compile(code, form, "exec"), space)  # our own solutions, in a test
    assert space["total"]([2, 4]) == 3.0  # type: ignore[operator]


def test_a_draft_alone_is_what_gets_tested() -> None:
    code = extract_code("```python\ndef total(numbers):\n    pass\n```", entry_point="total", prompt=HEADER)
    assert code.endswith("def total(numbers):\n    pass\n")


def test_last_full_solution_wins_when_both_are_full() -> None:
    answer = "```python\ndef f():\n    return 1\n```\nBetter:\n```python\ndef f():\n    return 2\n```"
    assert "return 2" in extract_code(answer, entry_point="f")
    assert "return 1" not in extract_code(answer, entry_point="f")


def test_preamble_holds_imports_and_helpers_but_not_the_function() -> None:
    assert preamble(HEADER, "total") == "from typing import List\n\n\ndef half(x):\n    return x / 2\n\n"
    assert preamble("not python (", "total") == ""
    assert preamble("@cache\ndef total(): 1", "total") == ""


def test_defined_names() -> None:
    assert defined_names(HEADER) == ("List", "half", "total")
    assert defined_names("import os.path as p, sys\nclass A: pass\n(") == ()
    assert defined_names("import os.path, sys as s\nclass A: pass") == ("os", "s", "A")


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "```",
        "~~~~",
        "\0",
        "\ud800",
        "def total(" * 10_000,
        "(" * 100_000,
        "-" * 100_000 + "1",
        "x = " + "[" * 50_000 + "]" * 50_000,
        "```python\n" * 20_000,
        "import x\ndef total\n" * 5_000,
        "a = 1\n" * 30_000 + "def total(",
        "a = 1\n" * 3_000 + "def total(",
        "x = (\n" * 3_000 + "def total(",
        "\\" * 1000,
        "def total():\n" + "".join(" " * i + "if 1:\n" for i in range(1, 300)),
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_hostile_answers_raise_nothing_and_take_little_time(answer: str) -> None:
    started = time.process_time()
    assert isinstance(extract_code(answer, entry_point="total", prompt=HEADER), str)
    assert time.process_time() - started < 3
