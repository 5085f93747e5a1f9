"""Where the mirror goes: precedence, absolute paths, refusals in one line, and answers within seconds."""

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from orchestrator.tracking_uri import location, shown, unreachable


def test_without_any_uri_the_run_directory_holds_a_sqlite_file(tmp_path):
    place = location(tmp_path / "run", environ={})
    assert place.uri == f"sqlite:///{tmp_path}/run/mlflow.db"
    assert place.database == tmp_path / "run" / "mlflow.db"
    assert place.artifacts == tmp_path / "run" / "mlflow-artifacts"
    assert place.notes == ()


def test_precedence_is_option_then_sweep_then_environment_and_what_loses_is_said(tmp_path):
    environ = {"MLFLOW_TRACKING_URI": "http://c"}
    assert location(tmp_path, "http://a", "http://b", environ).uri == "http://a"
    assert location(tmp_path, "", "http://b", environ).uri == "http://b"
    assert location(tmp_path, "", "", environ).uri == "http://c"
    assert location(tmp_path, "http://a", "http://b", environ).notes == (
        "the sweep's tracking_uri is http://b and ignored: --tracking-uri wins",
        "MLFLOW_TRACKING_URI is http://c and ignored: --tracking-uri wins",
    )


def test_ambient_runs_and_experiments_are_ignored_and_said(tmp_path):
    environ = {"MLFLOW_RUN_ID": "abc", "MLFLOW_EXPERIMENT_NAME": "theirs"}
    place = location(tmp_path, environ=environ)
    assert place.notes == ("MLFLOW_RUN_ID is set and ignored", "MLFLOW_EXPERIMENT_NAME is set and ignored")


def test_a_relative_sqlite_file_is_the_same_from_any_folder(tmp_path, monkeypatch):
    uris = set()
    for folder in (tmp_path, tmp_path / "elsewhere"):
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        uris.add(location(tmp_path / "run", "sqlite:///my runs/ml flow.db", environ={}).uri)
        uris.add(location(tmp_path / "run", "sqlite:///other/../my runs/ml flow.db", environ={}).uri)
    assert uris == {f"sqlite:///{tmp_path}/run/my runs/ml flow.db"}


def test_an_absolute_sqlite_file_stays_where_it_is(tmp_path):
    assert location(Path("run"), f"sqlite:///{tmp_path}/x.db", environ={}).database == tmp_path / "x.db"


@pytest.mark.parametrize("uri", ["file:./mlruns", "file:///data/mlruns", "./mlruns", "mlruns", "/data/mlruns"])
def test_a_plain_folder_is_refused_with_what_works_instead(uri):
    with pytest.raises(ValueError, match=r"is a plain folder, .* sqlite:///.*mlruns/mlflow\.db works") as caught:
        location(Path("run"), uri, environ={})
    assert "\n" not in str(caught.value)
    assert "--tracking-uri" in str(caught.value)


@pytest.mark.parametrize("uri", ["D:\\runs", "D:/runs", "d:\\a b"])
def test_a_windows_folder_is_refused_with_the_uri_that_is_meant(uri):
    with pytest.raises(ValueError, match=r"Windows folder: write sqlite:///[Dd]:/"):
        location(Path("run"), "", uri, environ={})


@pytest.mark.parametrize(("uri", "why"), [("foo://x", "unknown scheme 'foo'"), ("sqlite:///", "names no file")])
def test_what_cannot_work_is_refused(uri, why):
    with pytest.raises(ValueError, match=why):
        location(Path("run"), "", "", {"MLFLOW_TRACKING_URI": uri})


def test_passwords_are_not_shown():
    assert shown("postgresql://me:secret@db:5432/x") == "postgresql://me:***@db:5432/x"
    assert shown("http://localhost:5000") == "http://localhost:5000"
    (note,) = location(Path("run"), "http://a", "", {"MLFLOW_TRACKING_URI": "http://me:secret@b"}).notes
    assert "secret" not in note
    with pytest.raises(ValueError, match="unknown scheme") as caught:
        location(Path("run"), "oracle://me:secret@b/x", environ={})
    assert "secret" not in str(caught.value)


def test_a_closed_port_is_known_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    started = time.monotonic()
    assert "refused" in unreachable(f"http://127.0.0.1:{port}").lower()
    assert "refused" in unreachable(f"postgresql://u:p@127.0.0.1:{port}/db").lower()
    assert time.monotonic() - started < 3


def test_a_server_that_accepts_and_never_answers_costs_the_given_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        assert "timed out" in unreachable(f"http://127.0.0.1:{silent.getsockname()[1]}", seconds=0.3)
        assert time.monotonic() - started < 5


def test_any_answer_counts_also_an_unfriendly_one():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    assert unreachable(f"http://127.0.0.1:{server.server_port}") == ""
    server.shutdown()
    server.server_close()


def test_files_are_not_asked():
    assert unreachable("sqlite:////nowhere/x.db") == ""
