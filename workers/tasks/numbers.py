"""Reading the final number out of an answer, and comparing it exactly with the gold one. No floats anywhere.

Where the number is: after the first `####` that has one (what follows is often the next, invented question), else in
the last closed `\\boxed{}`, else the last number of the text: `12 apples and 3 pears` gives 3. Currency signs, `%`
and thousands separators are passed over, so 50% equals 50; digits of any script count, full-width ones too; `5/2` is
two and a half, `1e3` a thousand. A sign belongs to the number unless it stands behind something it could be
subtracted from or be a hyphen of: `10 - 7`, `10-7` and `covid-7` end in 7, `= -7` and `is -7` in minus seven (also
with U+2212); a dash with a space is a bullet.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from fractions import Fraction

from workers.tasks.base import Score
from workers.tasks.boxes import last_box
from workers.tasks.texts import clean

MAX_LENGTH = 1000  # characters of a number, and the largest exponent: beyond it is no number
_SIGNS = str.maketrans(
    {"\u2212": "-", "\ufe63": "-", "\uff0d": "-", "\uff0b": "+", "\uff0c": ",", "\uff0e": ".", "\uff05": "%"}
)
_LATEX = re.compile(r"\\[,!;:]|(?<=[0-9])\{,\}(?=[0-9])|\\(?=[$%])")  # what LaTeX puts inside of numbers
_MIXED = re.compile(r"([0-9])(\\[dt]?frac)")
_FRACTION = re.compile(r"\\[dt]?frac\{([0-9]+)\}\{([0-9]+)\}")
_NUMBER = re.compile(
    r"""(?P<sign>[-+]?)[$€£¥]?(?P<inner>[-+]?)
        (?P<digits>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)
        (?P<exponent>[eE][-+]?[0-9]+(?![0-9A-Za-z]))?
        (?P<below>/[0-9]+(?![0-9/]))?""",
    re.VERBOSE,
)


def final_number(text: str) -> tuple[Fraction, str] | None:
    """The answer's number, exact, and how it is written; None when there is none. Never raises."""
    for part in text.split("####")[1:]:
        found = next(_numbers(part), None)
        if found:
            return found
    return next(_numbers(last_box(text) or "", backwards=True), None) or next(_numbers(text, backwards=True), None)


def gold_number(gold: str) -> Fraction:
    """The number that a gold answer states: after its last `####`, else as a whole. Raises ValueError."""
    stated = gold.rpartition("####")[2].strip()
    found = list(_numbers(stated))
    if len(found) != 1 or found[0][1] != re.sub(r"\s", "", _plain(stated)).strip("$%"):
        raise ValueError(f"{clean(stated, limit=60)!r} is not one number")
    return found[0][0]


def score_number(gold: str, text: str) -> Score:
    """Correct when the answer's number equals the gold number exactly."""
    found = final_number(text)
    if found is None:
        return Score(correct=False, reason="no number in the answer", extracted=None)
    value, written = found
    correct = value == gold_number(gold)
    wanted = clean(gold.rpartition("####")[2].strip(), limit=60)
    return Score(correct=correct, reason="equal" if correct else f"expected {wanted}", extracted=written)


def _plain(text: str) -> str:
    """ASCII digits and signs, fractions as a/b, without the marks that LaTeX puts inside of numbers."""
    text = text.translate(_SIGNS)
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return _FRACTION.sub(r"\1/\2", _MIXED.sub(r"\1 \2", _LATEX.sub("", text)))


def _numbers(text: str, *, backwards: bool = False) -> Iterator[tuple[Fraction, str]]:
    """The numbers of a text, from its start or its end, with their spelling."""
    plain = _plain(text)
    matches: Iterable[re.Match[str]] = _NUMBER.finditer(plain)
    for match in reversed(list(matches)) if backwards else matches:
        value = _value(match)
        if value is not None:
            sign = match["inner"] or (match["sign"] if _is_sign(plain, match.start()) else "")
            digits = match["digits"] + (match["exponent"] or "") + (match["below"] or "")
            yield -value if sign == "-" else value, sign + digits


def _value(match: re.Match[str]) -> Fraction | None:
    """The number without its sign; None when it is too long to be one or divides by zero."""
    digits, exponent, below = match["digits"].replace(",", ""), match["exponent"] or "", match["below"] or ""
    if len(digits) + len(below) > MAX_LENGTH or len(exponent) > 6 or abs(int(exponent[1:] or 0)) > MAX_LENGTH:
        return None
    divisor = int(below[1:] or 1)
    return None if divisor == 0 else Fraction(digits + exponent) / divisor


def _is_sign(text: str, at: int) -> bool:
    """Whether a plus or minus at `at` belongs to the number behind it, rather than to what stands before it."""
    before = text[max(0, at - 80) : at]
    bare = before.rstrip(" \t")
    if not bare:
        return True
    touches = len(bare) == len(before)
    return not (bare[-1].isdigit() or bare[-1] in ")]}%" or (touches and bare[-1].isalpha()))
