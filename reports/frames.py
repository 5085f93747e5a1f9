"""From the files of a run to pandas frames: one row a cell, one row a prompt, with the columns of `reports.columns`.

Only files are read, so a laptop with a copy of the run directory rebuilds every page. Frames and records stay together:
sections read whichever says it more plainly.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from reports.columns import CELL_COLUMNS, PROMPT_COLUMNS, STUDY_COLUMNS, Column
from reports.rows import StudyRow, prompt_rows
from sweeps.aggregate import CellResult, aggregate_all, wanted_rows
from sweeps.belongs import History, read_history, read_jobs, read_spec
from sweeps.merge import NO_ROWS, CellRows, merge_all
from sweeps.order_study import OrderStudy, order_studies
from sweeps.results import Problem, load_results
from sweeps.spec import SweepSpec
from sweeps.store import RunDir

DTYPES: dict[str, Any] = {"text": "object", "int": "Int64", "float": "Float64", "bool": "boolean"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """A run, read: `results` and `studies` in the order of the plan, `rows` by cell id, and frames made of them.

    `references` are the uncached cells that approximate caches are measured against: no methods, so no section takes
    them for results. The frames have their rows too (column `reference`).
    """

    spec: SweepSpec
    history: History
    results: tuple[CellResult, ...]
    references: tuple[CellResult, ...]
    rows: dict[str, CellRows]
    problems: tuple[Problem, ...]
    cells: pd.DataFrame
    prompts: pd.DataFrame
    studies: tuple[OrderStudy, ...]
    study_rows: pd.DataFrame


def load(run_dir: Path) -> Frames:
    """Read a run directory. Raises ValueError when it is none, or a file of the plan cannot be read."""
    run = RunDir(run_dir)
    history = read_history(run)
    loaded = load_results(run, code_digests={start.code_digest for start in history.starts})
    jobs = read_jobs(run)
    rows = wanted_rows(jobs, merge_all(loaded.results))
    results = aggregate_all(jobs, rows)
    studies = tuple(order_studies(jobs, rows).values())
    return frames_of(read_spec(run), history, results, rows, tuple(loaded.problems), studies)


def frames_of(
    spec: SweepSpec,
    history: History,
    results: tuple[CellResult, ...],
    rows: dict[str, CellRows],
    problems: tuple[Problem, ...] = (),
    studies: tuple[OrderStudy, ...] = (),
) -> Frames:
    """The frames of results and rows that are at hand."""
    of_cell = ((result, rows.get(result.cell_id, NO_ROWS)) for result in results)
    prompts = (
        row
        for result, own in of_cell
        for row in prompt_rows(
            result,
            own,
            rows.get(base_id(result), NO_ROWS),
            rows.get(result.cell.uncached().cell_id, NO_ROWS),
        )
    )
    return Frames(
        spec=spec,
        history=history,
        results=tuple(result for result in results if not result.reference),
        references=tuple(result for result in results if result.reference),
        rows=rows,
        problems=problems,
        cells=frame(CELL_COLUMNS, results),
        prompts=frame(PROMPT_COLUMNS, prompts),
        studies=studies,
        study_rows=frame(
            STUDY_COLUMNS, (StudyRow(study=study, shares=shares) for study in studies for shares in study.shares)
        ),
    )


def base_id(result: CellResult) -> str:
    """Id of a cell's draft-free cell."""
    return result.cell.baseline().cell_id


def frame(columns: tuple[Column, ...], rows: Iterable[object]) -> pd.DataFrame:
    """A frame with typed columns in which undefined is <NA>, never NaN or infinity."""
    values = [tuple(column.read(row) for column in columns) for row in rows]
    by_column = list(zip(*values, strict=True)) if values else [()] * len(columns)
    return pd.DataFrame(
        {
            column.name: pd.Series(list(cells), dtype=DTYPES[column.kind])
            for column, cells in zip(columns, by_column, strict=True)
        }
    )
