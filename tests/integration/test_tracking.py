"""The mirror against MLflow itself: what it finds there, and that a dead or slow server costs seconds."""

import shutil
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import pytest

from orchestrator import tracking
from orchestrator.tracking import settings, sync
from orchestrator.tracking_uri import location
from sweeps.store import RunDir
from tests.synthetic import Faults, grid, sweep

CELLS = grid(tasks=("pass@1",), budgets=(4,), temperatures=(0.0,))


pytestmark = pytest.mark.usefixtures("no_ambient_mlflow")


@pytest.fixture
def run(tmp_path, empty_store):
    made = sweep(CELLS, prompts=3, faults=Faults(failed=1))
    root = made.write(tmp_path / "my run")
    shutil.copy(empty_store, root / "mlflow.db")
    return root


def client(run, uri=""):
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=location(run, uri, environ={}).uri)


def runs_of(run, name="synthetic"):
    found = client(run)
    experiment = found.get_experiment_by_name(name)
    return found.search_runs([experiment.experiment_id])


def test_mlflow_shows_the_sweep_and_a_second_sync_adds_nothing(run, tmp_path, monkeypatch):
    (run / "report.html").write_text("page")
    monkeypatch.setenv("MLFLOW_RUN_ID", "0123456789abcdef0123456789abcdef")
    monkeypatch.chdir(tmp_path)
    done = sync(run)
    assert (done.status, done.written, done.notes) == ("written", 4, ("MLFLOW_RUN_ID is set and ignored",))
    runs = runs_of(run)
    parent = next(r for r in runs if "cell_id" not in r.data.tags)
    children = [r for r in runs if r.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len(runs) == 5
    assert {child.data.params["task"] for child in children} == {"pass@1"}
    assert {child.data.params["drafter"] for child in children} == {"none", "ssd", "spot", "spot-gamma"}
    spot = next(child for child in children if child.data.params["drafter"] == "spot")
    assert spot.data.metrics["n_failed"] == 1
    assert spot.data.metrics["nfe_reduction"] > 1
    assert spot.info.status == "FAILED"
    assert spot.info.end_time == 1_760_000_060_000
    assert (run / "mlflow-artifacts/synthetic" / parent.info.run_id / "artifacts/report.html").read_text() == "page"
    assert [path for path in tmp_path.rglob("*") if "%20" in path.name or path.name == "mlruns"] == []
    again = sync(run)
    assert (again.status, again.written, again.unchanged) == ("unchanged", 0, 4)
    assert {r.info.run_id for r in runs_of(run)} == {r.info.run_id for r in runs}
    history = client(run).get_metric_history(spot.info.run_id, "nfe")
    assert len(history) == 1


def test_a_sweep_that_lost_cells_and_prompts_shows_no_number_of_before(run):
    sync(run)
    before = {r.info.run_id: r for r in runs_of(run)}
    cells = RunDir(run).cells
    jobs = msgspec.json.decode(cells.read_bytes())
    cells.write_bytes(msgspec.json.encode(jobs[:2]))  # draft-free and ssd stay
    done = sync(run)
    # draft-free decoding was timed beside all variants: with fewer of them its tokens a second are others
    assert done.message == "1 cells written, 1 were there already, 2 that left the sweep deleted"
    (parent,) = [r for r in runs_of(run) if "cell_id" not in r.data.tags]
    children = [r for r in runs_of(run) if r.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert parent.info.run_id not in before
    assert (parent.data.metrics["cells"], parent.data.metrics["prompts"]) == (2, 5)  # one of ssd's three failed
    assert {child.data.params["drafter"] for child in children} == {"none", "ssd"}
    assert [c.data.params["drafter"] for c in children if c.info.run_id in before] == ["ssd"]
    assert len(runs_of(run)) == 3
    cells.write_bytes(msgspec.json.encode([{**job, "prompts": 2} for job in jobs[:2]]))
    assert sync(run).written == 2
    (parent,) = [r for r in runs_of(run) if "cell_id" not in r.data.tags]
    assert parent.data.metrics["prompts"] == 3
    assert len(runs_of(run)) == 3


def test_runs_beyond_a_page_are_found(run, monkeypatch):
    monkeypatch.setattr(tracking, "PAGE", 2)
    sync(run)
    assert sync(run).status == "unchanged"
    assert len(runs_of(run)) == 5


def test_a_deleted_experiment_does_not_stop_the_mirror(run):
    sync(run)
    found = client(run)
    found.delete_experiment(found.get_experiment_by_name("synthetic").experiment_id)
    found.delete_experiment("0")
    done = sync(run)
    assert done.status == "written"
    assert "mlflow experiments restore --experiment-id 1" in done.notes[0]
    assert len(runs_of(run, "synthetic (2)")) == 5


def test_artifacts_that_cannot_be_written_fail_the_mirror_only(run):
    (run / "mlflow-artifacts").write_text("a file where a folder is needed")
    done = sync(run)
    assert done.failed
    assert "the report could not be attached" in done.message
    assert "results are safe" in done.message
    assert len(runs_of(run)) == 5
    (run / "mlflow-artifacts").unlink()
    assert not sync(run).failed


def test_a_named_store_that_is_no_database_is_one_line(run):
    (run / "own.db").write_text("this is no database" * 100)
    done = sync(run, "sqlite:///own.db")
    assert (run / "own.db").read_text() == "this is no database" * 100
    assert done.failed
    assert "\n" not in done.message
    assert len(done.message) < 600


def test_a_folder_is_refused_before_anything_is_tried(run):
    with pytest.raises(ValueError, match="plain folder"):
        sync(run, "./mlruns")


def test_settings_are_put_back(run, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "77")
    with settings():
        pass
    import os

    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "77"
    assert "MLFLOW_DISABLE_TELEMETRY" not in os.environ


def test_a_closed_port_costs_no_time(run):
    started = time.monotonic()
    done = sync(run, "http://127.0.0.1:9")
    assert done.failed
    assert "nothing answers there" in done.message
    assert time.monotonic() - started < 10


def test_a_server_that_never_answers_is_given_up_in_seconds(run):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        assert sync(run, f"http://127.0.0.1:{silent.getsockname()[1]}").failed
        assert time.monotonic() - started < 10


def test_a_server_that_is_healthy_and_then_hangs_is_given_up_in_seconds(run):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path != "/health":
                time.sleep(30)
            self.send_response(200)
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_):
            pass

    import mlflow  # noqa: F401 - the time of its import is not what is measured

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    started = time.monotonic()
    done = sync(run, f"http://127.0.0.1:{server.server_port}")
    assert done.failed
    assert time.monotonic() - started < 14
    assert "timed out" in done.message.lower() or "timeout" in done.message.lower()


@pytest.mark.slow
def test_a_kill_while_the_store_is_made_costs_nothing(run):
    (run / "mlflow.db").unlink()
    code = "import sys; from pathlib import Path; from orchestrator.tracking import sync; sync(Path(sys.argv[1]))"
    process = subprocess.Popen([sys.executable, "-c", code, str(run)])
    while not (run / "mlflow.db.new").exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.1)
    process.kill()
    process.wait()
    assert not (run / "mlflow.db").exists()
    assert sync(run).status == "written"
    assert len(runs_of(run)) == 5
    assert not (run / "mlflow.db.new").exists()


