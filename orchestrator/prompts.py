"""Prompts of `spot decode --ids-file`: one `{"ids": [...]}` a line."""

import json
from pathlib import Path

from sweeps.source import SweepError


def read_ids_file(path: Path) -> tuple[tuple[int, ...], ...]:
    """The token ids of each line; blank lines are skipped. Raises SweepError naming the line."""
    prompts = []
    with path.open(encoding="utf-8-sig", newline="\n") as lines:
        try:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    prompts.append(_ids(line, f"{path}:{number}"))
        except UnicodeDecodeError as error:
            raise SweepError(f"{path}: not UTF-8 text ({error})") from None
    if not prompts:
        raise SweepError(f'{path}: no prompts (one {{"ids": [...]}} a line)')
    return tuple(prompts)


def _ids(line: str, where: str) -> tuple[int, ...]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SweepError(f"{where}: not JSON ({error})") from None
    ids = row.get("ids") if isinstance(row, dict) else None
    if not isinstance(ids, list) or any(type(token) is not int or token < 0 for token in ids):
        raise SweepError(f'{where}: allowed is {{"ids": [whole numbers from 0]}}')
    return tuple(ids)
