"""Free choices of words in the worked answers of generated tasks.

A template writes a choice as `[in all|by now]`. The alternatives of a choice have one number of words and no word
at the same place in common: until one of its words is filled all of them are uncertain, and then none is.
"""

import random
import re

FIRST = 0.6
"""Odds of the first alternative; the others share the rest."""
_CHOICE = re.compile(r"\[([^\]]*)\]")


def choose(template: str, rng: random.Random) -> str:
    """The template with each choice drawn independently."""

    def draw(match: re.Match[str]) -> str:
        first, *others = match[1].split("|")
        return first if rng.random() < FIRST else rng.choice(others)

    return _CHOICE.sub(draw, template)


def alternatives(template: str) -> list[tuple[str, ...]]:
    """The choices of a template, in order."""
    return [tuple(match[1].split("|")) for match in _CHOICE.finditer(template)]
