"""Rows of one case: what it raises becomes a row, so that the cases behind it are still checked."""

import traceback
from collections.abc import Callable

from tests.gpu.setting import Rows


def guarded(where: str, rows: Callable[[], Rows]) -> Rows:
    """The rows, and one with the error where they end in one."""
    try:
        yield from rows()
    except Exception as error:
        yield {
            "kind": "failure",
            "where": where,
            "error": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
            "problems": [f"{where}: {type(error).__name__}: {error}"],
        }
