"""Where exported rows go: links are followed, pipes written to, and every text comes back from CSV as it was."""

import csv
import io
import os
import threading
from pathlib import Path

import pandas as pd
import pytest

from orchestrator.cli import main
from reports.export import encoded, export
from tests.synthetic import grid, sweep


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return sweep(grid()).write(tmp_path / "run")


@pytest.mark.parametrize("text", ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", "\r", " a "])
def test_text_comes_back_from_csv(text: str) -> None:
    frame = pd.DataFrame({"id": [text, "x"], "n": pd.array([1, None], dtype="Int64"), "share": [0.1, None]})
    data = encoded(frame, "csv")
    rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
    assert rows == [["id", "n", "share"], [text, "1", "0.1"], ["x", "", ""]]
    back = pd.read_csv(io.BytesIO(data))
    assert back["id"].tolist() == [text, "x"]
    assert back["n"].tolist()[0] == 1
    assert back[["n", "share"]].isna().to_numpy().tolist() == [[False, False], [True, True]]


def test_a_link_stays_a_link(run: Path, tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    expected = export(run, out=tmp_path / "plain.csv").read_bytes()
    export(run, out=tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_bytes() == expected


def test_a_pipe_is_written_to(run: Path, tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    export(run, out=pipe)
    reader.join(timeout=20)
    assert pipe.is_fifo()
    assert read == [export(run, out=tmp_path / "plain.csv").read_bytes()]


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("rows.xlsx", [], 2),
        ("rows.CSV", [], 0),
        ("rows", [], 0),
        ("rows.xlsx", ["--format", "csv"], 0),
        ("-", [], 0),
        ("/dev/stdout", [], 0),
    ],
)
def test_suffix_says_the_format(
    run: Path, tmp_path: Path, name: str, options: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    stdout = name in ("-", "/dev/stdout")
    out = name if stdout else str(tmp_path / name)
    expected = export(run, out=tmp_path / "plain.csv").read_text()
    with pytest.raises(SystemExit) as ended:
        main(["export", str(run), "-o", out, *options])
    assert int(ended.value.code or 0) == code
    printed = capsys.readouterr()
    if code:
        assert "no format .xlsx: allowed are .csv, .json, .parquet" in printed.err
        assert not Path(out).exists()
    else:
        assert (printed.out if stdout else Path(out).read_text()) == expected
