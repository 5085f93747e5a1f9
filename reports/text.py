"""Numbers and hostile texts as people should see them: undefined is n/a, long is cut, invisible is made visible."""

import math
from collections.abc import Collection

from sweeps.statistics import FEWEST, Estimate

NOT_AVAILABLE = "n/a"
TIMES = "\u00d7"
DASH = "\u2013"
LONGEST = 300
BIDI = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF)
VISIBLE = {
    **{code: chr(0x2400 + code) for code in range(32) if code not in (9, 10)},
    0x7F: "\u2421",
    **{code: f"\u2039U+{code:04X}\u203a" for code in (*range(0x80, 0xA0), *BIDI)},
    **{code: f"\u2039U+{code:04X}\u203a" for code in range(0xD800, 0xE000)},
}


def visible(text: str, longest: int = LONGEST) -> str:
    """`text` with control, separator and direction characters made visible, cut to `longest` with its full length."""
    if len(text) > longest:
        text = f"{text[:longest]}… ({len(text):,} characters)"
    return text.translate(VISIBLE)


def number(value: float | None, digits: int = 2) -> str:
    """A number with fixed digits, never a negative zero; n/a where it is undefined."""
    if value is None or not math.isfinite(value):
        return NOT_AVAILABLE
    return f"{value:z,.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage."""
    return NOT_AVAILABLE if value is None else f"{100 * value:z.{digits}f} %"


def interval(estimate: Estimate, digits: int = 2, scale: float = 1.0) -> str:
    """The ends of an interval, empty where there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{number(scale * estimate.low, digits)} {DASH} {number(scale * estimate.high, digits)}"


def no_interval(estimates: Collection[Estimate]) -> str:
    """Why estimates show nothing: `no interval (1 prompt)`. Enough prompts have none where they all agree."""
    least, most = min(estimate.n for estimate in estimates), max(estimate.n for estimate in estimates)
    of = count(most, "prompt") if least == most else f"{least} to {most} prompts"
    return f"no interval ({of}, too few or too alike)" if most >= FEWEST else f"no interval ({of})"


def unsaid(estimates: Collection[Estimate], noun: str) -> str:
    """The sentence that counts comparisons without interval apart; empty where there are none."""
    if not estimates:
        return ""
    verb, them = ("has", "it") if len(estimates) == 1 else ("have", "them")
    return f"{count(len(estimates), noun)} {verb} {no_interval(estimates)}: nothing can be said of {them}."


def significant(value: float | None) -> int:
    """Digits behind the point that show a rate with three figures or more."""
    return 0 if value is None or value >= 1000 else 1 if value >= 100 else 2 if value >= 10 else 3


def count(n: int, noun: str, plural: str = "") -> str:
    """`1 cell`, `2 cells`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
