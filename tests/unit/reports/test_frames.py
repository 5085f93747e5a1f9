"""Frames and exports: documented columns, typed values, undefined as missing, the same numbers in every format."""

import json
import os
from dataclasses import replace
from statistics import mean

import pandas as pd
import pytest

from reports.columns import AXES, CELL_COLUMNS, PROMPT_COLUMNS, STUDY_COLUMNS, documentation
from reports.export import export
from reports.frames import load
from sweeps.aggregate import aggregate, aggregate_all
from sweeps.made_on import MadeOn
from sweeps.merge import NO_ROWS
from tests.set_rows import set_cells
from tests.synthetic import HOSTILE, Faults, cached, grid, sweep

ASKED_FOR = {
    "cell_id",
    "target",
    "task",
    "drafter",
    "budget",
    "gamma",
    "temperature",
    "noise",
    "seed",
    "max_new_tokens",
    "block_length",
    "n",
    "n_failed",
    "nfe",
    "nfe_low",
    "nfe_high",
    "nfe_draft_free",
    "nfe_reduction",
    "nfe_reduction_low",
    "nfe_reduction_high",
    "tokens_per_s",
    "throughput_ratio",
    "throughput_ratio_low",
    "throughput_ratio_high",
    "correct",
    "identical",
    "claim",
    "how",
}


def test_every_column_is_there_once_and_says_what_it_means():
    for columns in (CELL_COLUMNS, PROMPT_COLUMNS, STUDY_COLUMNS):
        names = [column.name for column in columns]
        assert len(set(names)) == len(names)
        text = documentation(columns)
        assert all(f"| `{column.name}` | {column.kind} |" in text and column.meaning for column in columns)
    assert ASKED_FOR - {column.name for column in CELL_COLUMNS} == set()
    assert PROMPT_COLUMNS[: len(AXES)] == AXES


@pytest.fixture(scope="module")
def studied():
    """The result of a cell whose order model was studied."""
    made = sweep(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,)), prompts=1, timed=0, studied=2)
    return aggregate_all(made.jobs, made.rows())[2]


@pytest.fixture(scope="module")
def measured():
    """The result of a cell with an approximate cache, beside its reference."""
    made = sweep(cached(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,)), "dual"), prompts=6, timed=0)
    return aggregate_all(made.jobs, made.rows())[2]


@pytest.fixture(scope="module")
def ruled():
    """The result of a cell that decodes by the threshold rule, lossy, its timings in doubt."""
    made = sweep(
        set_cells(grid(tasks=("a",), budgets=(8,), temperatures=(0.0,))[0]), timed=4, faults=Faults(noisy=True)
    )
    return aggregate_all(made.jobs, made.rows())[5]


@pytest.fixture(scope="module")
def drawn():
    """A sweep whose cells have failures, mismatches, doubts, and enough prompts of every kind for intervals."""
    faults = Faults(failed=1, missing=1, near_ties=1, bugs=1, noisy=True)
    return sweep(grid(tasks=("a",), budgets=(8,), temperatures=(1.0,)), timed=4, faults=faults)


@pytest.mark.parametrize("column", CELL_COLUMNS, ids=lambda column: column.name)
def test_every_cell_column_reads_a_full_and_an_empty_result(column, drawn, studied, measured, ruled):
    rows = drawn.rows()
    job = drawn.jobs[3]
    full = aggregate(job, rows[job.cell_id], rows[job.cell.baseline().cell_id])
    full = replace(full, study=studied.study, agreement=measured.agreement)
    full = replace(full, pace=ruled.pace, against_standard=ruled.against_standard)
    origins = (MadeOn(target="tiny-sdar", digest=full.cell.target.digest),)
    drafter = replace(full.cell.drafter, cost_digest="c" * 64, origins=origins)
    sets = replace(full.cell.decode, commit="threshold", tau=0.9)
    full = replace(full, cell=replace(full.cell, drafter=drafter, decode=sets))
    kinds = {"text": str, "int": int, "float": (float, int), "bool": bool}
    assert isinstance(column.read(full), kinds[column.kind])
    empty = column.read(aggregate(job, NO_ROWS, NO_ROWS))
    assert empty is None or isinstance(empty, kinds[column.kind])


