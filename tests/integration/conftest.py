"""One local Ray for all tests of this folder that want it: its start costs seconds."""

import os
from collections.abc import Iterator

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
