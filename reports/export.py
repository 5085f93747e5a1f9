"""Rows for pandas users, one a cell, a prompt or a part of an order study: as CSV, JSON or Parquet.

The columns are those of `reports.columns`. Undefined is an empty field in CSV, null in JSON and Parquet; never NaN or
infinity.
"""

import csv
import io
from pathlib import Path
from typing import Literal, get_args

import msgspec
import pandas as pd

from reports.frames import Frames, load
from sweeps.store import atomic_write

Format = Literal["csv", "json", "parquet"]
Rows = Literal["cells", "prompts", "study"]


def export(run_dir: Path, *, rows: Rows = "cells", format: Format = "csv", out: Path) -> Path:
    """Write the rows of a run to `out` and return it.

    A file appears wholly or not at all; a link is followed, and a pipe or device is written to.

    Raises ValueError when `run_dir` is no run directory or `format` is unknown, OSError when `out` cannot be written.
    """
    if format not in get_args(Format):
        raise ValueError(f"format is {format!r}: allowed is {' | '.join(get_args(Format))}")
    data = encoded(chosen(load(run_dir), rows), format)
    if out.exists() and not out.is_file():
        with out.open("wb") as stream:
            stream.write(data)
    else:
        atomic_write(out.resolve(), data)
    return out


def chosen(frames: Frames, rows: Rows) -> pd.DataFrame:
    """The frame that holds the rows asked for."""
    return {"cells": frames.cells, "prompts": frames.prompts, "study": frames.study_rows}[rows]


def encoded(frame: pd.DataFrame, format: Format) -> bytes:
    """A frame in a format."""
    if format == "parquet":
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        return buffer.getvalue()
    if format == "json":
        return msgspec.json.format(msgspec.json.encode(plain(frame)), indent=1)
    # text is always quoted: left to itself the writer leaves a lone carriage return bare, which readers take for a row
    text = frame.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return text.encode("utf-8", "backslashreplace")


def plain(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Rows as dicts of plain values, None where undefined."""
    columns = [frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in frame.columns]
    return [dict(zip(frame.columns, values, strict=True)) for values in zip(*columns, strict=True)]
