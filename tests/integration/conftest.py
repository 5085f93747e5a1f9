"""One local Ray and one empty MLflow store for all tests of this folder that want them: making either costs seconds."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """A Ray of two CPUs and one pretended GPU on this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    def start() -> None:
        ray.init(
            "local",
            num_cpus=2,
            num_gpus=1,
            include_dashboard=False,
            object_store_memory=120 * 1024**2,
            log_to_driver=False,
            logging_level="error",
        )

    try:
        start()
    except Exception:  # a busy machine: Ray gives itself 30 s
        ray.shutdown()
        start()
    yield
    ray.shutdown()


@pytest.fixture
def no_ambient_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the variables that send MLflow elsewhere."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an initialised store without runs, to be copied."""
    from orchestrator.tracking import MlflowStore, settings
    from orchestrator.tracking_uri import location

    folder = tmp_path_factory.mktemp("store")
    with settings():
        MlflowStore(location(folder, environ={}))
    return folder / "mlflow.db"
