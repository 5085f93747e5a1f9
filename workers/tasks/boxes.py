"""Finding `\\boxed{...}` and `\\fbox{...}` in an answer: nested braces count, unclosed boxes do not."""

import re

_TOKEN = re.compile(r"(?P<box>\\(?:boxed|fbox)\s*\{)|\\.|(?P<open>\{)|(?P<close>\})", re.DOTALL)


def last_box(text: str) -> str | None:
    """What is in the last closed box (a later one retracts an earlier one), or None. Linear in the text's length."""
    opened: list[int | None] = []  # for every open brace: where a box's content starts, or None
    best: tuple[int, int] | None = None
    for token in _TOKEN.finditer(text):
        if token["box"]:
            opened.append(token.end())
        elif token["open"]:
            opened.append(None)
        elif token["close"] and opened:
            start = opened.pop()
            if start is not None and (best is None or start > best[0]):
                best = (start, token.start())
    return None if best is None else text[best[0] : best[1]].strip()
