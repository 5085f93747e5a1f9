"""Prompts of `spot decode`: a text, or a file with one `{"ids": [...]}` a line."""

import json
from dataclasses import dataclass
from pathlib import Path

from sweeps.source import SweepError


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenPrompt:
    """A prompt as text or as token ids. `id` keys its noise, so that equal prompts draw differently."""

    id: str
    text: str = ""
    ids: tuple[int, ...] | None = None


def read_ids_file(path: Path) -> tuple[GivenPrompt, ...]:
    """One prompt a line; blank lines are skipped. `id` is optional and is the line's number where it is absent."""
    prompts = []
    with path.open(encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                prompts.append(_prompt(line, f"{path}:{number}", number))
    if not prompts:
        raise SweepError(f'{path}: no prompts (one {{"ids": [...]}} a line)')
    return tuple(prompts)


def _prompt(line: str, where: str, number: int) -> GivenPrompt:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise SweepError(f"{where}: not JSON ({error})") from None
    ids = row.get("ids") if isinstance(row, dict) else None
    if not isinstance(ids, list) or any(type(token) is not int or token < 0 for token in ids):
        raise SweepError(f'{where}: allowed is {{"ids": [whole numbers from 0]}}')
    return GivenPrompt(id=str(row.get("id", number)), ids=tuple(ids))
