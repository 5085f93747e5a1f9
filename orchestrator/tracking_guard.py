"""Around every use of MLflow: our settings for as long as it is used, and one writer at a time."""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from orchestrator.tracking_uri import Location
from sweeps.store import RunDir

LOCK_SECONDS = 120.0
SETTINGS = {  # a dead server must cost seconds, not minutes; and nothing is told to anybody else
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "4",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


@contextmanager
def locked(run: RunDir, place: Location) -> Iterator[None]:
    """One writer a run and a sqlite file: the first use of a fresh store by two processes breaks it."""
    paths = {run.mlflow_lock}
    if place.database is not None:
        place.database.parent.mkdir(parents=True, exist_ok=True)
        paths.add(place.database.with_name(f"{place.database.name}.lock"))
    with ExitStack() as stack:
        for path in sorted(paths):
            lock(stack.enter_context(path.open("w")), path)
        yield


def lock(file: Any, path: Path) -> None:
    """Take the lock of an open file, waiting for another sync to end. Raises TimeoutError."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"another sync has held {path} for {LOCK_SECONDS:.0f} s") from None
            time.sleep(0.05)
        else:
            return


@contextmanager
def settings() -> Iterator[None]:
    """Our settings of mlflow, and its talk kept down, for as long as we use it."""
    before = {name: os.environ.get(name) for name in SETTINGS}
    loggers = {name: logging.getLogger(name) for name in ("alembic", "mlflow", "urllib3")}
    levels = {name: logger.level for name, logger in loggers.items()}
    os.environ.update(SETTINGS)
    for logger in loggers.values():
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for name, logger in loggers.items():
            logger.setLevel(levels[name])