def test_numbers_of_the_frame_are_those_of_the_records(clean, clean_frames):
    rows = clean.rows()
    for row in clean_frames.cells.itertuples():
        nfe = [record.counters.nfe for record in rows[row.cell_id].generations.values()]
        assert row.nfe == pytest.approx(mean(nfe))
        assert row.n == len(nfe) == 16
    prompts = clean_frames.prompts
    by_cell = prompts.groupby("cell_id")["nfe"].mean()
    assert clean_frames.cells.set_index("cell_id")["nfe"].to_dict() == pytest.approx(by_cell.to_dict())


def test_prompts_that_failed_or_never_ran_have_a_row_without_numbers(faulty_frames):
    prompts = faulty_frames.prompts
    assert len(prompts) == 40 * 16
    counts = prompts.groupby("status").size().to_dict()
    assert counts == {"done": 536, "failed": 34, "missing": 70}
    gone = prompts[prompts.status != "done"]
    assert gone[["nfe", "text", "identical", "tokens_kept"]].isna().all(axis=None)
    assert prompts[prompts.status == "failed"].failure_type.eq("ValueError").all()
    odd = prompts[prompts.identical.eq(False)]
    assert sorted(odd.verdict.unique()) == ["BUG", "near-tie"]


@pytest.mark.parametrize("prompts", [False, True])
def test_all_formats_hold_the_same_rows(prompts, faulty, tmp_path):
    run = faulty.write(tmp_path / "run")
    read = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet}
    frames = {}
    for name, reader in read.items():
        path = export(run, rows="prompts" if prompts else "cells", format=name, out=tmp_path / f"rows.{name}")
        options = {"keep_default_na": False, "na_values": [""]} if name == "csv" else {}
        options |= {"dtype": False} if name == "json" else {}
        frames[name] = reader(path, **options)
    columns = PROMPT_COLUMNS if prompts else CELL_COLUMNS
    for frame in frames.values():
        assert list(frame.columns) == [column.name for column in columns]
        assert len(frame) == (640 if prompts else 40)
    for column in columns:
        for name in ("csv", "json"):
            ours, theirs = (frames[which][column.name] for which in ("parquet", name))
            assert ours.isna().tolist() == theirs.isna().tolist(), (column.name, name)
            if column.kind in ("int", "float"):
                assert theirs.dropna().astype(float).tolist() == pytest.approx(ours.dropna().astype(float).tolist())
            elif column.kind == "text":
                assert theirs.dropna().astype(str).tolist() == ours.dropna().astype(str).tolist()


def test_json_is_strict_and_undefined_is_null(tmp_path):
    made = sweep(grid(tasks=("tiny-arith",), budgets=(4,), temperatures=(0.0,)), faults=Faults(empty_cells=1))
    path = export(made.write(tmp_path / "run"), format="json", out=tmp_path / "cells.json")
    rows = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    empty = next(row for row in rows if row["n"] == 0)
    assert empty["correct"] is None
    assert empty["nfe_reduction"] is None
    assert empty["throughput_ratio"] is None


def test_hostile_texts_come_back_exactly(tmp_path):
    cells = grid(tasks=("tiny-arith",), budgets=(4,), temperatures=(0.0,), mark=HOSTILE[0])
    made = sweep(cells, prompts=len(HOSTILE), faults=Faults(hostile=True))
    path = export(made.write(tmp_path / "run"), rows="prompts", format="json", out=tmp_path / "p.json")
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert [row["score_reason"] for row in rows[: len(HOSTILE)]] == list(HOSTILE)
    assert rows[0]["target"] == f"tiny-sdar{HOSTILE[0]}"


def test_a_wrong_format_and_a_wrong_folder_are_one_line(tmp_path, clean):
    with pytest.raises(ValueError, match=r"format is 'xlsx': allowed is csv \| json \| parquet"):
        export(tmp_path, format="xlsx", out=tmp_path / "x")
    with pytest.raises(ValueError, match="is no run directory"):
        export(tmp_path, out=tmp_path / "x")


def test_results_of_unknown_code_are_left_out_and_said(tmp_path):
    made = sweep(grid(tasks=("tiny-arith",), budgets=(4,), temperatures=(0.0,)), prompts=4)
    job = made.jobs[1]
    decode, timing = made.results[job.cell_id]
    foreign = replace(decode, provenance=replace(decode.provenance, code_digest="other"))
    frames = load(replace(made, results={**made.results, job.cell_id: (foreign, timing)}).write(tmp_path / "run"))
    assert [os.path.basename(problem.path) for problem in frames.problems] == [f"{decode.item_id}.json"]
    assert frames.cells.set_index("cell_id").loc[job.cell_id, "n"] == 0
