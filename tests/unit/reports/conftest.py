"""Synthetic runs that several report tests read."""

import pytest

from reports.frames import frames_of
from sweeps.aggregate import aggregate_all
from sweeps.belongs import History
from sweeps.order_study import order_studies
from sweeps.spec import GridSpec, SweepSpec
from tests.synthetic import Faults, grid, sweep


def framed(made, **spec):
    rows = made.rows()
    settings = {"name": "synthetic", "grid": GridSpec(target=("t",), task=("a",)), **spec}
    studies = tuple(order_studies(made.jobs, rows).values())
    return frames_of(SweepSpec(**settings), History(), aggregate_all(made.jobs, rows), rows, studies=studies)


@pytest.fixture(scope="session")
def clean():
    return sweep(grid())


@pytest.fixture(scope="session")
def clean_frames(clean):
    return framed(clean)


@pytest.fixture(scope="session")
def faulty():
    return sweep(grid(), faults=Faults(failed=1, missing=1, near_ties=1, bugs=1, empty_cells=2, noisy=True))


@pytest.fixture(scope="session")
def faulty_frames(faulty):
    return framed(faulty)
