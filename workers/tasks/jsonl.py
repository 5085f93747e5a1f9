"""The task `jsonl`: rows of a JSON Lines file, with the fields that the sweep names. GSM8K's own file works as it is.

The file is UTF-8 (a BOM, CRLF and blank lines do not matter, and only a newline ends a row). Every row is checked
before any work: a sweep on a file with a bad row is refused with its line number, so that no row drops out of a mean
unnoticed. Texts are data: nothing in them is interpolated, and they reach the target unchanged, but for lone
surrogates (which no tokenizer can encode) becoming U+FFFD and for the `instruction` that the sweep may add behind an
empty line.
"""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from sweeps.spec import TaskSpec
from workers.tasks.base import Prompt, Score, digest_of
from workers.tasks.boxed import gold_box, score_boxed
from workers.tasks.numbers import gold_number, score_number
from workers.tasks.texts import clean

RULES = "jsonl-1"  # changes when the same file would give other prompts or other verdicts
MAX_SHOWN = 5


def score_exact(gold: str, text: str) -> Score:
    """Correct when both are the same text, white space around them left aside."""
    given = clean(text.strip())
    correct = given == gold.strip()
    return Score(
        correct=correct, reason="equal" if correct else f"expected {gold.strip()[:60]}", extracted=given or None
    )


SCORES: dict[str, Callable[[str, str], Score]] = {"number": score_number, "boxed": score_boxed, "exact": score_exact}
CHECKS: dict[str, Callable[[str], object]] = {"number": gold_number, "boxed": gold_box, "exact": str}


class JsonlTask:
    """The rows of one file, in its order. Raises ValueError for a file or row that cannot be used."""

    def __init__(self, spec: TaskSpec) -> None:
        self.name = spec.name
        self._split = spec.split
        self._answer = spec.answer
        self._prompts = read_prompts(spec)

    @property
    def data_digest(self) -> str:
        """Sha256 of ids, texts and golds of all rows and of how answers are compared."""
        return digest_of((RULES, self._answer, *(part for p in self._prompts for part in (p.id, p.text, p.gold))))

    def prompts(self, *, split: str, limit: int | None, seed: int) -> tuple[Prompt, ...]:
        """The first `limit` rows (None: all); a file is one split, and its order is the same for every seed."""
        if split != self._split:
            raise ValueError(f"split: {split!r} is not in the file, which is the split {self._split!r}")
        return self._prompts[:limit]

    def score(self, prompt: Prompt, text: str) -> Score:
        """Grade by the sweep's `answer`: number, boxed or exact."""
        return SCORES[self._answer](prompt.gold, text)


def make(spec: TaskSpec) -> JsonlTask:
    """The catalog's factory."""
    return JsonlTask(spec)


def digest(spec: TaskSpec) -> str:
    """The catalog's digest."""
    return JsonlTask(spec).data_digest


def read_prompts(spec: TaskSpec) -> tuple[Prompt, ...]:
    """Every row as a prompt. Raises ValueError naming the file and each bad line (the first five of them)."""
    faults: list[str] = []
    prompts: list[Prompt] = []
    lines: dict[str, int] = {}
    for number, row in _rows(spec, faults):
        try:
            prompt = _prompt(spec, row, len(prompts))
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            continue
        if prompt.id in lines:
            faults.append(f"line {number}: {spec.id_field} {prompt.id!r} is also that of line {lines[prompt.id]}")
        lines.setdefault(prompt.id, number)
        prompts.append(prompt)
    if faults:
        more = f" (and {len(faults) - MAX_SHOWN} more)" if len(faults) > MAX_SHOWN else ""
        raise ValueError(clean(f"{spec.path}: {'; '.join(faults[:MAX_SHOWN])}{more}"))
    if not prompts:
        raise ValueError(f"{spec.path}: no rows")
    return tuple(prompts)


def _rows(spec: TaskSpec, faults: list[str]) -> Iterator[tuple[int, Any]]:
    """Line numbers, from 1, with the parsed JSON; what is not JSON becomes a fault."""
    try:
        content = Path(spec.path).read_bytes()
    except OSError as error:
        raise ValueError(f"{spec.path}: {error.strerror or error}") from None
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            try:
                yield number, _DECODER.decode(line.decode().strip())
            except RecursionError:
                faults.append(f"line {number}: nested too deeply")
            except ValueError as error:  # JSON and UTF-8 errors are ValueErrors
                faults.append(f"line {number}: not JSON in UTF-8: {error}")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)  # 12345678901234567890.1 stays itself


def _prompt(spec: TaskSpec, row: Any, index: int) -> Prompt:
    """One row. Raises ValueError naming the field."""
    if not isinstance(row, dict):
        raise ValueError(f"a row is an object with fields, this is {_kind(row)}")
    text = _text(row, spec.prompt_field)
    gold = _text(row, spec.answer_field, numbers=True)
    try:
        CHECKS[spec.answer](gold)
    except ValueError as error:
        raise ValueError(f"{spec.answer_field}: {error} (answer: {spec.answer})") from None
    identity = _text(row, spec.id_field, numbers=True) if spec.id_field else str(index)
    if spec.instruction:
        text = f"{text}\n\n{spec.instruction}"
    return Prompt(id=identity, text=text, gold=gold)


def _text(row: dict[str, Any], name: str, *, numbers: bool = False) -> str:
    """A field as text; with `numbers` a number stands for its digits. Raises ValueError for anything else."""
    if name not in row:
        have = ", ".join(map(repr, list(row)[:8])) or "none"
        raise ValueError(f"no field {name!r}: the fields are {have}")
    value = row[name]
    if isinstance(value, str):
        return clean(value, limit=len(value))
    if numbers and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return str(value)
    allowed = "a text or a number" if numbers else "a text"
    raise ValueError(f"{name} is {_kind(value)}: allowed is {allowed}")


def _kind(value: object) -> str:
    """What a JSON value is, in JSON's words."""
    names = {type(None): "null", bool: "true or false", list: "a list", dict: "an object", str: "a text"}
    return names.get(type(value), "a number")