@pytest.mark.slow
def test_a_file_that_is_no_store_is_made_anew_and_a_folder_is_refused_at_once(run):
    (run / "mlflow.db").write_bytes(b"garbage" * 1000)
    done = sync(run)
    assert (done.status, done.written) == ("written", 4)
    assert done.notes == ("mlflow.db was no whole tracking store: set aside as mlflow.db.broken, and made anew",)
    assert sync(run).status == "unchanged"
    (run / "mlflow.db").unlink()
    (run / "mlflow.db").mkdir()
    started = time.monotonic()
    done = sync(run)
    assert time.monotonic() - started < 5
    assert "a folder is in its place: move mlflow.db away" in done.message


@pytest.mark.slow
def test_two_syncs_at_once_to_a_fresh_file_both_land(tmp_path):
    code = (
        "import sys; from pathlib import Path; from orchestrator.tracking import sync;"
        "print(sync(Path(sys.argv[1]), sys.argv[2]).status)"
    )
    made = sweep(CELLS, prompts=2, timed=0)
    uri = f"sqlite:///{tmp_path}/shared/m.db"
    runs = [made.write(tmp_path / name) for name in ("one", "two")]
    (runs[1] / "spec.json").write_text((runs[1] / "spec.json").read_text().replace("synthetic", "other"))
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(run), uri], stdout=subprocess.PIPE, text=True) for run in runs
    ]
    assert [process.communicate(timeout=200)[0].strip() for process in started] == ["written", "written"]
    found = client(runs[0], uri)
    for name in ("synthetic", "other"):
        experiment = found.get_experiment_by_name(name)
        assert len(found.search_runs([experiment.experiment_id])) == 5
