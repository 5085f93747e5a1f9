"""Texts that can be stored: generated text may hold anything, records hold UTF-8 and are bounded."""

MAX_CHARACTERS = 20_000
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def clean(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """`text` with lone surrogates, which UTF-8 cannot express, as U+FFFD, cut to `limit` characters."""
    return text[:limit].translate(_SURROGATES)
